// A record as it is just after it was written, where nothing of it has to be looked up again.
import { isOwnedList, isReference, isShown, type Model } from '../model/model.js'
import type { Value, Values } from '../model/value.js'
import type { WireRecord } from '../wire.js'

/** The record as it was just written. */
export function recordOf(model: Model, id: number, version: number, values: object): WireRecord {
  const record: Record<string, Value> & { id: number; version: number } = { id, version }
  for (const field of model.fields.values()) {
    if (isShown(field)) record[field.name] = (values as Values)[field.name] ?? null
  }
  return record
}

export function referencesIn(model: Model, values: Values): Value[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const field = model.fields.get(name)
    return field && isReference(field) ? [value] : []
  })
}

/** Of a new record that nobody can refer to yet. */
export function emptyLists(model: Model): Values {
  const lists = LISTS.get(model) ?? [...model.fields.values()].filter(isOwnedList).map(({ name }) => name)
  LISTS.set(model, lists)
  const empty: Values = {}
  for (const name of lists) empty[name] = []
  return empty
}

const LISTS = new WeakMap<Model, readonly string[]>()
