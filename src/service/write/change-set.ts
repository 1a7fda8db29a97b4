// The records that one transaction writes, each with its state before. At the end each record has one new version and one Change. A batch
// that writes a record twice completes its first Change before the second write.
import { VersoError } from '../../errors.js'
import { isOwnedList, isReference, type Model } from '../../model/definition/model.js'
import { findReferenceId, isSameValue } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { NewChange } from '../../store/log/log.js'
import { findMembers } from '../../store/records/list-members.js'
import { readReferences } from '../../store/records/references.js'
import * as store from '../../store/records/records.js'
import { updateRows } from '../../store/records/write.js'
import type { Table } from '../../store/sql/table.js'
import type { Change, WireRecord } from '../../wire.js'
import { buildChange, toUserReference } from './write-rows.js'
import { throwNotFound } from '../access/request-checks.js'
import {
  formatRecordName,
  HeldRecordLimit,
  MAX_CHANGED_RECORDS,
  refuseTooLongLists,
} from './change-limits.js'
import { sortInLockOrder, type RecordIdentity } from './lock-order.js'
import type { WriteContext } from '../context/context.js'

interface ChangeSetEntry {
  readonly table: Table
  readonly id: number
  /** Undefined if the transaction created the record. */
  readonly before: WireRecord | undefined
  /** The state of the record. A list of a record that was only read may have changed. */
  status: 'created' | 'read' | 'updated' | 'removed'
  /** True if only hooks have written it: the request may still write it once itself. */
  isWrittenOnlyByHooks?: boolean
  /** True if hooks have written it, and possibly the request, too. For a removed record: if a hook has removed it. */
  isWrittenByHooks?: boolean
  /** The record as it is now; undefined if it must be read. */
  after: WireRecord | undefined
  /** True if the limit of characters in memory counts `after`. */
  isAfterCounted?: boolean
  /** The changes of its files, which no record shows. */
  files?: Change['changes']
  /** The completed Change, if the transaction wrote the record again afterwards. */
  finishedChange?: NewChange
}

