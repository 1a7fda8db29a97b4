// The values of a record: as they are compared and logged, and those that follow from others.
import { Faults } from './faults.js'
import { Fault, parseValue, type Field } from './field.js'
import { isShown, type Model } from './model.js'
import { parseDatetime } from './moment.js'
import { isObject, type Value, type Values } from './value.js'

/** A record as answered → its values: of its neighbours only who they are, since the rest is theirs. */
export function valuesOf(model: Model, record: object): Values {
  const values: Values = {}
  for (const field of model.fields.values()) {
    if (!isShown(field)) continue
    const value = (record as Values)[field.name] ?? null
    values[field.name] = field.relation ? identitiesOf(value) : value
  }
  return values
}

function identitiesOf(value: Value): Value {
  if (Array.isArray(value)) return value.map((item: Value) => identitiesOf(item))
  return isObject(value) ? { id: (value as Readonly<Record<string, Value>>)['id'] ?? null } : null
}

/** The computed fields of a record that holds these values. */
export function computeValues(model: Model, values: Readonly<Values>, place = ''): Values {
  const faults = new Faults()
  const known: Values = {}
  for (const field of model.fields.values()) {
    if (isShown(field) && !field.kept && !field.computed && !field.relation?.isList)
      known[field.name] = values[field.name] ?? null
  }
  const computed: Values = {}
  for (const field of model.fields.values()) {
    if (!field.computed) continue
    const value = compute(field, known)
    if (value instanceof Fault) faults.add(place + field.name, value.message)
    else known[field.name] = computed[field.name] = value
  }
  faults.refuseIfAny(model)
  return computed
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
