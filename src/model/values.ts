// Client data → Values, or one Refusal that lists every fault.
import { Refusal } from '../errors.js'
import { Fault, parseValue, type Field } from './field.js'
import { isShown, isWritable, type Model } from './model.js'
import { parseDatetime } from './moment.js'
import { didYouMean } from './similar.js'
import { isObject, type Value, type Values } from './value.js'

const NOT_FIELDS = new Set(['id', 'version'])
const MAX_NAMED_FAULTS = 100
/** More than any model has fields: whoever sends more wants to keep the service busy. */
const MAX_KEYS = 2_000

/** Everything a new record holds: what was sent, defaults, nulls. */
export function valuesToCreate(model: Model, data: unknown, now: string): Values {
  const faults = new Faults()
  const sent = parseSent(model, data, faults)
  const values: Values = {}
  for (const field of model.fields.values()) {
    if (!isWritable(field) || field.type === 'binary') continue
    const value = sent[field.name] ?? (Object.hasOwn(sent, field.name) ? null : defaultOf(field, now))
    if (value === null && field.required && !faults.has(field.name)) faults.add(field.name, 'is required')
    values[field.name] = value
  }
  faults.refuseIfAny(model)
  return values
}

/** Only what was sent. */
export function valuesToUpdate(model: Model, data: unknown): Values {
  const faults = new Faults()
  const values = parseSent(model, data, faults)
  for (const [name, value] of Object.entries(values)) {
    if (value === null && model.fields.get(name)?.required) faults.add(name, 'is required')
  }
  faults.refuseIfAny(model)
  return values
}

/** The computed fields of a record that holds these values. */
export function computeValues(model: Model, values: Readonly<Values>): Values {
  const faults = new Faults()
  const known: Values = {}
  for (const field of model.fields.values()) {
    if (isShown(field) && isWritable(field)) known[field.name] = values[field.name] ?? null
  }
  const computed: Values = {}
  for (const field of model.fields.values()) {
    if (!field.computed) continue
    const value = compute(field, known)
    if (value instanceof Fault) faults.add(field.name, value.message)
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

function parseSent(model: Model, data: unknown, faults: Faults): Values {
  if (!isObject(data)) throw new Refusal('bad-request', '"data" must be an object of fields')
  const entries = Object.entries(data)
  if (entries.length > MAX_KEYS) throw new Refusal('bad-request', `"data" has more than ${MAX_KEYS} keys`)
  const values: Values = {}
  for (const [name, input] of entries) {
    if (NOT_FIELDS.has(name) || input === undefined) continue
    const field = model.fields.get(name)
    if (!field)
      faults.add(
        name,
        `is no field of ${model.name}${faults.areMany ? '' : didYouMean(name, namesToSend(model))}`,
      )
    // A binary field has no column: sent as null, as it would be read, it means nothing.
    else if (!isWritable(field) || (field.type === 'binary' && input === null)) continue
    else if (input === null) values[name] = null
    else {
      const value = parseValue(field, input)
      if (value instanceof Fault) faults.add(name, value.message)
      else values[name] = value
    }
  }
  return values
}

function namesToSend(model: Model): string[] {
  return [...model.fields.values()].filter(isWritable).map((field) => field.name)
}

/** What a new record holds where nothing was sent. */
export function defaultOf(field: Field, now: string): Value {
  if (field.default !== 'now') return field.default ?? null
  if (field.type === 'date') return now.slice(0, 10)
  if (field.type === 'time') return now.slice(11, 19)
  return field.type === 'datetime' ? (parseDatetime(now) ?? null) : field.default
}

class Faults {
  readonly #byField = new Map<string, string>()

  add(field: string, message: string): void {
    if (!this.#byField.has(field)) this.#byField.set(field, message)
  }

  /** No more of them will be named: nothing is worth looking up for the rest. */
  get areMany(): boolean {
    return this.#byField.size >= MAX_NAMED_FAULTS
  }

  has(field: string): boolean {
    return this.#byField.has(field)
  }

  refuseIfAny(model: Model): void {
    if (this.#byField.size === 0) return
    const named = [...this.#byField].slice(0, MAX_NAMED_FAULTS)
    const errors = Object.fromEntries(named.map(([field, message]) => [field.slice(0, 100), message]))
    const list = named.slice(0, 5).map(([field, message]) => `${field.slice(0, 100)} ${message}`)
    const more = this.#byField.size > list.length ? ` and ${this.#byField.size - list.length} more` : ''
    throw new Refusal('invalid', `${model.name} was not written: ${list.join('; ')}${more}`, { errors })
  }
}
