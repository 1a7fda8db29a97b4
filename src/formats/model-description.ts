// Describes a model in the terms of the protocol: the metadata that a form needs about each field.
import type { Choice, Field, FieldTypeName, Relation } from '../model/values/field.js'
import { listVisibleOrderKeys } from '../model/query/sort.js'
import { isReadable, isInverse, type Model, USER_MODEL } from '../model/definition/model.js'
import { ID_FIELD, KEY_FIELD_NAMES, VERSION_FIELD } from '../model/query/path.js'
import type { Visibility } from '../model/query/visibility.js'
import type { Value, JsonObject } from '../model/values/value.js'

const PROTOCOL_TYPE_NAMES: Readonly<Record<FieldTypeName, string>> = {
  string: 'STRING',
  text: 'TEXT',
  integer: 'INTEGER',
  long: 'LONG',
  decimal: 'DECIMAL',
  boolean: 'BOOLEAN',
  date: 'DATE',
  time: 'TIME',
  datetime: 'DATETIME',
  uuid: 'UUID',
  enum: 'ENUM',
  json: 'TEXT',
  binary: 'BINARY',
  'many-to-one': 'MANY_TO_ONE',
  'one-to-one': 'ONE_TO_ONE',
  'one-to-many': 'ONE_TO_MANY',
  'many-to-many': 'MANY_TO_MANY',
}

const TIME_TYPES: ReadonlySet<FieldTypeName> = new Set(['date', 'time', 'datetime'])

export interface ModelDescription {
  readonly model: string
  readonly title: string
  readonly fields: readonly JsonObject[]
  /** The fields that a find returns by default, besides `id` and `version`. */
  readonly listFields: readonly string[]
  /** The fields inside JSON fields. Models declare none, so it is always empty. */
  readonly jsonFields: JsonObject
  /** Permissions under the names of the protocol; null if the user may do everything. */
  readonly perms: Readonly<Record<string, boolean>> | null
}

export function describeModel(
  visibility: Visibility,
  model: Model,
  perms: ModelDescription['perms'],
): ModelDescription {
  const known = [...model.fields.values()].filter((field) => visibility.isVisible(model, field))
  const fields = known.map((field) => describeField(visibility, model, field))
  const keyFields = [
    { ...describeField(visibility, model, ID_FIELD), primary: true },
    describeField(visibility, model, VERSION_FIELD),
  ]
  return {
    model: model.name,
    title: model.title,
    fields: [...keyFields, ...fields],
    listFields: model.listFields.filter((name) => visibility.findReadable(model, name)),
    jsonFields: {},
    perms,
  }
}

/** Omits nulls, false, zeros and empty texts. */
function describeField(visibility: Visibility, model: Model, field: Field): JsonObject {
  const { name, type, title, help, unique, computed, isSystem, sequence, secret } = field
  const described = {
    name,
    type: PROTOCOL_TYPE_NAMES[type],
    title,
    help,
    ...describeLimits(field),
    ...describeRelation(visibility, field),
    required: field.required && !isSystem,
    unique,
    readonly: !visibility.canWrite(model, field),
    json: type === 'json',
    virtual: computed !== undefined,
    sequence: sequence !== undefined,
    nameColumn: name === model.nameField,
    password: secret !== undefined,
    hidden: !isReadable(field) && type !== 'binary',
    ...describeAccess(visibility, model, field),
    selectionList: field.selection?.map(describeChoice),
    defaultNow: field.default === 'now' && TIME_TYPES.has(type),
  }
  const entries = Object.entries(described).filter(([, value]) => hasMeaning(value as Value))
  return { ...Object.fromEntries(entries), ...describeBounds(field), ...describeDefault(field) }
}

/** Tells what a user may do with the field who may not read it, or only in some records. */
function describeAccess(visibility: Visibility, model: Model, field: Field): JsonObject {
  if (!isReadable(field) || KEY_FIELD_NAMES.includes(field.name)) return {}
  const isRead = visibility.findReadable(model, field.name) !== undefined
  return { writeOnly: !isRead, masked: isRead && visibility.mask(model, field) !== undefined }
}

/** Bounds are kept even if they are 0. */
function describeBounds({ min, max }: Field): JsonObject {
  return { ...(min === undefined ? {} : { minSize: min }), ...(max === undefined ? {} : { maxSize: max }) }
}

/** Returns the default as a client would send it. The default of a secret is secret, too: only its existence matters for a create. */
function describeDefault({ type, secret, required, default: value }: Field): JsonObject {
  const isNow = value === 'now' && TIME_TYPES.has(type)
  if (value === undefined || value === null || isNow) return {}
  if (secret) return required ? { hasDefault: true } : {}
  return { defaultValue: value }
}

function describeLimits(field: Field): JsonObject {
  const { type, minLength, maxLength, pattern, format, precision, scale } = field
  return type === 'string' || type === 'text'
    ? { minSize: minLength, maxSize: maxLength, pattern: pattern?.value, format: format?.value }
    : { precision, scale }
}

function describeRelation(visibility: Visibility, field: Field): JsonObject {
  const { relation } = field
  if (!relation) return {}
  const target = visibility.getTarget(relation)
  const targetName = visibility.findReadable(target, target.nameField ?? '')?.name
  const orderBy = listVisibleOrderKeys(visibility, field)
  return {
    target: relation.target,
    targetName,
    mappedBy: relation.mappedBy,
    view: isInverse(field),
    nullable: !relation.isList && field.required && hidesTargets(visibility, relation),
    ...(orderBy.length > 0 ? { orderBy } : {}),
  }
}

/** True if a reference may lead to a record that the user may not see. The answer then has null instead. Everybody sees the names of users. */
export function hidesTargets(visibility: Visibility, relation: Relation): boolean {
  const target = visibility.getTarget(relation)
  return target.name !== USER_MODEL && visibility.visibleRecords(target) !== undefined
}

/** The protocol has texts for the values of every type. */
function describeChoice({ value, title }: Choice, order: number): JsonObject {
  return { value: String(value), title, order }
}

function hasMeaning(value: Value | undefined): boolean {
  return ![undefined, null, false, '', 0].some((nothing) => nothing === value)
}
