import { Refusal, StartFaults } from '../../errors.js'
import type { Field, Relation } from '../values/field-types.js'
import { isModelExtension, type ModelExtension } from '../definition/extend-model.js'
import type { Criteria } from '../query/criteria.js'
import { checkModel, isReadable, isWritable, USER_MODEL, type Model } from '../definition/model.js'
import { orderFault } from '../query/list-order.js'
import { relationFault } from './relation.js'
import type { Sight } from '../query/visibility.js'
import { extendUser, isReadOnly, SYSTEM_MODELS, USER } from './system-models.js'

/** Where a definition came from, for messages, and the definition as it was written. */
export interface Source {
  readonly file: string
  readonly definition: unknown
}

/** A field and the model it belongs to. */
export interface FieldOf {
  readonly model: Model
  readonly field: Field
}

/** In the same words for a model that is not there and for one that may not be known. */
export function unknownModel(name: string): Refusal {
  return new Refusal('unknown-model', `There is no model "${name.slice(0, 200)}"`)
}

/** Whoever loads models checks them, and so does whoever serves them. */
const CHECKED = new WeakMap<readonly Source[], Catalog>()

/** The models by name, and how they hang together. It is the sight of those who may see everything. */
export class Catalog implements Sight {
  /** Those that people declare. */
  readonly models: readonly Model[]
  /** The accounts, with what people have added to them. */
  readonly user: Model
  readonly #stored: ReadonlyMap<string, Model>
  readonly #references = new Map<string, FieldOf[]>()
  readonly #links = new Map<string, FieldOf[]>()
  readonly #owners = new Map<string, FieldOf>()
  readonly #ranks = new Map<Model, number>()
  readonly #withFiles: ReadonlySet<string>

