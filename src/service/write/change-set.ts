// The records that one transaction touches: as each was before, so that it is raised once and has one Change at the end; what is
// settled before may be raised again.
import { VersoError } from '../../errors.js'
import { MAX_OWNED_LIST_MEMBERS } from '../../model/write/draft.js'
import { isOwnedList, type Model } from '../../model/definition/model.js'
import { isSameValue } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { NewChange } from '../../store/log/log.js'
import { findMembers } from '../../store/records/list-members.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { Change, WireRecord } from '../../wire.js'
import { userOf } from '../context/identity.js'
import { changeOf } from './changes.js'
import { leastJsonBytes } from '../context/answer-limits.js'
import { inLockOrder, type Identity } from './lock-order.js'
import type { Work } from '../context/context.js'

interface Entry {
  readonly table: Table
  readonly id: number
  /** Undefined if it was made here. */
  readonly before: WireRecord | undefined
  /** What became of it; of one that was only seen, a list may have changed. */
  fate: 'made' | 'seen' | 'raised' | 'gone'
  /** As it is now; undefined if it has to be read. */
  after: WireRecord | undefined
  /** What became of the files it holds: no record shows them. */
  files?: Change['changes']
  /** Its Change, if it was written once more after that. */
  settled?: NewChange
}

/** All of them are in one transaction, and others wait for it. */
const MAX_TOUCHED = 10_000
/** They are held in memory until its end, before and after, without the names of list members; one alone may be as large as it is. */
const MAX_CHARACTERS = 32_000_000

export class Touched {
  readonly #entries: Entry[] = []
  /** Where each is among them; of one that was settled, what came after. */
  readonly #indexes = new Map<string, number>()
  readonly #held = new HeldRecords()

  constructor(private readonly work: Work) {}

