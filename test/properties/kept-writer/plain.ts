// Which writes may share a transaction with others. There locks keep nobody apart, and what others have written is seen before it is
// committed: so only those that rest on nothing but the version of one record, which its guarded statement checks, and on unique indexes.
import type { Draft } from '../../../src/model/write/draft.js'
import type { Field } from '../../../src/model/values/field.js'
import { isReference } from '../../../src/model/definition/model.js'
import type { Value } from '../../../src/model/values/value.js'
import type { GroupableWrite } from '../../../src/store/engine/database.js'
import type { SaveOptions } from '../../../src/wire.js'
import type { Principal } from '../../../src/service/context/principal.js'

/** All of them are in memory at once, and travel in one statement. */
const MAX_CHARACTERS = 20_000

/** Undefined for a write that needs a transaction of its own. */
export function plainOf(
  { permissions }: Principal,
  draft: Draft,
  { idempotencyKey, merge }: SaveOptions,
  hasAddition: boolean,
): GroupableWrite | undefined {
  const { model, key, related, lists, inverses } = draft
  const isPlain =
    // Whoever repeats the key waits for the transaction that has it.
    idempotencyKey === undefined &&
    // What is written on top of a record is held while it is looked at.
    merge === undefined &&
    // Files: their rows and contents come and go with the transaction.
    !hasAddition &&
    // Neighbours and members are locked in an order, and their owners raised.
    related.size === 0 &&
    lists.size === 0 &&
    // What others refer to it by is looked up beside the record.
    inverses === undefined &&
    // A condition is asked of the database before and after the write: there it would see what others have not committed.
    (permissions?.of(model).grants.every(({ where }) => where === undefined) ?? true) &&
    [...model.fields.values()].every((field) => (key ? mayChange(draft, field) : mayMake(draft, field))) &&
    sizeOf(Object.values(draft.values)) <= MAX_CHARACTERS
  return isPlain ? { record: key && `${model.name} ${key.id}` } : undefined
}

function mayMake({ values }: Draft, field: Field): boolean {
  const value = values[field.name] ?? null
  // A number is drawn from a row that all others wait for.
  if (field.sequence) return false
  // What is referred to is held against its removal, and its list belongs to an owner.
  return value === null || (!isReference(field) && !isKeptElsewhere(field))
}

/** A reference may be among what is sent: one that changes takes a lock, and whoever takes one leaves. */
function mayChange({ model, values }: Draft, field: Field): boolean {
  const isSet = Object.hasOwn(values, field.name)
  // An update cannot step aside for a value that is taken: its statement fails, and with it the whole group.
  if (model.unique.some((set) => set.includes(field.name))) return !isSet && !field.computed
  return !isSet || !isKeptElsewhere(field)
}

/** Files are rows of their own; what ends with a secret is looked up. */
function isKeptElsewhere({ type, secret }: Field): boolean {
  return type === 'binary' || secret !== undefined
}

function sizeOf(values: readonly Value[]): number {
  let size = 0
  for (const value of values) {
    if (typeof value === 'string') size += value.length
    else if (typeof value === 'object' && value !== null) size += JSON.stringify(value).length
  }
  return size
}
