// The other side of a relation as an existing client sends it back with its record: nothing is written through it, so it must be what is stored.
import { Fault, parseValue, type Field, type Relation } from '../values/field-types.js'
import { isView, isWritable, type Model } from '../definition/model.js'
import { NEIGHBOUR_KEYS } from './related-input.js'
import type { Sight } from '../query/visibility.js'
import { isId, isObject, sameValue, type Json, type Value } from '../values/value.js'

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
export function inverseFault({ target, mappedBy }: Relation): string {
  return `is the other side of ${target}.${mappedBy ?? ''}: write it there`
}

/** As many as an inverse list shows, and as many fields as are shown of each. */
const MAX_CLAIMED = 1_000
const MAX_FIELDS = 64

/** What holds claims; a new record has no key yet. */
interface Claiming {
  readonly model: Model
  readonly key: object | undefined
  inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
}

/** Notes what was sent for an inverse relation; answers what is wrong with it where it is no claim, or cannot be true. */
export function claimInverse(
  sight: Sight,
  draft: Claiming,
  field: Field,
  input: unknown,
): string | undefined {
  const { relation } = field
  if (!relation) return undefined
  const isShown = sight.readable(draft.model, field.name) !== undefined
  const members = isShown && input instanceof InverseClaim ? membersIn(sight, relation, input) : undefined
  // Nobody refers to a new record yet.
  if (!members || (!draft.key && members.length > 0)) return inverseFault(relation)
  if (draft.key) draft.inverses = new Map(draft.inverses).set(field.name, members)
  return undefined
}

/** Undefined where it says what cannot be compared with what is stored: then it is refused like any other write. */
function membersIn(
  sight: Sight,
  relation: Relation,
  { sent }: InverseClaim,
): readonly ClaimedMember[] | undefined {
  if (Array.isArray(sent) && !relation.isList) return undefined
  const target = sight.target(relation)
  const items: readonly unknown[] = sent === null ? [] : [sent].flat()
  const members = items.flatMap((item) => memberFrom(sight, target, item) ?? [])
  const names = new Set(members.flatMap(({ fields }) => [...fields.keys()]))
  const isWhole = members.length === items.length && items.length <= MAX_CLAIMED && names.size <= MAX_FIELDS
  return isWhole ? members : undefined
}

function memberFrom(sight: Sight, target: Model, item: unknown): ClaimedMember | undefined {
  if (!isObject(item) || !isId(item['id'])) return undefined
  const fields = new Map<string, unknown>()
  for (const [name, value] of Object.entries(item)) {
    const field = target.fields.get(name)
    if (NEIGHBOUR_KEYS.has(name) || (field && isIgnored(field, value))) continue
    if (!sight.readable(target, name)) return undefined
    fields.set(name, value)
  }
  return { id: item['id'], fields }
}

/** As in every record that is sent back. */
function isIgnored(field: Field, value: unknown): boolean {
  return (!isWritable(field) && !isView(field)) || (field.type === 'binary' && value === null)
}

/** Whether a claim is what is stored, as its sender is shown it: nobody else in it, nobody missing, and nothing said of them that differs. */
export function isAsClaimed(target: Model, members: readonly ClaimedMember[], shown: unknown): boolean {
  if (shown === undefined) return false
  const stored = new Map([shown].flat().flatMap((each) => (isObject(each) ? [[each['id'], each]] : [])))
  const ids = new Set(members.map(({ id }) => id))
  if (ids.size !== stored.size) return false
  return members.every(({ id, fields }) => {
    const record = stored.get(id)
    return record && [...fields].every(([name, sent]) => isSame(target.fields.get(name), sent, record[name]))
  })
}

function isSame(field: Field | undefined, sent: unknown, stored: unknown): boolean {
  // What is hidden from them they cannot send back.
  if (!field || stored === undefined) return false
  if (field.relation) return haveSameIds(sent instanceof InverseClaim ? sent.sent : sent, stored)
  if (sent === null) return stored === null
  const value = parseValue(field, sent)
  return !(value instanceof Fault) && sameValue(value, stored as Value)
}

function haveSameIds(sent: unknown, stored: unknown): boolean {
  const [ours, theirs] = [identities(sent, true), identities(stored, false)]
  return ours !== undefined && theirs !== undefined && sameValue(ours, theirs)
}

/** In one order; undefined if more is said of one of them, which would be a change of it. */
function identities(value: unknown, areBare: boolean): Json[] | undefined {
  const items: readonly unknown[] = value === null ? [] : [value].flat()
  const ids = items.flatMap((item) => {
    if (!isObject(item) || !isId(item['id'])) return []
    return areBare && Object.keys(item).some((key) => !NEIGHBOUR_KEYS.has(key)) ? [] : [item['id']]
  })
  return ids.length === items.length ? [...new Set(ids)].sort((a, b) => a - b) : undefined
}
