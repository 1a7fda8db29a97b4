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
import { toUserReference } from '../context/identity.js'
import { buildChange } from './changes.js'
import { estimateMinJsonBytes } from '../context/answer-limits.js'
import { sortInLockOrder, type RecordIdentity } from './lock-order.js'
import type { WriteContext } from '../context/context.js'

interface ChangeSetEntry {
  readonly table: Table
  readonly id: number
  /** Undefined if it was made here. */
  readonly before: WireRecord | undefined
  /** What became of it; of one that was only seen, a list may have changed. */
  status: 'made' | 'seen' | 'raised' | 'gone'
  /** As it is now; undefined if it has to be read. */
  after: WireRecord | undefined
  /** What became of the files it holds: no record shows them. */
  files?: Change['changes']
  /** Its Change, if it was written once more after that. */
  finishedChange?: NewChange
}

/** All of them are in one transaction, and others wait for it. */
const MAX_CHANGED_RECORDS = 10_000
/** They are held in memory until its end, before and after, without the names of list members; one alone may be as large as it is. */
const MAX_HELD_CHARACTERS = 32_000_000

export class ChangeSet {
  readonly #entries: ChangeSetEntry[] = []
  /** Where each is among them; of one that was settled, what came after. */
  readonly #indexes = new Map<string, number>()
  readonly #heldLimit = new HeldRecordLimit()

  constructor(private readonly context: WriteContext) {}

