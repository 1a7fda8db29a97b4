import { VersoError, ConfigError } from '../../errors.js'
import { didYouMean } from '../values/did-you-mean.js'
import { MAPPED_BY_TYPES, type Field, type Relation } from '../values/field.js'
import { isModelExtension, type ModelExtension } from '../definition/extend-model.js'
import type { Criteria } from '../query/criteria.js'
import { checkModel } from '../definition/check-model.js'
import { findReadableField, isWritable, type Model } from '../definition/model.js'
import { bindChecks, type ModelChecks } from '../query/bind-check.js'
import { validateListOrder } from '../query/sort.js'
import type { Visibility } from '../query/visibility.js'
import { extendSources, type ModelSource } from './model-sources.js'
import { extendUser, SYSTEM_MODELS, USER_SYSTEM_MODEL } from './system-models.js'

export type { ModelSource } from './model-sources.js'

/** A field and the model it belongs to. */
export interface ModelField {
  readonly model: Model
  readonly field: Field
}

/** The message is the same for a model that does not exist and for one that the user may not see. */
export function createUnknownModelError(name: string): VersoError {
  return new VersoError('unknown-model', `There is no model "${name.slice(0, 200)}"`)
}

/** The models by name and the relations between them. As a Visibility, it lets everything be seen. */
export class Catalog implements Visibility {
  /** The models from model files, without system models. */
  readonly models: readonly Model[]
  /** The user model with the fields that model files add to it. */
  readonly user: Model
  readonly #modelsByName: ReadonlyMap<string, Model>
  readonly #references = new Map<string, ModelField[]>()
  readonly #links = new Map<string, ModelField[]>()
  readonly #owners = new Map<string, ModelField>()
  readonly #ownershipDepths = new Map<Model, number>()
  readonly #modelsWithFiles: ReadonlySet<string>
  readonly #checks = new Map<Model, ModelChecks>()

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
        if (!relation || field.isSystem) continue
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

  /** Counts the levels of owners above a record of this model. Stops where models own each other in a cycle. */
  getOwnershipDepth(model: Model, below: readonly Model[] = []): number {
    const known = this.#ownershipDepths.get(model)
    if (known !== undefined) return known
    const above = [...model.fields.values()].flatMap((field) => this.findOwner(model, field)?.model ?? [])
    const owners = above.filter((owner) => owner !== model && !below.includes(owner))
    const rank = Math.max(0, ...owners.map((owner) => 1 + this.getOwnershipDepth(owner, [...below, model])))
    this.#ownershipDepths.set(model, rank)
    return rank
  }

  /** Lists the relations of other models that affect writes of this model. A node must know all of them before it writes a record. */
  listDependents(model: Model): string[] {
    const formatName = ({ model: { name }, field }: ModelField) => `${name}.${field.name}`
    const owned = [...model.fields.values()].flatMap((field) => {
      const owner = this.findOwner(model, field)
      return owner ? [`${field.name} owned by ${formatName(owner)}`] : []
    })
    const references = this.referencesTo(model).map((reference) => `referred to by ${formatName(reference)}`)
    return [...owned, ...references, ...this.linksTo(model).map((list) => `linked by ${formatName(list)}`)]
  }