  #of(model: Model, id: number): Entry | undefined {
    return this.#entries[this.#indexes.get(key(model, id)) ?? -1]
  }

  #set(entry: Entry): void {
    const name = key(entry.table.model, entry.id)
    const index = this.#indexes.get(name) ?? this.#entries.length
    this.#indexes.set(name, index)
    this.#entries[index] = entry
    if (this.#entries.length > MAX_TOUCHED)
      throw new VersoError('bad-request', `This would change more than ${MAX_TOUCHED} records at once`)
    for (const record of [entry.before, entry.after]) if (record) this.#held.add(entry.table.model, record)
  }

  goneFrom(model: Model, id: number): WireRecord | undefined {
    const entry = this.#of(model, id)
    return entry?.fate === 'gone' ? entry.before : undefined
  }

  /** What was written of it already; undefined if nothing was, or if it is gone. */
  doneTo(model: Model, id: number): 'made' | 'changed' | undefined {
    const fate = this.#of(model, id)?.fate
    return fate === 'raised' ? 'changed' : fate === 'made' ? 'made' : undefined
  }

  made(table: Table, id: number, after: WireRecord | undefined): void {
    this.#set({ table, id, before: undefined, fate: 'made', after })
  }

  raised(table: Table, before: WireRecord, after: WireRecord | undefined): void {
    const first = this.#of(table.model, before.id)
    const entry: Entry = {
      table,
      id: before.id,
      before: first ? first.before : before,
      fate: 'raised',
      after,
    }
    this.#set(entry)
  }

  gone(table: Table, before: WireRecord): void {
    // A list of it may have lost members in this transaction already.
    const first = this.#of(table.model, before.id)
    const entry: Entry = {
      table,
      id: before.id,
      before: first?.before ?? before,
      fate: 'gone',
      after: undefined,
    }
    this.#set(entry)
  }

  changedFiles({ model }: Table, id: number, files: Change['changes']): void {
    const entry = this.#of(model, id)
    if (entry && Object.keys(files).length > 0) entry.files = files
  }

  /**
   * The owners of lists that are about to change from the side of their members. From here on nobody else changes the owners, and
   * with them the lists, until the transaction ends.
   */
  async lockOwners(owners: readonly Identity[]): Promise<void> {
    for (const { model, id } of inLockOrder(this.work.app.catalog, owners)) {
      if (this.#of(model, id)) continue
      const table = this.work.app.tables.of(model)
      const before = await store.readForUpdate(this.work.tx, table, id)
      if (before) this.#set({ table, id, before, fate: 'seen', after: undefined })
    }
  }

  async recordOf(model: Model, id: number): Promise<WireRecord> {
    const entry = this.#of(model, id)
    const record = entry?.after ?? (await store.read(this.work.tx, this.work.app.tables.of(model), id))
    if (!record) throw new Error(`${model.name} ${id} was written and is not there`)
    if (entry && !entry.after) this.#held.add(model, record)
    if (entry) entry.after = record
    return record
  }

  /** What was written of it is one version with one Change: what is written from here on is the next. */
  async settle(model: Model, id: number): Promise<void> {
    const entry = this.#of(model, id)
    if (!entry) return
    entry.settled = await this.#changeOf(entry)
    this.#indexes.delete(key(model, id))
  }

  /** Raises the owners whose lists have changed; then a Change for each record. */
  async finish(): Promise<NewChange[]> {
    for (const entry of this.#entries) if (entry.fate === 'seen') await this.#raiseOwner(entry)
    const changes: NewChange[] = []
    for (const entry of this.#entries) {
      if (entry.fate !== 'seen') changes.push(entry.settled ?? (await this.#changeOf(entry)))
    }
    return changes
  }

  async #raiseOwner(entry: Entry): Promise<void> {
    const { table, id, before } = entry
    const { model } = table
    const { actor, now, tx } = this.work
    if (!before) return
    const old = toValues(model, before)
    let isChanged = false
    for (const field of model.fields.values()) {
      if (!isOwnedList(field)) continue
      const members = (await findMembers(tx, { model, field }, id)).map((member) => ({ id: member }))
      if (!isSameValue(old[field.name] ?? [], members)) isChanged = true
    }
    if (!isChanged) return
    const values = { updatedOn: now, updatedBy: userOf(actor) }
    const [isDone] = await store.update(tx, table, [{ id, version: before.version, values }])
    if (!isDone) throw new Error(`${model.name} ${id} was locked and has changed`)
    entry.fate = 'raised'
  }

  async #changeOf({ table: { model }, id, before, fate, files }: Entry): Promise<NewChange> {
    const after = fate === 'gone' ? undefined : await this.recordOf(model, id)
    refuseTooLong(model, id, before, after)
    return changeOf(this.work, model, before, after, files)
  }
}

/** Counts the characters of records in memory. The largest record does not count: a client cannot change less than one. */
export class HeldRecords {
  readonly #each = new Map<string, number>()
  #characters = 0
  #largest = 0

  /** Adds a record as it was or as it is. Refuses where there are too many characters. */
  add(model: Model, record: WireRecord): void {
    const [name, characters] = [key(model, record.id), leastJsonBytes(record)]
    const own = (this.#each.get(name) ?? 0) + characters
    this.#each.set(name, own)
    this.#characters += characters
    this.#largest = Math.max(this.#largest, own)
    if (this.#characters - this.#largest > MAX_CHARACTERS)
      throw new VersoError(
        'bad-request',
        'These records are too large to be changed at once: change fewer of them',
      )
  }
}

function key(model: Model, id: number): string {
  return `${model.name} ${id}`
}

/** A list grows by those who join it as well as by being written. One that was longer before it became owned may still shrink. */
function refuseTooLong(model: Model, id: number, before?: WireRecord, after?: WireRecord): void {
  for (const { name } of [...model.fields.values()].filter(isOwnedList)) {
    const [there, members] = [before?.[name] ?? [], after?.[name] ?? []]
    if (!Array.isArray(there) || !Array.isArray(members)) continue
    if (members.length <= MAX_OWNED_LIST_MEMBERS || members.length <= there.length) continue
    const message = `${model.name} ${id} has ${MAX_OWNED_LIST_MEMBERS} ${name} already, and no list holds more`
    throw new VersoError('invalid', message, {
      errors: { [name]: `must have at most ${MAX_OWNED_LIST_MEMBERS} members` },
    })
  }
}
