// Lists the fields that a write sets or changes. Each of them needs a permission.
import { getMemberId, type Draft } from '../../model/write/draft.js'
import { isWritable } from '../../model/definition/model.js'
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
  const isHidden = (name: string) => readableFields !== undefined && !readableFields.has(name)
  const own = Object.entries(sent).filter(([name, value]) => {
    const field = model.fields.get(name)
    // A field that is not read with the record cannot be compared here, so it counts as changed.
    const isUnreadable = field?.secret !== undefined || field?.type === 'binary'
    return (
      field && isWritable(field) && (isUnreadable || isHidden(name) || !isSameValue(old[name] ?? null, value))
    )
  })
  const membership = [...lists].filter(([name, members]) => {
    const currentMembers = old[name]
    const ids = new Set(
      Array.isArray(currentMembers) ? currentMembers.map((item: Value) => getReferenceId(item)) : [],
    )
    const isNew = (id: number | undefined) => id === undefined || !ids.has(id)
    return (
      isHidden(name) || members.length !== ids.size || members.some((member) => isNew(getMemberId(member)))
    )
  })
  return [...own, ...membership].map(([name]) => name)
}
