// Converts records to values and back, and computes values: computed fields, their templates, and defaults.
import { FieldErrors } from './field-errors.js'
import { FieldError, type Field, type Relation, type Storage } from '../values/field.js'
import { parseValue, getStorage } from '../values/field-types.js'
import type { Model } from './model.js'
import { parseDate, parseDatetime, parseTime } from '../values/date-time.js'
import { getReferenceId, isId, isObject, type Value, type Values } from '../values/value.js'

/** Converts a record of an answer to its values. Related records become `{ id }`. */
export function toValues(model: Model, record: object): Values {
  const values: Values = {}
  for (const { name, relation } of model.shownFields) {
    const value = (record as Values)[name] ?? null
    values[name] = relation && value !== null ? toMemberIds(relation, value) : value
  }
  return values
}

/** Builds a record from values that a write has stored, as a read of the record would return it. */
export function buildRecord(model: Model, id: number, version: number, values: object): WrittenRecord {
  const record: WrittenRecord = { id, version }
  for (const { name } of model.shownFields) record[name] = (values as Values)[name] ?? null
  return record
}

/** Sets the values of a record that it shows: secrets and files are in no record. */
export function setShownValues(record: WrittenRecord, values: Readonly<Values>): void {
  for (const name of Object.keys(values)) if (Object.hasOwn(record, name)) record[name] = values[name] ?? null
}

type WrittenRecord = Record<string, Value> & { id: number; version: number }

/** True if an owned list of the record has members. */
export function hasMembers(model: Model, record: object): boolean {
  for (const name of model.ownedLists) {
    const members = (record as Values)[name]
    if (Array.isArray(members) && members.length > 0) return true
  }
  return false
}

/** Sorts the members of an ordered list by id: the order of display is not a change of the list. */
function toMemberIds({ orderBy }: Relation, value: Value): Value {
  const members = toIds(value)
  if (!orderBy || !Array.isArray(members)) return members
  return (members as readonly Value[]).toSorted((a, b) => getReferenceId(a) - getReferenceId(b))
}

function toIds(value: Value): Value {
  if (Array.isArray(value)) return value.map((item: Value) => toIds(item))
  return isObject(value) ? { id: (value as Readonly<Record<string, Value>>)['id'] ?? null } : null
}

/** Computes the computed fields of a record with these values. `changes` replace some of the values. */
export function computeValues(
  model: Model,
  values: Readonly<Values>,
  path = '',
  changes: Readonly<Values> = NO_VALUES,
): Values {
  let errors: FieldErrors | undefined
  const known: Values = {}
  for (const name of model.computedInputs)
    known[name] = (Object.hasOwn(changes, name) ? changes[name] : values[name]) ?? null
  const computed: Values = {}
  for (const field of model.computedFields) {
    const value = computeField(field, known)
    if (value instanceof FieldError) (errors ??= new FieldErrors()).add(path + field.name, value.message)
    else known[field.name] = computed[field.name] = value
  }
  errors?.refuseIfAny(model)
  return computed
}

const NO_VALUES: Readonly<Values> = {}

function computeField(field: Field, known: Readonly<Values>): Value | FieldError {
  let result: unknown
  try {
    result = field.computed?.({ ...known })
  } catch (error) {
    return new FieldError(
      `cannot be computed from these values: ${error instanceof Error ? error.message : 'the function failed'}`,
    )
  }
  if (result === undefined || result === null) return null
  const value = parseValue(field, result)
  return value instanceof FieldError
    ? new FieldError(`has an invalid computed value: it ${value.message}`)
    : value
}

/** Templates such as `{firstName} {lastName}` define the computed fields of models written as JSON. */
const PLACEHOLDER = /\{([^{}]*)\}/g

export function listTemplateFields(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '')
}

/** Collapses white space, so that missing values leave no gap. An empty result is null. */
export function compileTemplate(template: string): (record: Readonly<Values>) => Value {
  // Splitting by a capture group puts the captured field names at the odd indexes.
  const pieces = template.split(PLACEHOLDER)
  return (record) => {
    let text = ''
    for (const [index, piece] of pieces.entries())
      text += index % 2 === 0 ? piece : formatTemplateValue(record[piece] ?? null)
    if (EXTRA_WHITE_SPACE.test(text)) text = text.replace(/\s+/g, ' ')
    text = text.trim()
    return text === '' ? null : text
  }
}

/** White space that is not a single space. */
const EXTRA_WHITE_SPACE = /\s\s|[^\S ]/

function formatTemplateValue(value: Value): string {
  if (value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Returns the value of a new record if the client sent none. */
export function getDefaultValue(field: Field, now: string): Value {
  if (field.default !== 'now') return field.default ?? null
  if (field.type === 'date') return now.slice(0, 10)
  if (field.type === 'time') return now.slice(11, 19)
  return field.type === 'datetime' ? (parseDatetime(now) ?? null) : field.default
}

/** A field of this type may have stored the value at some time. Ignores bounds and selections, because they may have changed since. */
export function isStorableValue(field: Field, value: Value): boolean {
  if (value === null) return true
  if (field.relation?.isList) return Array.isArray(value) && value.every(isIdObject)
  if (field.relation) return isIdObject(value)
  const storage = getStorage(field)
  if (storage === 'json') return true
  if (storage === 'file') return isObject(value)
  if (storage === 'integer') return Number.isSafeInteger(value)
  if (storage === 'boolean') return typeof value === 'boolean'
  return typeof value === 'string' && isStorableText(storage, value)
}

function isStorableText(storage: Storage, text: string): boolean {
  switch (storage) {
    case 'decimal':
      return /^-?\d{1,38}(\.\d{1,38})?$/.test(text)
    case 'date':
      return parseDate(text) !== undefined
    case 'time':
      return parseTime(text) !== undefined
    case 'datetime':
      return parseDatetime(text) !== undefined
    case 'uuid':
      return /^[0-9a-f-]{36}$/.test(text)
    default:
      return storage === 'text'
  }
}

function isIdObject(value: Value): boolean {
  return isObject(value) && isId(value['id'])
}
