// Lists the fields that a write sets or changes. Each of them needs a permission.
import { getMemberId, type Draft } from '../../model/write/draft.js'
import { isWritable, type Model } from '../../model/definition/model.js'
import type { Field } from '../../model/values/field.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { getDefaultValue, toValues } from '../../model/definition/record-values.js'
import type { WireRecord } from '../../wire.js'
import type { GrantedAccess } from './record-access.js'

/** Lists the fields of a new record whose values differ from the defaults. */
export function listSetFields({ model, lists }: Draft, sent: Values, now: string): string[] {
  const own = Object.entries(sent).filter(([name, value]) => {
    const field = model.fields.get(name)
    return value !== null && field && isWritable(field) && !isSameValue(value, getDefaultValue(field, now))
  })
  const filled = [...lists].filter(([, members]) => members.length > 0)
  return [...own, ...filled].map(([name]) => name)
}

/**
 * Picks the sent values that differ from those of the record that the client has seen. A value that cannot be compared, or that the client
 * cannot see, always counts as different.
 */
export function pickSentChanges(
  model: Model,
  seen: WireRecord,
  sent: Values,
  { readableFields }: GrantedAccess,
): Values {
  const old = toValues(model, seen)
  const changed = Object.entries(sent).filter(([name, value]) => {
    const field = model.fields.get(name)
    return !field || differs(field, old[name], value, readableFields)
  })
  return Object.fromEntries(changed)
}

/** A field that is not read with the record cannot be compared here, so its value counts as different. */
function differs(
  { name, secret, type }: Field,
  old: Value | undefined,
  sent: Value,
  readableFields: ReadableFields,
): boolean {
  const isUnreadable = secret !== undefined || type === 'binary'
  return isUnreadable || isHidden(name, readableFields) || !isSameValue(old ?? null, sent)
}

type ReadableFields = GrantedAccess['readableFields']

function isHidden(name: string, readableFields: ReadableFields): boolean {
  return readableFields !== undefined && !readableFields.has(name)
}

/** Returns the record with the lists that the client has seen: hooks may have changed them since. */
export function withSeenLists({ lists }: Draft, record: WireRecord, seen: WireRecord): WireRecord {
  if (record === seen || lists.size === 0) return record
  return { ...record, ...Object.fromEntries([...lists.keys()].map((name) => [name, seen[name] ?? []])) }
}

/**
 * Lists the fields whose values or members change. A value sent for a field that is hidden in the record always counts, so that a client
 * cannot find out the hidden value by sending guesses.
 */
export function listChangedFields(
  { model, lists }: Draft,
  before: WireRecord,
  sent: Values,
  { readableFields }: GrantedAccess,
): string[] {
  const old = toValues(model, before)
  const own = Object.entries(sent).filter(([name, value]) => {
    const field = model.fields.get(name)
    return field && isWritable(field) && differs(field, old[name], value, readableFields)
  })
  const membership = [...lists].filter(([name, members]) => {
    const currentMembers = old[name]
    const ids = new Set(
      Array.isArray(currentMembers) ? currentMembers.map((item: Value) => getReferenceId(item)) : [],
    )
    const isNew = (id: number | undefined) => id === undefined || !ids.has(id)
    return (
      isHidden(name, readableFields) ||
      members.length !== ids.size ||
      members.some((member) => isNew(getMemberId(member)))
    )
  })
  return [...own, ...membership].map(([name]) => name)
}
