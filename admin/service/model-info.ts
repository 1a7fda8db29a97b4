// A model as the service describes it, in the terms of forms and lists. Without I/O, so that tests can use it.
export type FieldKind =
  | 'string'
  | 'text'
  | 'integer'
  | 'long'
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'time'
  | 'datetime'
  | 'uuid'
  | 'enum'
  | 'json'
  | 'file'
  /** A reference to one record. */
  | 'reference'
  /** Part of the record: members are edited in place, and deleted with it. */
  | 'owned-list'
  /** Links to other records, many-to-many. */
  | 'links'
  /** The other side of a relation, which is edited there. */
  | 'inverse'

export interface Choice {
  /** As a record has it: text, or a number in a field of numbers. */
  readonly value: string | number
  readonly title: string
}

export interface FieldInfo {
  readonly name: string
  readonly title: string
  readonly help: string
  readonly kind: FieldKind
  /** A selection of values; undefined if any value is possible. */
  readonly choices: readonly Choice[] | undefined
  readonly isRequired: boolean
  /** The person may not write it, or nobody may. */
  readonly isReadonly: boolean
  readonly isComputed: boolean
  /** Never shown, such as a password. */
  readonly isSecret: boolean
  /** May be written but not read. */
  readonly isWriteOnly: boolean
  /** Kept by the service: id, version, who created and changed the record, and when. */
  readonly isSystem: boolean
  readonly isName: boolean
  readonly isUnique: boolean
  readonly minSize: number | undefined
  readonly maxSize: number | undefined
  readonly precision: number | undefined
  readonly scale: number | undefined
  readonly defaultValue: unknown
  readonly isNowByDefault: boolean
  /** The related model, its name field, and for a list the field of the member that leads back. */
  readonly target: string | undefined
  readonly targetName: string | undefined
  readonly mappedBy: string | undefined
}

export interface ModelPermissions {
  readonly read: boolean
  readonly write: boolean
  readonly create: boolean
  readonly remove: boolean
  readonly export: boolean
}

export interface ModelInfo {
  readonly name: string
  readonly title: string
  readonly fields: readonly FieldInfo[]
  readonly listFields: readonly string[]
  readonly nameField: string | undefined
  readonly permissions: ModelPermissions
}

export interface Description {
  readonly model: string
  readonly title?: string
  readonly fields: readonly Readonly<Record<string, unknown>>[]
  readonly listFields?: readonly string[]
  readonly perms: ModelPermissions | null
}

const KINDS: Readonly<Record<string, FieldKind>> = {
  STRING: 'string',
  TEXT: 'text',
  INTEGER: 'integer',
  LONG: 'long',
  DECIMAL: 'decimal',
  BOOLEAN: 'boolean',
  DATE: 'date',
  TIME: 'time',
  DATETIME: 'datetime',
  UUID: 'uuid',
  ENUM: 'enum',
  BINARY: 'file',
  MANY_TO_ONE: 'reference',
  ONE_TO_ONE: 'reference',
  ONE_TO_MANY: 'owned-list',
  MANY_TO_MANY: 'links',
}

const SYSTEM_FIELDS: readonly string[] = ['id', 'version', 'createdOn', 'createdBy', 'updatedOn', 'updatedBy']
const ALL_PERMISSIONS: ModelPermissions = {
  read: true,
  write: true,
  create: true,
  remove: true,
  export: true,
}

function readField(description: Readonly<Record<string, unknown>>): FieldInfo {
  const is = (property: string) => description[property] === true
  const text = (property: string) =>
    typeof description[property] === 'string' ? description[property] : undefined
  const number = (property: string) =>
    typeof description[property] === 'number' ? description[property] : undefined
  const name = String(description['name'])
  const kind = findKind(description)
  return {
    name,
    title: text('title') ?? toTitle(name),
    help: text('help') ?? '',
    kind,
    choices: readChoices(description['selectionList'], kind),
    isRequired: is('required'),
    isReadonly: is('readonly') || is('view') || is('sequence'),
    isComputed: is('virtual') || is('sequence'),
    isSecret: is('password') || is('hidden'),
    isWriteOnly: is('writeOnly'),
    isSystem: SYSTEM_FIELDS.includes(name),
    isName: is('nameColumn'),
    isUnique: is('unique'),
    minSize: number('minSize'),
    maxSize: number('maxSize'),
    precision: number('precision'),
    scale: number('scale'),
    defaultValue: description['defaultValue'],
    isNowByDefault: is('defaultNow'),
    target: text('target'),
    targetName: text('targetName'),
    mappedBy: text('mappedBy'),
  }
}

function findKind(description: Readonly<Record<string, unknown>>): FieldKind {
  if (description['view'] === true) return 'inverse'
  if (description['json'] === true) return 'json'
  return KINDS[String(description['type'])] ?? 'string'
}

function readChoices(list: unknown, kind: FieldKind): readonly Choice[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined
  const isNumber = kind === 'integer' || kind === 'long'
  return (list as readonly { value: string; title?: string }[]).map(({ value, title }) => ({
    value: isNumber ? Number(value) : value,
    title: title ?? value,
  }))
}

export function readModel(description: Description): ModelInfo {
  const fields = description.fields.map(readField)
  return {
    name: description.model,
    title: description.title ?? toTitle(shortenName(description.model)),
    fields,
    listFields: description.listFields ?? [],
    nameField: fields.find(({ isName }) => isName)?.name,
    permissions: description.perms ?? ALL_PERMISSIONS,
  }
}

/** `com.axelor.contact.db.Contact` → `Contact`. */
export function shortenName(model: string): string {
  return model.slice(model.lastIndexOf('.') + 1)
}

/** `com.axelor.contact.db.Contact` → `com.axelor.contact.db`. */
export function findPackage(model: string): string {
  return model.slice(0, Math.max(0, model.lastIndexOf('.')))
}

/** `dateOfBirth` → `Date of birth`. */
export function toTitle(name: string): string {
  const words = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** A text that stands for a record: the value of its name field, or its id. */
export function getRecordName(
  record: Readonly<Record<string, unknown>>,
  nameField: string | undefined,
): string {
  const name = nameField === undefined ? undefined : record[nameField]
  return typeof name === 'string' && name !== '' ? name : `#${String(record['id'])}`
}

/** The fields whose values a person can change in a form. */
export function listEditableFields({ fields }: ModelInfo): readonly FieldInfo[] {
  return fields.filter(({ isReadonly, isSystem, kind }) => !isReadonly && !isSystem && kind !== 'inverse')
}

/** The person may create records, and there is something to type. The service writes the records of some models itself. */
export function canCreate(model: ModelInfo): boolean {
  return model.permissions.create && listEditableFields(model).length > 0
}
