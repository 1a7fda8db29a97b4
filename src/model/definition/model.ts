import type { Field, FieldTypeName } from '../values/field.js'
import type { CheckDefinition } from './define-model.js'
import type { HooksOf } from './hooks.js'

/** The properties of a model that come from its definition. */
export interface ModelProperties {
  readonly name: string
  readonly title: string
  /** All fields in the order of the definition, followed by the system fields. */
  readonly fields: ReadonlyMap<string, Field>
  readonly nameField: string | undefined
  readonly listFields: readonly string[]
  /** Unique sets of fields. A unique field is a set of one. */
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
  /** Sets of fields that merge as one. They are disjoint. */
  readonly mergeGroups: readonly (readonly string[])[]
  readonly archived: boolean
  /** Not yet bound to fields; the catalog has the bound ones. */
  readonly checks: readonly CheckDefinition[]
  /** The hooks of the definition, followed by those of its extensions. */
  readonly hooks: readonly HooksOf[]
  /** The properties that only system models have. */
  readonly system?: SystemModelOptions
}

/** The properties of a system model that a definition cannot express. */
export interface SystemModelOptions {
  /** Declared fields that only the service sets. */
  readonly systemFields?: readonly string[]
  /** Fields that model files add to a system model. Commands without model files do not know them. */
  readonly extensionFields?: ReadonlySet<string>
  readonly isReadOnly?: boolean
  readonly isReferenceOnly?: boolean
  readonly createInstruction?: string
  readonly fileFields?: FileFields
}

/** The fields of a record that stands for a file. The last two follow from the content. */
export interface FileFields {
  readonly name: string
  readonly type: string
  readonly size: string
}

export const USER_MODEL = 'verso.auth.User'

