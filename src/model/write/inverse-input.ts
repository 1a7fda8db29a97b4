// Inverse relations that existing clients send back with a record. A write cannot change them, so they must equal the stored ones.
import { FieldError, type Field, type Relation } from '../values/field.js'
import { parseValue } from '../values/field-types.js'
import { isInverse, isWritable, type Model } from '../definition/model.js'
import { RELATED_RECORD_KEYS } from './related-input.js'
import type { Visibility } from '../query/visibility.js'
import { isId, isObject, isSameValue, type Json, type Value } from '../values/value.js'

/** The content of an inverse relation as a client sent it. Only the protocol of existing clients creates one; JSON cannot. */
export class InverseClaim {
  constructor(readonly sent: unknown) {}
}

export interface ClaimedMember {
  readonly id: number
  /** The other values that were sent for the member, by field. */
  readonly fields: ReadonlyMap<string, unknown>
}

/** Tells the client which field to write instead. */
export function describeInverseError({ target, mappedBy }: Relation): string {
  return `is the inverse of ${target}.${mappedBy ?? ''}: change that field instead`
}

/** Reads of an inverse list have the same limits. */
const MAX_CLAIMED_MEMBERS = 1_000
const MAX_CLAIMED_FIELDS = 64

/** The part of a draft that a claim belongs to. A new record has no key. */
interface ClaimHolder {
  readonly model: Model
  readonly key: object | undefined
  inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
}

/** Stores the input of an inverse relation in the draft. Returns an error message if it is no claim or cannot be true. */
export function readInverseClaim(
  visibility: Visibility,
  draft: ClaimHolder,
  field: Field,
  input: unknown,
): string | undefined {
  const { relation } = field
  if (!relation) return undefined
  const isShown = visibility.findReadable(draft.model, field.name) !== undefined
  const members =
    isShown && input instanceof InverseClaim ? readMembers(visibility, relation, input) : undefined
  // No record can refer to a new one yet.
  if (!members || (!draft.key && members.length > 0)) return describeInverseError(relation)
  if (draft.key) draft.inverses = new Map(draft.inverses).set(field.name, members)
  return undefined
}

/** Returns undefined if the input cannot be compared with stored records. It is then rejected like any other write. */
function readMembers(
  visibility: Visibility,
  relation: Relation,
  { sent }: InverseClaim,
): readonly ClaimedMember[] | undefined {
  if (Array.isArray(sent) && !relation.isList) return undefined
  const target = visibility.getTarget(relation)
  const items: readonly unknown[] = sent === null ? [] : [sent].flat()
  const members = items.flatMap((item) => readMember(visibility, target, item) ?? [])
  const names = new Set(members.flatMap(({ fields }) => [...fields.keys()]))
  const isWhole =
    members.length === items.length && items.length <= MAX_CLAIMED_MEMBERS && names.size <= MAX_CLAIMED_FIELDS
  return isWhole ? members : undefined
}

function readMember(visibility: Visibility, target: Model, item: unknown): ClaimedMember | undefined {
  if (!isObject(item) || !isId(item['id'])) return undefined
  const fields = new Map<string, unknown>()
  for (const [name, value] of Object.entries(item)) {
    const field = target.fields.get(name)
    if (RELATED_RECORD_KEYS.has(name) || (field && isIgnoredInput(field, value))) continue
    if (!visibility.findReadable(target, name)) return undefined
    fields.set(name, value)
  }
  return { id: item['id'], fields }
}

/** A write ignores the same values in any record that a client sends back. */
function isIgnoredInput(field: Field, value: unknown): boolean {
  return (!isWritable(field) && !isInverse(field)) || (field.type === 'binary' && value === null)
}

/** True if the claim equals the stored relation as the user may see it: the same members, and no value of them differs. */
export function matchesClaim(target: Model, members: readonly ClaimedMember[], visible: unknown): boolean {
  if (visible === undefined) return false
  const stored = new Map([visible].flat().flatMap((each) => (isObject(each) ? [[each['id'], each]] : [])))
  const ids = new Set(members.map(({ id }) => id))
  if (ids.size !== stored.size) return false
  return members.every(({ id, fields }) => {
    const record = stored.get(id)
    return (
      record &&
      [...fields].every(([name, sent]) => isSameFieldValue(target.fields.get(name), sent, record[name]))
    )
  })
}

function isSameFieldValue(field: Field | undefined, sent: unknown, stored: unknown): boolean {
  // The user may not read the value, so they cannot have sent it back.
  if (!field || stored === undefined) return false
  if (field.relation) return haveEqualIds(sent instanceof InverseClaim ? sent.sent : sent, stored)
  if (sent === null) return stored === null
  const value = parseValue(field, sent)
  return !(value instanceof FieldError) && isSameValue(value, stored as Value)
}

function haveEqualIds(sent: unknown, stored: unknown): boolean {
  const [ours, theirs] = [listSortedIds(sent, true), listSortedIds(stored, false)]
  return ours !== undefined && theirs !== undefined && isSameValue(ours, theirs)
}

/**
 * Lists the ids in ascending order. Returns undefined if an item has no id. `refusesValues` also refuses items with other values, because these
 * would change a record.
 */
function listSortedIds(value: unknown, refusesValues: boolean): Json[] | undefined {
  const items: readonly unknown[] = value === null ? [] : [value].flat()
  const ids = items.flatMap((item) => {
    if (!isObject(item) || !isId(item['id'])) return []
    return refusesValues && Object.keys(item).some((key) => !RELATED_RECORD_KEYS.has(key)) ? [] : [item['id']]
  })
  return ids.length === items.length ? [...new Set(ids)].sort((a, b) => a - b) : undefined
}
