// A record as it is just after it was written, where nothing of it has to be looked up again.
import { isReference, isReadByDefault, type Model } from '../../../src/model/definition/model.js'
import type { Value, Values } from '../../../src/model/values/value.js'
import type { WireRecord } from '../../../src/wire.js'

/** The record as it was just written. */
export function recordOf(model: Model, id: number, version: number, values: object): WireRecord {
  const record: Record<string, Value> & { id: number; version: number } = { id, version }
  for (const field of model.fields.values()) {
    if (isReadByDefault(field)) record[field.name] = (values as Values)[field.name] ?? null
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
  const empty: Values = {}
  for (const name of model.ownedLists) empty[name] = []
  return empty
}

/** True if a list of the record has members. A write reads their ids; an answer also shows their names. */
export function hasMembers(model: Model, record: WireRecord): boolean {
  for (const name of model.ownedLists) {
    const members = record[name]
    if (Array.isArray(members) && members.length > 0) return true
  }
  return false
}