export class ChangeSet {
  readonly #entries: ChangeSetEntry[] = []
  /** The entry of each record; after a completed Change, the entry that follows it. */
  readonly #indexes = new Map<string, number>()
  readonly #heldLimit = new HeldRecordLimit()
  #expectsLaterRecords = false
  /** The removed records, each with its path in the request. */
  readonly removedPaths = new Map<Model, Map<number, string>>()

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
        `This request would change more than ${MAX_CHANGED_RECORDS} records: change fewer of them; nothing was changed`,
      )
    if (entry.before) this.#heldLimit.add(entry.table.model, entry.before)
  }

  findRemoved(model: Model, id: number): WireRecord | undefined {
    const entry = this.#find(model, id)
    return entry?.status === 'removed' ? entry.before : undefined
  }

  /** The word of error messages for a record that this transaction has written. Undefined if it was not written, or is deleted. */
  describeWrite(model: Model, id: number): 'created' | 'changed' | undefined {
    const status = this.#find(model, id)?.status
    return status === 'updated' ? 'changed' : status === 'created' ? 'created' : undefined
  }

  isWrittenByHooks(model: Model, id: number): boolean {
    return this.#find(model, id)?.isWrittenByHooks === true
  }

  isWritten(model: Model, id: number): boolean {
    return this.describeWrite(model, id) !== undefined
  }

  /** Returns the record before the transaction, if only hooks have updated it. */
  findBeforeHooks(model: Model, id: number): WireRecord | undefined {
    const entry = this.#find(model, id)
    return entry?.status === 'updated' && entry.isWrittenOnlyByHooks === true ? entry.before : undefined
  }

  listVersionsBeforeHooks(): Map<Model, Map<number, number>> {
    const versions = new Map<Model, Map<number, number>>()
    for (const { table, id, before, status, isWrittenOnlyByHooks } of this.#entries) {
      if (status !== 'updated' || isWrittenOnlyByHooks !== true || !before) continue
      const ofModel = versions.get(table.model) ?? new Map<number, number>()
      versions.set(table.model, ofModel.set(id, before.version))
    }
    return versions
  }

  addCreated(table: Table, id: number, after: WireRecord | undefined, isByHook = false): void {
    this.#set({
      table,
      id,
      before: undefined,
      status: 'created',
      isWrittenOnlyByHooks: isByHook,
      isWrittenByHooks: isByHook,
      after,
    })
  }

  addUpdated(table: Table, before: WireRecord, after: WireRecord | undefined, isByHook = false): void {
    const first = this.#find(table.model, before.id)
    const isFirst = first === undefined || first.status === 'read'
    const entry: ChangeSetEntry = {
      table,
      id: before.id,
      before: first ? first.before : before,
      // A hook may update a record that the transaction has created.
      status: first?.status === 'created' ? 'created' : 'updated',
      isWrittenOnlyByHooks: isByHook && (isFirst || first.isWrittenOnlyByHooks === true),
      isWrittenByHooks: isByHook || first?.isWrittenByHooks === true,
      after,
      ...(first?.files ? { files: first.files } : {}),
    }
    this.#set(entry)
  }

  get hasRemoved(): boolean {
    return this.removedPaths.size > 0
  }

  addRemoved(table: Table, before: WireRecord, path: string, isByHook = false): void {
    const removed = this.removedPaths.get(table.model)
    if (removed) removed.set(before.id, path)
    else this.removedPaths.set(table.model, new Map([[before.id, path]]))
    // The transaction may have removed members from one of its lists already.
    const first = this.#find(table.model, before.id)
    const entry: ChangeSetEntry = {
      table,
      id: before.id,
      before: first?.before ?? before,
      status: 'removed',
      isWrittenByHooks: isByHook,
      after: undefined,
    }
    this.#set(entry)
  }

  setFileChanges({ model }: Table, id: number, files: Change['changes']): void {
    const entry = this.#find(model, id)
    if (entry && Object.keys(files).length > 0) entry.files = { ...entry.files, ...files }
  }

  /**
   * Locks the owners of lists whose members are about to change. No other transaction can change these owners or their lists until the
   * commit.
   */
  async lockOwners(owners: readonly RecordIdentity[]): Promise<void> {
    for (const { model, id } of sortInLockOrder(this.context.app.catalog, owners)) {
      if (this.#find(model, id)) continue
      const table = this.context.app.tables.of(model)
      const read = await store.readForUpdate(this.context.tx, table, id)
      if (!read) continue
      const before = await this.addLostReferences(table, read)
      this.#set({ table, id, before, status: 'read', after: undefined })
    }
  }

  /** Returns the record as written, if it is in memory. */
  findKnown(model: Model, id: number): WireRecord | undefined {
    return this.#find(model, id)?.after
  }

  /** Does not keep the record: a hook may still write it, or a member of its lists. */
  async readRecord(model: Model, id: number): Promise<WireRecord> {
    const known = this.findKnown(model, id)
    if (known) return known
    const table = this.context.app.tables.of(model)
    const record = (await store.readById(this.context.tx, table, id)) ?? this.throwMissing(model, id)
    return this.addLostReferences(table, record)
  }

  /** Returns the record as it is now if hooks have written it, and undefined if they have removed it. */
  async refreshRecord(table: Table, record: WireRecord): Promise<WireRecord | undefined> {
    if (!this.isWrittenByHooks(table.model, record.id)) return record
    const current = await store.readForUpdate(this.context.tx, table, record.id)
    return current && this.addLostReferences(table, current)
  }

  /** An import writes members of lists before their owners, so references lead to records that do not exist yet. */
  expectLaterRecords(): void {
    this.#expectsLaterRecords = true
  }

  /** Adds references to records that this transaction has already removed: the Log must contain them. */
  async addLostReferences(table: Table, record: WireRecord): Promise<WireRecord> {
    return this.hasRemoved ? this.#addUnseenReferences(table, record) : record
  }

  /** Adds references to records that do not exist. */
  async #addUnseenReferences(table: Table, record: WireRecord): Promise<WireRecord> {
    const mayLack = [...table.model.fields.values()].some(
      (field) => isReference(field) && !field.isSystem && (record[field.name] ?? null) === null,
    )
    if (!mayLack) return record
    const references = await readReferences(this.context.tx, table, record.id)
    const lost = [...references].filter(([name]) => (record[name] ?? null) === null)
    return { ...record, ...Object.fromEntries(lost.map(([name, id]) => [name, { id }])) }
  }

  /** True if the record was in the list of the owner before hooks wrote it; undefined if no hook has written it. */
  wasMemberBeforeHooks({ model, id }: RecordIdentity, field: string, owner: number): boolean | undefined {
    const entry = this.#find(model, id)
    return entry?.isWrittenByHooks ? findReferenceId(entry.before?.[field]) === owner : undefined
  }

  /** Throws the error of a write whose record does not exist any more. */
  throwMissing(model: Model, id: number): never {
    this.refuseRemovedByHooks(model, id)
    throwNotFound(model, id)
  }

  refuseRemovedByHooks(model: Model, id: number): void {
    const entry = this.#find(model, id)
    if (entry?.status !== 'removed' || !entry.isWrittenByHooks) return
    throw new VersoError(
      'hook-failed',
      `A hook has removed ${model.name} ${id}, which this request writes. Throw a VersoError in the hook to refuse the write; nothing was changed`,
    )
  }

  /** Completes the version and the Change of a record. The next write makes a new version. */
  async completeRecord(model: Model, id: number): Promise<void> {
    const entry = this.#find(model, id)
    if (!entry) return
    entry.finishedChange = await this.#buildChange(entry)
    this.#indexes.delete(formatRecordName(model, id))
  }

  /** Updates the owners whose lists have changed, then builds the Change of each record. */
  async finish(): Promise<NewChange[]> {
    for (const entry of this.#entries) if (entry.status === 'read') await this.#updateOwner(entry)
    const changes: NewChange[] = []
    for (const entry of this.#entries) {
      if (entry.status !== 'read') changes.push(entry.finishedChange ?? (await this.#buildChange(entry)))
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
    const [isDone] = await updateRows(tx, table, [{ id, version: before.version, values }])
    if (!isDone) throw new Error(`${model.name} ${id} was locked but could not be updated`)
    entry.status = 'updated'
  }

  /** Keeps the final record for the answer. */
  #keepAfter(model: Model, id: number, after: WireRecord): void {
    const entry = this.#find(model, id)
    if (!entry) return
    if (!entry.isAfterCounted) this.#heldLimit.add(model, after)
    entry.isAfterCounted = true
    entry.after = after
  }

  async #buildChange(entry: ChangeSetEntry): Promise<NewChange> {
    const { table, id, before, status, files } = entry
    const { model } = table
    const read = status === 'removed' ? undefined : await this.readRecord(model, id)
    const after = read && this.#expectsLaterRecords ? await this.#addUnseenReferences(table, read) : read
    if (after) this.#keepAfter(model, id, after)
    refuseTooLongLists(this.context.principal, model, { id, before, after })
    return buildChange(this.context, model, { before, after, files })
  }
}