  /** Applies the extensions and checks all definitions. Throws one error that lists all errors. */
  static from(sources: readonly ModelSource[]): Catalog {
    const errors: string[] = []
    const models = new Map<Model, string>()
    const filesByName = new Map<string, string>()
    const taken = new Set(SYSTEM_MODELS.map(({ name }) => name.toLowerCase()))
    const extensions = new Map<ModelExtension, string>()
    for (const { file, definition } of extendSources(sources, (error) => errors.push(error))) {
      // Only extensions of the user model are left.
      if (isModelExtension(definition)) {
        extensions.set(definition, file)
        continue
      }
      const model = checkModel(definition, (error) => errors.push(`${file}: ${error}`))
      if (!model) continue
      const folded = model.name.toLowerCase()
      const other = filesByName.get(folded)
      if (other !== undefined)
        errors.push(`${file}: ${model.name}: ${other} declares a model of the same name`)
      if (folded.startsWith('verso.'))
        errors.push(`${file}: ${model.name}: model names in verso.* are reserved: choose another name`)
      else if (taken.has(folded))
        errors.push(`${file}: ${model.name}: this is the name of a built-in model: choose another name`)
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
    // An invalid model is not in the catalog, so relations to it would be reported as errors, too.
    if (errors.length === 0) errors.push(...catalog.#validateRelations(models))
    errors.push(...catalog.#bindChecks(models))
    if (errors.length > 0) throw new ConfigError('The models are invalid', errors)
    return catalog
  }

  /** Checks use fields of their own model only, so errors in other models do not matter. */
  #bindChecks(files: ReadonlyMap<Model, string>): string[] {
    return [...files].flatMap(([model, file]) => {
      if (model.checks.length === 0) return []
      const errors: string[] = []
      this.#checks.set(model, bindChecks(this, model, errors))
      return errors.map((error) => `${file}: ${model.name}: ${error}`)
    })
  }

  #validateRelations(files: ReadonlyMap<Model, string>): string[] {
    const errors: string[] = []
    for (const [model, file] of files) {
      for (const field of model.fields.values()) {
        // For users, checks only the added fields.
        if (model === this.user && USER_SYSTEM_MODEL.fields.has(field.name)) continue
        const error = validateRelation(this.#modelsByName, model, field)
        if (error !== undefined) errors.push(`${file}: ${model.name}.${field.name}: ${error}`)
      }
    }
    // The path of a sort key may follow any relation, so all relations must be valid first.
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

  /** Returns undefined for an unknown model. The log may still contain its records. */
  find(name: string): Model | undefined {
    return this.#modelsByName.get(name)
  }

  /** Throws for a model that a client named and that does not exist. */
  get(name: string): Model {
    const model = this.#modelsByName.get(name)
    if (!model) throw createUnknownModelError(name)
    return model
  }

  /** True if the model has a binary field. */
  hasFiles(name: string): boolean {
    return this.#modelsWithFiles.has(name)
  }

  /** Returns undefined for a model without checks. */
  findChecks(model: Model): ModelChecks | undefined {
    return this.#checks.get(model)
  }

  /** All models with a table: those from model files and the system models. */
  get storedModels(): readonly Model[] {
    return [...this.#modelsByName.values()]
  }

  getTarget({ target }: Relation): Model {
    const model = this.#modelsByName.get(target)
    if (!model) throw new Error(`model ${target} is not in the catalog`)
    return model
  }

  findReadable(model: Model, name: string): Field | undefined {
    return findReadableField(model, name)
  }

  isVisible(): boolean {
    return true
  }

  canWrite(model: Model, field: Field): boolean {
    return !model.isReadOnly && isWritable(field)
  }

  visibleRecords(): Criteria | undefined {
    return undefined
  }

  mask(): Criteria | undefined {
    return undefined
  }

  /** The to-one fields of all models whose target is this model. */
  referencesTo(model: Model): readonly ModelField[] {
    return this.#references.get(model.name) ?? []
  }

  /** The many-to-many fields of all models whose target is this model. */
  linksTo(model: Model): readonly ModelField[] {
    return this.#links.get(model.name) ?? []
  }

  /** Finds the owned list whose members have this reference as `mappedBy`. */
  findOwner(model: Model, reference: Field): ModelField | undefined {
    return this.#owners.get(`${model.name}.${reference.name}`)
  }
}

/** Returns an error message if the relation is invalid. */
function validateRelation(
  models: ReadonlyMap<string, Model>,
  model: Model,
  { name, type, relation }: Field,
): string | undefined {
  if (!relation) return undefined
  const target = models.get(relation.target)
  if (!target) return `there is no model "${relation.target}"${didYouMean(relation.target, models.keys())}`
  if (relation.mappedBy === undefined) return undefined
  const inverse = target.fields.get(relation.mappedBy)
  const expected = MAPPED_BY_TYPES[type]
  if (!inverse) {
    const suggestion = didYouMean(relation.mappedBy, target.fields.keys())
    return `mappedBy: ${target.name} has no field "${relation.mappedBy}"${suggestion}`
  }
  if (
    inverse.type !== expected ||
    inverse.relation?.target !== model.name ||
    (inverse.isSystem && !model.name.startsWith('verso.'))
  )
    return `mappedBy: ${target.name}.${inverse.name} must be a ${expected} with target ${model.name}`
  if (inverse.relation.mappedBy !== undefined)
    return `mappedBy: ${target.name}.${inverse.name} has mappedBy, too: remove it from the side that stores the relation`
  const rival = [...model.fields.values()].find(
    (other) =>
      other.name !== name &&
      other.relation?.owned &&
      relation.owned &&
      other.relation.target === relation.target &&
      other.relation.mappedBy === relation.mappedBy,
  )
  return rival && `mappedBy: the list "${rival.name}" already owns the same records`
}
