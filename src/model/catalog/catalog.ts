import { VersoError, ConfigError } from '../../errors.js'
import type { Field, Relation } from '../values/field-types.js'
import { isModelExtension, type ModelExtension } from '../definition/extend-model.js'
import type { Criteria } from '../query/criteria.js'
import { checkModel, isReadable, isWritable, USER_MODEL, type Model } from '../definition/model.js'
import { validateListOrder } from '../query/list-order.js'
import { validateRelation } from './relation.js'
import type { Visibility } from '../query/visibility.js'
import { extendUser, isReadOnly, SYSTEM_MODELS, USER_SYSTEM_MODEL } from './system-models.js'

/** Where a definition came from, for messages, and the definition as it was written. */
export interface ModelSource {
  readonly file: string
  readonly definition: unknown
}

/** A field and the model it belongs to. */
export interface ModelField {
  readonly model: Model
  readonly field: Field
}

/** In the same words for a model that is not there and for one that may not be known. */
export function createUnknownModelError(name: string): VersoError {
  return new VersoError('unknown-model', `There is no model "${name.slice(0, 200)}"`)
}

/** Whoever loads models checks them, and so does whoever serves them. */
const CATALOGS_BY_SOURCES = new WeakMap<readonly ModelSource[], Catalog>()

/** The models by name, and how they hang together. It is the sight of those who may see everything. */
export class Catalog implements Visibility {
  /** Those that people declare. */
  readonly models: readonly Model[]
  /** The accounts, with what people have added to them. */
  readonly user: Model
  readonly #modelsByName: ReadonlyMap<string, Model>
  readonly #references = new Map<string, ModelField[]>()
  readonly #links = new Map<string, ModelField[]>()
  readonly #owners = new Map<string, ModelField>()
  readonly #ownershipDepths = new Map<Model, number>()
  readonly #modelsWithFiles: ReadonlySet<string>

