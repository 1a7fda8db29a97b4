// Which fields of a record a write sets or changes: each of them needs a right.
import { memberId, type Draft } from '../../model/write/draft.js'
import { isWritable } from '../../model/definition/model.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { getDefaultValue, toValues } from '../../model/definition/record-values.js'
import type { WireRecord } from '../../wire.js'
import type { GrantedAccess } from './record-access.js'

/** What a new record holds that it would not hold by itself. */
export function listSetFields({ model, lists }: Draft, sent: Values, now: string): string[] {
  const own = Object.entries(sent).filter(([name, value]) => {
    const field = model.fields.get(name)
    return value !== null && field && isWritable(field) && !isSameValue(value, getDefaultValue(field, now))
  })
  const filled = [...lists].filter(([, members]) => members.length > 0)
  return [...own, ...filled].map(([name]) => name)
}

/**
 * What is to become different: its own values, and who is in its lists. What is sent for a field that is hidden in the record counts,
 * whatever it holds: nobody is to find out by sending it.
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
    // Of what is not shown with a record nobody knows here whether it is the same.
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
    return isHidden(name) || members.length !== ids.size || members.some((member) => isNew(memberId(member)))
  })
  return [...own, ...membership].map(([name]) => name)
}