/** System fields without a history: they follow from the Change itself, or the service sets them without a new version. */
const UNLOGGED_FIELDS = ['createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'lastLoginOn', 'lastUsedOn']

/** The types whose values have the same text in the log and in a column of either engine. */
const COUNTED_TYPES: ReadonlySet<FieldTypeName> = new Set([
  'string',
  'enum',
  'integer',
  'long',
  'boolean',
  'date',
  'uuid',
  'many-to-one',
  'one-to-one',
])

/** An inverse relation is only compared with the stored one. The content of a file has its own requests. */
type InputKind = 'value' | 'reference' | 'list' | 'file' | 'inverse'

/** A checked model, and the facts that follow from its definition. Model files declare it with `defineModel`. */
export class Model implements ModelProperties {
  readonly name: string
  readonly title: string
  readonly fields: ReadonlyMap<string, Field>
  readonly nameField: string | undefined
  readonly listFields: readonly string[]
  readonly unique: readonly (readonly string[])[]
  readonly indexes: readonly (readonly string[])[]
  readonly mergeGroups: readonly (readonly string[])[]
  readonly archived: boolean
  readonly checks: readonly CheckDefinition[]
  readonly hooks: readonly HooksOf[]
  readonly computedFields: readonly Field[]
  /** The fields that computed fields receive, besides the computed fields declared before them. */
  readonly computedInputs: readonly string[]
  readonly hasPassword: boolean
  readonly sequenceFields: readonly Field[]
  readonly ownedLists: readonly string[]
  /** The fields that belong to a unique set. */
  readonly uniqueFields: ReadonlySet<string>
  readonly hasComputedUniqueField: boolean
  /**
   * True if a write of a record can change how the same record is read: it may refer to itself, with a version, and the members of a list may
   * be sorted by its values.
   */
  readonly showsItself: boolean
  /** The fields that a client may send, with the kind of their values. */
  readonly inputs: ReadonlyMap<string, InputKind>
  /** The fields that a create must contain. */
  readonly requiredInputs: readonly Field[]
  /** The fields of a full record. */
  readonly shownFields: readonly Field[]
  /** The fields whose values the change log contains. */
  readonly loggedFields: readonly string[]
  /** The fields of each index that is not unique. Every reference has an index, because lists and deletes search by reference. */
  readonly nonUniqueIndexes: readonly (readonly string[])[]
  /** The fields whose values have counters: those with a non-unique index of their own. The log must contain their values. */
  readonly countedFields: readonly Field[]
  /** The fields that counters depend on: the counted ones and `archived`. An update of other fields changes no counter. */
  readonly counterFields: ReadonlySet<string>
  /** True if only the service writes records of this model. */
  readonly isReadOnly: boolean
  /** True if other records can only refer to records of this model: a write or a read of them does not include these records. */
  readonly isReferenceOnly: boolean
  /** Says how to create a record, if no create request can. The error of such a request contains it. */
  readonly createInstruction: string | undefined
  /** The fields that describe the file, if a record of this model stands for one. */
  readonly fileFields: FileFields | undefined

  constructor(properties: ModelProperties) {
    this.name = properties.name
    this.title = properties.title
    this.fields = properties.fields
    this.nameField = properties.nameField
    this.listFields = properties.listFields
    this.unique = properties.unique
    this.indexes = properties.indexes
    this.mergeGroups = properties.mergeGroups
    this.archived = properties.archived
    this.checks = properties.checks
    this.hooks = properties.hooks
    const fields = [...this.fields.values()]
    this.computedFields = fields.filter(({ computed }) => computed)
    this.computedInputs = this.computedFields.length > 0 ? listNames(fields, isComputedInput) : []
    this.hasPassword = fields.some(({ secret }) => secret === 'password')
    this.sequenceFields = fields.filter(({ sequence }) => sequence)
    this.ownedLists = listNames(fields, isOwnedList)
    this.uniqueFields = new Set(this.unique.flat())
    this.hasComputedUniqueField = this.computedFields.some(({ name }) => this.uniqueFields.has(name))
    this.showsItself = fields.some(({ relation }) => relation?.target === this.name || relation?.orderBy)
    this.inputs = new Map(fields.flatMap((field) => listInputs(field)))
    this.requiredInputs = fields.filter(
      (field) => isRequiredInCreate(field) && hasValue(this.inputs.get(field.name)),
    )
    this.shownFields = fields.filter(isReadByDefault)
    this.loggedFields = listNames(fields, isLogged)
    this.nonUniqueIndexes = [...this.indexes, ...listReferenceIndexes(this)]
    const { system = {} } = properties
    this.isReadOnly = system.isReadOnly ?? false
    this.isReferenceOnly = system.isReferenceOnly ?? false
    this.createInstruction = system.createInstruction
    this.fileFields = system.fileFields
    const indexed = new Set(this.nonUniqueIndexes.flatMap((index) => (index.length === 1 ? index : [])))
    this.countedFields = fields.filter(
      (field) => indexed.has(field.name) && isCountable(field) && !system.extensionFields?.has(field.name),
    )
    this.counterFields = new Set([...this.countedFields.map(({ name }) => name), 'archived'])
  }
}

/** Returns no input for a field that only the service sets. */
function listInputs(field: Field): (readonly [string, InputKind])[] {
  if (isInverse(field)) return [[field.name, 'inverse']]
  if (!isWritable(field)) return []
  if (isOwnedList(field)) return [[field.name, 'list']]
  if (field.relation) return [[field.name, 'reference']]
  return [[field.name, field.type === 'binary' ? 'file' : 'value']]
}

/** False for a list, which may be empty, and for the content of a file, which has its own requests. */
function hasValue(kind: InputKind | undefined): boolean {
  return kind === 'value' || kind === 'reference'
}

function isRequiredInCreate({ required, default: value }: Field): boolean {
  return required && value === undefined
}

function listNames(fields: readonly Field[], predicate: (field: Field) => boolean): string[] {
  return fields.filter(predicate).map(({ name }) => name)
}

function isComputedInput(field: Field): boolean {
  return isReadByDefault(field) && !field.isSystem && !field.computed && !field.relation?.isList
}

function isLogged(field: Field): boolean {
  return isReadByDefault(field) && !(field.isSystem && UNLOGGED_FIELDS.includes(field.name))
}

function isCountable(field: Field): boolean {
  return COUNTED_TYPES.has(field.type) && isReadByDefault(field) && !field.isSystem
}

function listReferenceIndexes({ fields, unique, indexes }: ModelProperties): string[][] {
  const first = new Set([...unique, ...indexes].map((set) => set[0]))
  const references = [...fields.values()].filter((field) => isReference(field) && !field.isSystem)
  return references.filter(({ name }) => !first.has(name)).map(({ name }) => [name])
}

/** An answer may contain this field, if only when the request selects it. */
export function isReadable(field: Field): boolean {
  return field.secret === undefined && field.type !== 'binary'
}

/** The other side of a relation that the target stores. Answers contain it only when the request selects it; writes never change it. */
export function isInverse({ relation }: Field): boolean {
  return relation !== undefined && relation.mappedBy !== undefined && !relation.owned
}

/** A full record contains this field. */
export function isReadByDefault(field: Field): boolean {
  return isReadable(field) && !isInverse(field)
}

/** A to-one relation that this record stores. */
export function isReference({ relation }: Field): boolean {
  return relation !== undefined && !relation.isList && relation.mappedBy === undefined
}

export function isOwnedList({ relation }: Field): boolean {
  return relation !== undefined && relation.isList && relation.owned
}

/** A client may send a value of this field. */
export function isWritable(field: Field): boolean {
  return !field.isSystem && field.computed === undefined && field.sequence === undefined && !isInverse(field)
}

export function findReadableField(model: Model, name: string): Field | undefined {
  const field = model.fields.get(name)
  return field && isReadable(field) ? field : undefined
}