  private constructor(models: readonly Model[], user = USER_SYSTEM_MODEL) {
    this.models = models
    this.user = user
    const own = SYSTEM_MODELS.map((model) => (model === USER_SYSTEM_MODEL ? user : model))
    this.#modelsByName = new Map([...own, ...models].map((model) => [model.name, model]))
    const isBinary = ({ type }: Field) => type === 'binary'
    const withFiles = [...this.#modelsByName.values()].filter(({ fields }) =>
      [...fields.values()].some(isBinary),
    )
    this.#modelsWithFiles = new Set(withFiles.map(({ name }) => name))
    for (const model of this.#modelsByName.values()) {
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
  getOwnershipDepth(model: Model, below: readonly Model[] = []): number {
    const known = this.#ownershipDepths.get(model)
    if (known !== undefined) return known
    const above = [...model.fields.values()].flatMap((field) => this.findOwner(model, field)?.model ?? [])
    const owners = above.filter((owner) => owner !== model && !below.includes(owner))
    const rank = Math.max(0, ...owners.map((owner) => 1 + this.getOwnershipDepth(owner, [...below, model])))
    this.#ownershipDepths.set(model, rank)
    return rank
  }

  /** What else hangs on a model, besides its own fields: a node that does not know it must not write its records. */
  listDependents(model: Model): string[] {
    const formatName = ({ model: { name }, field }: ModelField) => `${name}.${field.name}`
    const owned = [...model.fields.values()].flatMap((field) => {
      const owner = this.findOwner(model, field)
      return owner ? [`${field.name} owned by ${formatName(owner)}`] : []
    })
    const references = this.referencesTo(model).map((reference) => `referred to by ${formatName(reference)}`)
    return [...owned, ...references, ...this.linksTo(model).map((list) => `linked by ${formatName(list)}`)]
  }

  /** Checks all definitions and refuses them with every fault named at once. The same list is checked once. */
  static from(sources: readonly ModelSource[]): Catalog {
    const known = CATALOGS_BY_SOURCES.get(sources)
    if (known) return known
    const catalog = Catalog.#check(sources)
    CATALOGS_BY_SOURCES.set(sources, catalog)
    return catalog
  }

  static #check(sources: readonly ModelSource[]): Catalog {
    const errors: string[] = []
    const models = new Map<Model, string>()
    const filesByName = new Map<string, string>()
    const taken = new Set(SYSTEM_MODELS.map(({ name }) => name.toLowerCase()))
    const extensions = new Map<ModelExtension, string>()
    for (const { file, definition } of sources) {
      if (isModelExtension(definition) && definition.name === USER_MODEL) {
        extensions.set(definition, file)
        continue
      }
      const model = checkModel(definition, (fault) => errors.push(`${file}: ${fault}`))
      if (!model) continue
      const folded = model.name.toLowerCase()
      const other = filesByName.get(folded)
      if (other !== undefined) errors.push(`${file}: ${model.name}: ${other} has a model of this name too`)
      if (folded.startsWith('verso.'))
        errors.push(`${file}: ${model.name}: names in verso.* belong to the service`)
      else if (taken.has(folded)) errors.push(`${file}: ${model.name}: the service has this model itself`)
      filesByName.set(folded, file)
      models.set(model, file)
    }
    const files = [...new Set(extensions.values())].join(', ')
    const user =
      extensions.size === 0
        ? USER_SYSTEM_MODEL
        : extendUser([...extensions.keys()], (error) => errors.push(`${files}: ${error}`))
    const catalog = new Catalog([...models.keys()], user)
    if (user && user !== USER_SYSTEM_MODEL) models.set(user, files)
    // A target that is at fault itself would only be reported as missing.
    if (errors.length === 0) errors.push(...catalog.#validateRelations(models))
    if (errors.length > 0) throw new ConfigError('The models have faults', errors)
    return catalog
  }

  #validateRelations(files: ReadonlyMap<Model, string>): string[] {
    const errors: string[] = []
    for (const [model, file] of files) {
      for (const field of model.fields.values()) {
        // Of the users, what was added to them.
        if (model === this.user && USER_SYSTEM_MODEL.fields.has(field.name)) continue
        const error = validateRelation(this.#modelsByName, model, field)
        if (error !== undefined) errors.push(`${file}: ${model.name}.${field.name}: ${error}`)
      }
    }
    // A path of an order may lead over any relation.
    return errors.length > 0 ? errors : this.#validateListOrders(files)
  }

  #validateListOrders(files: ReadonlyMap<Model, string>): string[] {
    return [...files].flatMap(([model, file]) =>
      [...model.fields.values()].flatMap((field) => {
        const error = validateListOrder(this, field)
        return error === undefined ? [] : [`${file}: ${model.name}.${field.name}: ${error}`]
      }),
    )
  }

  /** Undefined for one that is not there; the Log may still know of it. */
  find(name: string): Model | undefined {
    return this.#modelsByName.get(name)
  }

  /** What clients may name. */
  get(name: string): Model {
    const model = this.#modelsByName.get(name)
    if (!model) throw createUnknownModelError(name)
    return model
  }

  /** Whether records of this model may hold files. */
  hasFiles(name: string): boolean {
    return this.#modelsWithFiles.has(name)
  }

  /** Everything that is stored, and that clients may name as far as they have rights: the models, and those of the service itself. */
  get storedModels(): readonly Model[] {
    return [...this.#modelsByName.values()]
  }

  /** The model that a relation leads to. */
  getTarget({ target }: Relation): Model {
    const model = this.#modelsByName.get(target)
    if (!model) throw new Error(`${target} was checked to be there`)
    return model
  }

  findReadable(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    return field && isReadable(field) ? field : undefined
  }

  isVisible(): boolean {
    return true
  }

  canWrite(model: Model, field: Field): boolean {
    return !isReadOnly(model) && isWritable(field)
  }

  visibleRecords(): Criteria | undefined {
    return undefined
  }

  mask(): Criteria | undefined {
    return undefined
  }

  /** The fields that may refer to a record of this model. */
  referencesTo(model: Model): readonly ModelField[] {
    return this.#references.get(model.name) ?? []
  }

  /** The lists of other records that may hold a record of this model. */
  linksTo(model: Model): readonly ModelField[] {
    return this.#links.get(model.name) ?? []
  }

  /** The owned list that a reference makes its record a member of. */
  findOwner(model: Model, reference: Field): ModelField | undefined {
    return this.#owners.get(`${model.name}.${reference.name}`)
  }
}