  private constructor(models: readonly Model[], user = USER) {
    this.models = models
    this.user = user
    const own = SYSTEM_MODELS.map((model) => (model === USER ? user : model))
    this.#stored = new Map([...own, ...models].map((model) => [model.name, model]))
    const isBinary = ({ type }: Field) => type === 'binary'
    const withFiles = [...this.#stored.values()].filter(({ fields }) => [...fields.values()].some(isBinary))
    this.#withFiles = new Set(withFiles.map(({ name }) => name))
    for (const model of this.#stored.values()) {
      for (const field of model.fields.values()) {
        const { relation } = field
        if (!relation || field.kept) continue
        if (relation.mappedBy !== undefined) {
          if (relation.owned) this.#owners.set(`${relation.target}.${relation.mappedBy}`, { model, field })
          continue
        }
        const known = relation.isList ? this.#links : this.#references
        const leading = known.get(relation.target)
        if (leading) leading.push({ model, field })
        else known.set(relation.target, [{ model, field }])
      }
    }
  }

  /** How many owners stand above a record of this model; where models own each other, as far as they do not. */
  rankOf(model: Model, below: readonly Model[] = []): number {
    const known = this.#ranks.get(model)
    if (known !== undefined) return known
    const above = [...model.fields.values()].flatMap((field) => this.ownerOf(model, field)?.model ?? [])
    const owners = above.filter((owner) => owner !== model && !below.includes(owner))
    const rank = Math.max(0, ...owners.map((owner) => 1 + this.rankOf(owner, [...below, model])))
    this.#ranks.set(model, rank)
    return rank
  }

  /** What else hangs on a model, besides its own fields: a node that does not know it must not write its records. */
  neighboursOf(model: Model): string[] {
    const nameOf = ({ model: { name }, field }: FieldOf) => `${name}.${field.name}`
    const owned = [...model.fields.values()].flatMap((field) => {
      const owner = this.ownerOf(model, field)
      return owner ? [`${field.name} owned by ${nameOf(owner)}`] : []
    })
    const referred = this.referencesTo(model).map((reference) => `referred to by ${nameOf(reference)}`)
    return [...owned, ...referred, ...this.linksTo(model).map((list) => `linked by ${nameOf(list)}`)]
  }

  /** Checks all definitions and refuses them with every fault named at once. The same list is checked once. */
  static from(sources: readonly Source[]): Catalog {
    const known = CHECKED.get(sources)
    if (known) return known
    const catalog = Catalog.#check(sources)
    CHECKED.set(sources, catalog)
    return catalog
  }

  static #check(sources: readonly Source[]): Catalog {
    const faults: string[] = []
    const models = new Map<Model, string>()
    const seen = new Map<string, string>()
    const taken = new Set(SYSTEM_MODELS.map(({ name }) => name.toLowerCase()))
    const extensions = new Map<ModelExtension, string>()
    for (const { file, definition } of sources) {
      if (isModelExtension(definition) && definition.name === USER_MODEL) {
        extensions.set(definition, file)
        continue
      }
      const model = checkModel(definition, (fault) => faults.push(`${file}: ${fault}`))
      if (!model) continue
      const folded = model.name.toLowerCase()
      const other = seen.get(folded)
      if (other !== undefined) faults.push(`${file}: ${model.name}: ${other} has a model of this name too`)
      if (folded.startsWith('verso.'))
        faults.push(`${file}: ${model.name}: names in verso.* belong to the service`)
      else if (taken.has(folded)) faults.push(`${file}: ${model.name}: the service has this model itself`)
      seen.set(folded, file)
      models.set(model, file)
    }
    const files = [...new Set(extensions.values())].join(', ')
    const user =
      extensions.size === 0
        ? USER
        : extendUser([...extensions.keys()], (fault) => faults.push(`${files}: ${fault}`))
    const catalog = new Catalog([...models.keys()], user)
    if (user && user !== USER) models.set(user, files)
    // A target that is at fault itself would only be reported as missing.
    if (faults.length === 0) faults.push(...catalog.#relationFaults(models))
    if (faults.length > 0) throw new StartFaults('The models have faults', faults)
    return catalog
  }

  #relationFaults(files: ReadonlyMap<Model, string>): string[] {
    const faults: string[] = []
    for (const [model, file] of files) {
      for (const field of model.fields.values()) {
        // Of the users, what was added to them.
        if (model === this.user && USER.fields.has(field.name)) continue
        const fault = relationFault(this.#stored, model, field)
        if (fault !== undefined) faults.push(`${file}: ${model.name}.${field.name}: ${fault}`)
      }
    }
    // A path of an order may lead over any relation.
    return faults.length > 0 ? faults : this.#orderFaults(files)
  }

  #orderFaults(files: ReadonlyMap<Model, string>): string[] {
    return [...files].flatMap(([model, file]) =>
      [...model.fields.values()].flatMap((field) => {
        const fault = orderFault(this, field)
        return fault === undefined ? [] : [`${file}: ${model.name}.${field.name}: ${fault}`]
      }),
    )
  }

  /** Undefined for one that is not there; the Log may still know of it. */
  known(name: string): Model | undefined {
    return this.#stored.get(name)
  }

  /** What clients may name. */
  get(name: string): Model {
    const model = this.#stored.get(name)
    if (!model) throw unknownModel(name)
    return model
  }

  /** Whether records of this model may hold files. */
  hasFiles(name: string): boolean {
    return this.#withFiles.has(name)
  }

  /** Everything that is stored, and that clients may name as far as they have rights: the models, and those of the service itself. */
  get stored(): readonly Model[] {
    return [...this.#stored.values()]
  }

  /** The model that a relation leads to. */
  target({ target }: Relation): Model {
    const model = this.#stored.get(target)
    if (!model) throw new Error(`${target} was checked to be there`)
    return model
  }

  readable(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    return field && isReadable(field) ? field : undefined
  }

  knows(): boolean {
    return true
  }

  writes(model: Model, field: Field): boolean {
    return !isReadOnly(model) && isWritable(field)
  }

  seen(): Criteria | undefined {
    return undefined
  }

  mask(): Criteria | undefined {
    return undefined
  }

  /** The fields that may refer to a record of this model. */
  referencesTo(model: Model): readonly FieldOf[] {
    return this.#references.get(model.name) ?? []
  }

  /** The lists of other records that may hold a record of this model. */
  linksTo(model: Model): readonly FieldOf[] {
    return this.#links.get(model.name) ?? []
  }

  /** The owned list that a reference makes its record a member of. */
  ownerOf(model: Model, reference: Field): FieldOf | undefined {
    return this.#owners.get(`${model.name}.${reference.name}`)
  }
}
