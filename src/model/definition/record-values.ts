// The values of a record: as they are compared and logged, and those that follow from others.
import { Faults } from './field-errors.js'
import {
  Fault,
  parseValue,
  storageOf,
  type Field,
  type Relation,
  type Storage,
} from '../values/field-types.js'
import { isShown, type Model } from './model.js'
import { parseDate, parseDatetime, parseTime } from '../values/date-time.js'
import { idOf, isId, isObject, type Value, type Values } from '../values/value.js'

/** A record as answered → its values: of its neighbours only who they are, since the rest is theirs. */
export function valuesOf(model: Model, record: object): Values {
  const values: Values = {}
  for (const field of model.fields.values()) {
    if (!isShown(field)) continue
    const value = (record as Values)[field.name] ?? null
    values[field.name] = field.relation ? membersOf(field.relation, value) : value
  }
  return values
}

/** Who is in a list does not change with the order in which it is shown. */
function membersOf({ orderBy }: Relation, value: Value): Value {
  const members = identitiesOf(value)
  if (!orderBy || !Array.isArray(members)) return members
  return (members as readonly Value[]).toSorted((a, b) => idOf(a) - idOf(b))
}

function identitiesOf(value: Value): Value {
  if (Array.isArray(value)) return value.map((item: Value) => identitiesOf(item))
  return isObject(value) ? { id: (value as Readonly<Record<string, Value>>)['id'] ?? null } : null
}

/** The computed fields of a record that holds these values. */
export function computeValues(model: Model, values: Readonly<Values>, place = ''): Values {
  const faults = new Faults()
  const { from, fields } = computingOf(model)
  const known: Values = {}
  for (const name of from) known[name] = values[name] ?? null
  const computed: Values = {}
  for (const field of fields) {
    const value = compute(field, known)
    if (value instanceof Fault) faults.add(place + field.name, value.message)
    else known[field.name] = computed[field.name] = value
  }
  faults.refuseIfAny(model)
  return computed
}

interface Computing {
  /** What computed fields see of a record, besides those that come before them. */
  readonly from: readonly string[]
  readonly fields: readonly Field[]
}

const COMPUTING = new WeakMap<Model, Computing>()

function computingOf(model: Model): Computing {
  const known = COMPUTING.get(model)
  if (known) return known
  const all = [...model.fields.values()]
  const isSeen = (field: Field) => isShown(field) && !field.kept && !field.computed && !field.relation?.isList
  const fields = all.filter(({ computed }) => computed)
  const made = { from: fields.length > 0 ? all.filter(isSeen).map(({ name }) => name) : [], fields }
  COMPUTING.set(model, made)
  return made
}

function compute(field: Field, known: Readonly<Values>): Value | Fault {
  let result: unknown
  try {
    result = field.computed?.({ ...known })
  } catch (error) {
    return new Fault(
      `cannot be computed from these values: ${error instanceof Error ? error.message : 'it failed'}`,
    )
  }
  if (result === undefined || result === null) return null
  const value = parseValue(field, result)
  return value instanceof Fault ? new Fault(`is computed, and ${value.message}`) : value
}

/** What a new record holds where nothing was sent. */
export function defaultOf(field: Field, now: string): Value {
  if (field.default !== 'now') return field.default ?? null
  if (field.type === 'date') return now.slice(0, 10)
  if (field.type === 'time') return now.slice(11, 19)
  return field.type === 'datetime' ? (parseDatetime(now) ?? null) : field.default
}

/** Whether a field of this kind can have held it, whatever it was asked to be besides: bounds and choices come and go. */
export function isHeldBy(field: Field, value: Value): boolean {
  if (value === null) return true
  if (field.relation?.isList) return Array.isArray(value) && value.every(isIdentity)
  if (field.relation) return isIdentity(value)
  const storage = storageOf(field)
  if (storage === 'json') return true
  if (storage === 'file') return isObject(value)
  if (storage === 'integer') return Number.isSafeInteger(value)
  if (storage === 'boolean') return typeof value === 'boolean'
  return typeof value === 'string' && isSpelledFor(storage, value)
}

function isSpelledFor(storage: Storage, text: string): boolean {
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

function isIdentity(value: Value): boolean {
  return isObject(value) && isId(value['id'])
}