  #find(model: Model, id: number): ChangeSetEntry | undefined {
    return this.#entries[this.#indexes.get(formatRecordName(model, id)) ?? -1]
  }

  #set(entry: ChangeSetEntry): void {
    const name = formatRecordName(entry.table.model, entry.id)
    const index = this.#indexes.get(name) ?? this.#entries.length
    this.#indexes.set(name, index)
    this.#entries[index] = entry
    if (this.#entries.length > MAX_CHANGED_RECORDS)
      throw new VersoError(
        'bad-request',
        `This would change more than ${MAX_CHANGED_RECORDS} records at once`,
      )
    for (const record of [entry.before, entry.after])
      if (record) this.#heldLimit.add(entry.table.model, record)
  }

  findRemoved(model: Model, id: number): WireRecord | undefined {
    const entry = this.#find(model, id)
    return entry?.status === 'gone' ? entry.before : undefined
  }

  /** What was written of it already; undefined if nothing was, or if it is gone. */
  findWriteStatus(model: Model, id: number): 'made' | 'changed' | undefined {
    const fate = this.#find(model, id)?.status
    return fate === 'raised' ? 'changed' : fate === 'made' ? 'made' : undefined
  }

  addCreated(table: Table, id: number, after: WireRecord | undefined): void {
    this.#set({ table, id, before: undefined, status: 'made', after })
  }

  addUpdated(table: Table, before: WireRecord, after: WireRecord | undefined): void {
    const first = this.#find(table.model, before.id)
    const entry: ChangeSetEntry = {
      table,
      id: before.id,
      before: first ? first.before : before,
      status: 'raised',
      after,
    }
    this.#set(entry)
  }

  addRemoved(table: Table, before: WireRecord): void {
    // A list of it may have lost members in this transaction already.
    const first = this.#find(table.model, before.id)
    const entry: ChangeSetEntry = {
      table,
      id: before.id,
      before: first?.before ?? before,
      status: 'gone',
      after: undefined,
    }
    this.#set(entry)
  }

  setFileChanges({ model }: Table, id: number, files: Change['changes']): void {
    const entry = this.#find(model, id)
    if (entry && Object.keys(files).length > 0) entry.files = files
  }

  /**
   * The owners of lists that are about to change from the side of their members. From here on nobody else changes the owners, and
   * with them the lists, until the transaction ends.
   */
  async lockOwners(owners: readonly RecordIdentity[]): Promise<void> {
    for (const { model, id } of sortInLockOrder(this.context.app.catalog, owners)) {
      if (this.#find(model, id)) continue
      const table = this.context.app.tables.of(model)
      const before = await store.readForUpdate(this.context.tx, table, id)
      if (before) this.#set({ table, id, before, status: 'seen', after: undefined })
    }
  }

  async readRecord(model: Model, id: number): Promise<WireRecord> {
    const entry = this.#find(model, id)
    const record = entry?.after ?? (await store.read(this.context.tx, this.context.app.tables.of(model), id))
    if (!record) throw new Error(`${model.name} ${id} was written but cannot be found`)
    if (entry && !entry.after) this.#heldLimit.add(model, record)
    if (entry) entry.after = record
    return record
  }

  /** What was written of it is one version with one Change: what is written from here on is the next. */
  async finishRecord(model: Model, id: number): Promise<void> {
    const entry = this.#find(model, id)
    if (!entry) return
    entry.finishedChange = await this.#buildChange(entry)
    this.#indexes.delete(formatRecordName(model, id))
  }

  /** Raises the owners whose lists have changed; then a Change for each record. */
  async finish(): Promise<NewChange[]> {
    for (const entry of this.#entries) if (entry.status === 'seen') await this.#updateOwner(entry)
    const changes: NewChange[] = []
    for (const entry of this.#entries) {
      if (entry.status !== 'seen') changes.push(entry.finishedChange ?? (await this.#buildChange(entry)))
    }
    return changes
  }

  async #updateOwner(entry: ChangeSetEntry): Promise<void> {
    const { table, id, before } = entry
    const { model } = table
    const { principal, now, tx } = this.context
    if (!before) return
    const old = toValues(model, before)
    let isChanged = false
    for (const field of model.fields.values()) {
      if (!isOwnedList(field)) continue
      const members = (await findMembers(tx, { model, field }, id)).map((member) => ({ id: member }))
      if (!isSameValue(old[field.name] ?? [], members)) isChanged = true
    }
    if (!isChanged) return
    const values = { updatedOn: now, updatedBy: toUserReference(principal.user) }
    const [isDone] = await store.update(tx, table, [{ id, version: before.version, values }])
    if (!isDone) throw new Error(`${model.name} ${id} was locked but could not be updated`)
    entry.status = 'raised'
  }

  async #buildChange({ table: { model }, id, before, status, files }: ChangeSetEntry): Promise<NewChange> {
    const after = status === 'gone' ? undefined : await this.readRecord(model, id)
    refuseTooLongLists(model, id, before, after)
    return buildChange(this.context, model, { before, after, files })
  }
}

/** Counts the characters of records in memory. The largest record does not count: a client cannot change less than one. */
export class HeldRecordLimit {
  readonly #charactersByRecord = new Map<string, number>()
  #characters = 0
  #largest = 0

  /** Adds a record as it was or as it is. Refuses where there are too many characters. */
  add(model: Model, record: WireRecord): void {
    const [name, characters] = [formatRecordName(model, record.id), estimateMinJsonBytes(record)]
    const own = (this.#charactersByRecord.get(name) ?? 0) + characters
    this.#charactersByRecord.set(name, own)
    this.#characters += characters
    this.#largest = Math.max(this.#largest, own)
    if (this.#characters - this.#largest > MAX_HELD_CHARACTERS)
      throw new VersoError(
        'bad-request',
        'These records are too large to be changed at once: change fewer of them',
      )
  }
}

function formatRecordName(model: Model, id: number): string {
  return `${model.name} ${id}`
}

/** A list grows by those who join it as well as by being written. One that was longer before it became owned may still shrink. */
function refuseTooLongLists(model: Model, id: number, before?: WireRecord, after?: WireRecord): void {
  for (const { name } of [...model.fields.values()].filter(isOwnedList)) {
    const [membersBefore, members] = [before?.[name] ?? [], after?.[name] ?? []]
    if (!Array.isArray(membersBefore) || !Array.isArray(members)) continue
    if (members.length <= MAX_OWNED_LIST_MEMBERS || members.length <= membersBefore.length) continue
    const message = `${model.name} ${id} has ${MAX_OWNED_LIST_MEMBERS} ${name} already, and no list holds more`
    throw new VersoError('invalid', message, {
      errors: { [name]: `must have at most ${MAX_OWNED_LIST_MEMBERS} members` },
    })
  }
}
