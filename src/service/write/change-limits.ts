// The limits of what one transaction changes: the number of its records, their size in memory, and the length of lists.
import { VersoError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { isOwnedList, type Model } from '../../model/definition/model.js'
import { MAX_OWNED_LIST_MEMBERS } from '../../model/write/draft.js'
import type { WireRecord } from '../../wire.js'
import { estimateMinJsonBytes } from '../context/answer-limits.js'
import type { Principal } from '../context/principal.js'

/** One transaction writes all of them, and other writers wait for it. */
export const MAX_CHANGED_RECORDS = 10_000
/**
 * The limit of characters in memory until the commit. It counts records before and after, without the names of list members. One record may
 * be of any size.
 */
const MAX_HELD_CHARACTERS = 32_000_000

/** Identifies a record within one transaction. */
export function formatRecordName(model: Model, id: number): string {
  return `${model.name} ${id}`
}

/** Counts the characters of records in memory. The largest record does not count: a client cannot change less than one. */
export class HeldRecordLimit {
  readonly #charactersByRecord = new Map<string, number>()
  #characters = 0
  #largest = 0

  /** Adds a record before or after the write. Refuses the transaction if the records in memory exceed the limit. */
  add(model: Model, record: WireRecord): void {
    const [name, characters] = [formatRecordName(model, record.id), estimateMinJsonBytes(record)]
    const own = (this.#charactersByRecord.get(name) ?? 0) + characters
    this.#charactersByRecord.set(name, own)
    this.#characters += characters
    this.#largest = Math.max(this.#largest, own)
    if (this.#characters - this.#largest > MAX_HELD_CHARACTERS)
      throw new VersoError(
        'bad-request',
        'These records are too large to be changed in one request: change fewer of them; nothing was changed',
      )
  }
}

/** A record before and after the transaction. */
interface RecordStates {
  readonly id: number
  readonly before: WireRecord | undefined
  readonly after: WireRecord | undefined
}

/** Refuses owned lists with too many members. A list that was longer before it became owned may shrink. */
export function refuseTooLongLists(
  { permissions }: Principal,
  model: Model,
  { id, before, after }: RecordStates,
): void {
  for (const field of [...model.fields.values()].filter(isOwnedList)) {
    const { name } = field
    const [membersBefore, members] = [before?.[name] ?? [], after?.[name] ?? []]
    if (!Array.isArray(membersBefore) || !Array.isArray(members)) continue
    if (members.length <= MAX_OWNED_LIST_MEMBERS || members.length <= membersBefore.length) continue
    // A hook may have added members to a list that the principal may not see.
    if (permissions && !permissions.isVisible(model, field)) {
      const errors = new FieldErrors()
      errors.addHidden()
      throw errors.toError()
    }
    const message = `${model.name} ${id} already has ${MAX_OWNED_LIST_MEMBERS} ${name}, the maximum of a list; nothing was changed`
    throw new VersoError('invalid', message, {
      errors: { [name]: `must have at most ${MAX_OWNED_LIST_MEMBERS} members` },
    })
  }
}
