// The other side of a relation as an existing client sends it back with its record: nothing is written through it, so it must be what is stored.
import { FieldError, parseValue, type Field, type Relation } from '../values/field-types.js'
import { isInverse, isWritable, type Model } from '../definition/model.js'
import { RELATED_RECORD_KEYS } from './related-input.js'
import type { Visibility } from '../query/visibility.js'
import { isId, isObject, isSameValue, type Json, type Value } from '../values/value.js'

/** What its sender believes an inverse relation to hold. Only the habits of existing clients make one: no JSON can. */
export class InverseClaim {
  constructor(readonly sent: unknown) {}
}

export interface ClaimedMember {
  readonly id: number
  /** What else was said of it, by field. */
  readonly fields: ReadonlyMap<string, unknown>
}

/** Where to write it. */
export function describeInverseError({ target, mappedBy }: Relation): string {
  return `is the other side of ${target}.${mappedBy ?? ''}: write it there`
}

/** As many as an inverse list shows, and as many fields as are shown of each. */
const MAX_CLAIMED_MEMBERS = 1_000
const MAX_CLAIMED_FIELDS = 64

/** What holds claims; a new record has no key yet. */
interface ClaimHolder {
  readonly model: Model
  readonly key: object | undefined
  inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
}

/** Notes what was sent for an inverse relation; answers what is wrong with it where it is no claim, or cannot be true. */
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
  // Nobody refers to a new record yet.
  if (!members || (!draft.key && members.length > 0)) return describeInverseError(relation)
  if (draft.key) draft.inverses = new Map(draft.inverses).set(field.name, members)
  return undefined
}

/** Undefined where it says what cannot be compared with what is stored: then it is refused like any other write. */
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

/** As in every record that is sent back. */
function isIgnoredInput(field: Field, value: unknown): boolean {
  return (!isWritable(field) && !isInverse(field)) || (field.type === 'binary' && value === null)
}

/** Whether a claim is what is stored, as its sender is shown it: nobody else in it, nobody missing, and nothing said of them that differs. */
export function matchesClaim(target: Model, members: readonly ClaimedMember[], shown: unknown): boolean {
  if (shown === undefined) return false
  const stored = new Map([shown].flat().flatMap((each) => (isObject(each) ? [[each['id'], each]] : [])))
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
  // What is hidden from them they cannot send back.
  if (!field || stored === undefined) return false
  if (field.relation) return haveEqualIds(sent instanceof InverseClaim ? sent.sent : sent, stored)
  if (sent === null) return stored === null
  const value = parseValue(field, sent)
  return !(value instanceof FieldError) && isSameValue(value, stored as Value)
}

function haveEqualIds(sent: unknown, stored: unknown): boolean {
  const [ours, theirs] = [listBareIds(sent, true), listBareIds(stored, false)]
  return ours !== undefined && theirs !== undefined && isSameValue(ours, theirs)
}

/** In one order; undefined if more is said of one of them, which would be a change of it. */
function listBareIds(value: unknown, areBare: boolean): Json[] | undefined {
  const items: readonly unknown[] = value === null ? [] : [value].flat()
  const ids = items.flatMap((item) => {
    if (!isObject(item) || !isId(item['id'])) return []
    return areBare && Object.keys(item).some((key) => !RELATED_RECORD_KEYS.has(key)) ? [] : [item['id']]
  })
  return ids.length === items.length ? [...new Set(ids)].sort((a, b) => a - b) : undefined
}
