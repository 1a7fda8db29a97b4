// The state that the stages of a request share in one attempt of its transaction: the change set, the checks, the deleter and the hooks.
import type { Draft, VersionedId } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { pickSentChanges } from '../access/changed-fields.js'
import { FULL_ACCESS, RecordAccess, requireGranted, type GrantedAccess } from '../access/record-access.js'
import { throwNotFound, type ExpectedVersion } from '../access/request-checks.js'
import type { SharedWriteState, WritePlan } from '../context/app.js'
import type { WriteContext } from '../context/context.js'
import { formatRecordName } from './change-limits.js'
import { ChangeSet } from './change-set.js'
import { refuseIfReferenced } from './still-referenced.js'
import { refuseStaleWrite, type KnownVersions } from './conflict.js'
import type { RecordIdentity } from './lock-order.js'
import { RecordDeleter } from './record-deleter.js'
import { RecordHooks } from './run-hooks.js'
import { buildChange, type RecordTransition } from './write-rows.js'

/** A plain write of the only record of a request. */
interface OnlyWrite extends RecordTransition {
  readonly model: Model
  readonly after: WireRecord
}

/** The record that an update names, as it is now. Hooks of the same request may have written it: the client knows it as it was before. */
interface UpdateTarget {
  /** Without the values that the client has not changed, if hooks have written the record. */
  readonly draft: Draft
  readonly before: WireRecord
  /** The record that the client has seen: `before`, or the record before hooks of this transaction wrote it. */
  readonly base: WireRecord
  readonly access: GrantedAccess
}

interface UpdateTargetOptions {
  readonly plan: WritePlan
  /** True if the request names the record itself. */
  readonly isRoot: boolean
  readonly isMerging: boolean
  readonly expected: ExpectedVersion
}

/**
 * The first stage that needs a part creates it: a plain write of one record needs none. A hook that writes has a state of its own, because
 * its permissions may differ; it shares the change set with the request.
 */
export class WriteState implements SharedWriteState {
  #only: OnlyWrite | undefined
  #changeSet: ChangeSet | undefined
  #access: RecordAccess | undefined
  #hooks: RecordHooks | undefined
  #deleter: RecordDeleter | undefined
  /** The Changes that hooks add. */
  #addedChanges: NewChange[] | undefined
  /** The states of the hooks that have written, on the state of the request. */
  #nested: WriteState[] | undefined
  /** The records whose hooks run before they are written, on the state of the request. */
  #pendingRecords: Set<string> | undefined
  readonly #root: WriteState

  constructor(
    readonly context: WriteContext,
    parent?: WriteState,
  ) {
    this.#root = parent ? parent.#root : this
    if (parent) (this.#root.#nested ??= []).push(this)
  }

  /** True for the writes of a hook, or of a transaction of a program. */
  get isNested(): boolean {
    return this.#root !== this
  }

  /** True if hooks, or a transaction of a program, have written. */
  get haveHooksWritten(): boolean {
    return this.#root.#nested !== undefined
  }

  get changeSet(): ChangeSet {
    return (this.#root.#changeSet ??= new ChangeSet(this.#root.context))
  }

  get access(): RecordAccess {
    return (this.#access ??= new RecordAccess(this.context))
  }

  get hooks(): RecordHooks {
    return (this.#hooks ??= new RecordHooks(this, (this.#root.#addedChanges ??= [])))
  }

  get deleter(): RecordDeleter {
    return (this.#deleter ??= new RecordDeleter(this.context, {
      changeSet: this.changeSet,
      access: this.access,
      hooks: this.hooks,
      completeRecord: (model, id) => this.#completeRecord(model, id),
      refusePending: (model, id) => {
        this.refusePending(model, id)
      },
    }))
  }

  /** Sets the only write of the request, which then needs no change set. */
  setOnlyWrite(only: OnlyWrite): void {
    this.#only = only
  }

  isWritten(model: Model, id: number): boolean {
    return this.#root.#changeSet?.isWritten(model, id) === true
  }

  /** True if this transaction has created the record. */
  isCreated(model: Model, id: number): boolean {
    return this.#root.#changeSet?.describeWrite(model, id) === 'created'
  }

  /**
   * Returns the record before the transaction, if hooks have updated it and the request has not. The version that the client names, and the
   * values that it sends, are based on that record.
   */
  findBeforeHooks(model: Model, id: number): WireRecord | undefined {
    return this.isNested ? undefined : this.#changeSet?.findBeforeHooks(model, id)
  }

  /** The versions before the transaction of records that only hooks have updated. */
  get versionsBeforeHooks(): KnownVersions | undefined {
    return this.isNested ? undefined : this.#changeSet?.listVersionsBeforeHooks()
  }

  addCreated(table: Table, id: number, after: WireRecord | undefined): void {
    this.changeSet.addCreated(table, id, after, this.isNested)
  }

  addUpdated(table: Table, before: WireRecord, after: WireRecord | undefined): void {
    this.changeSet.addUpdated(table, before, after, this.isNested)
  }

  /** Runs hooks before a record is written. Meanwhile, hooks cannot write it. */
  async whilePending<T>(model: Model, id: number | undefined, run: () => Promise<T>): Promise<T> {
    if (id === undefined) return run()
    const pending = (this.#root.#pendingRecords ??= new Set())
    const name = formatRecordName(model, id)
    const isOuter = !pending.has(name)
    pending.add(name)
    try {
      return await run()
    } finally {
      if (isOuter) pending.delete(name)
    }
  }

  /** Throws while hooks run before the record is written: the write would overwrite what they write into it. */
  refusePending(model: Model, id: number | undefined): void {
    if (id === undefined || !this.#root.#pendingRecords?.has(formatRecordName(model, id))) return
    throw new Error(
      `${model.name} ${id} is about to be written by this request: return its values from beforeSave, or write it in afterSave`,
    )
  }

  /** Each record gets one version and one Change in a request, so a list cannot take in a record that the request writes elsewhere. */
  #refuseSecondWrite({ model, path }: Draft, id: number): void {
    const done = this.isNested ? undefined : this.#changeSet?.describeWrite(model, id)
    if (done === undefined || this.findBeforeHooks(model, id)) return
    throw createFieldError(
      model,
      path,
      `changes ${model.name} ${id}, which this request already ${done === 'created' ? 'creates' : 'changes'} in another place`,
    )
  }

  /** Reads the record that an update names, and checks that it is visible and has the expected version. */
  async readUpdateTarget(
    named: Draft,
    { id, version }: VersionedId,
    { plan, isRoot, isMerging, expected }: UpdateTargetOptions,
  ): Promise<UpdateTarget> {
    const { context } = this
    const { tx } = context
    const { model } = named
    const table = context.app.tables.of(model)
    // The lock keeps others from adding members to a list that is replaced, and from changing a record that is being merged.
    const isHeld = isMerging || (plan.locks && plan.lists)
    const stored = await (isHeld ? store.readForUpdate(tx, table, id) : store.readById(tx, table, id))
    const changeSet = this.#root.#changeSet
    const record = stored && changeSet ? await changeSet.addLostReferences(table, stored) : stored
    const access = plan.permissions ? await this.access.evaluate('update', table, id) : FULL_ACCESS
    const before = access.isVisible ? record : undefined
    if (!before && !plan.permissions && !this.isNested) changeSet?.refuseRemovedByHooks(model, id)
    if (!before) return isRoot ? throwNotFound(model, id) : throwNoSuchRecord(named, id)
    if (isRoot && plan.permissions) requireGranted(access, table, id)
    this.#refuseSecondWrite(named, id)
    const committed = this.findBeforeHooks(model, id)
    const draft = committed
      ? { ...named, values: pickSentChanges(model, committed, named.values, access) }
      : named
    const base = committed ?? before
    if (base.version !== version) {
      // Building the conflict reads the Log, which takes too long for a group commit.
      tx.requireExclusive()
      await refuseStaleWrite(context, { table, record: base, expected, draft }, isMerging)
    }
    return { draft, before, base, access }
  }

  /** Reads the record again if a hook of a related record, which was just saved, has written it. */
  async refreshUpdateTarget(
    draft: Draft,
    { before, values, access }: Pick<UpdateTarget, 'before' | 'access'> & { readonly values: Values },
  ): Promise<{ readonly before: WireRecord; readonly values: Values }> {
    const { tx, app } = this.context
    const { model } = draft
    const { id } = before
    // A related record may also have had this record in a list.
    this.#refuseSecondWrite(draft, id)
    if (!this.isWritten(model, id)) return { before, values }
    const stored = await store.readById(tx, app.tables.of(model), id)
    return {
      before: stored ?? this.changeSet.throwMissing(model, id),
      values: pickSentChanges(model, before, values, access),
    }
  }

  /** Returns the record as written, if it is in memory. */
  findKnown(model: Model, id: number): WireRecord | undefined {
    return this.#only ? this.#only.after : this.changeSet.findKnown(model, id)
  }

  /** Returns the current record, without the names of list members. */
  async readRecord(model: Model, id: number): Promise<WireRecord> {
    return this.findKnown(model, id) ?? this.changeSet.readRecord(model, id)
  }

  /**
   * Completes the Change of this record, so that a later request of the batch may write it again, with a version and a Change of its own.
   * Returns the completed records; these include the members of its owned lists if a later request may remove them.
   */
  async completeRecords(record: RecordIdentity, mayLoseParts: boolean): Promise<RecordIdentity[]> {
    const { changeSet, deleter } = this
    const all = mayLoseParts ? [record, ...(await deleter.collectParts(record))] : [record]
    const finished: RecordIdentity[] = []
    for (const { model, id } of all) {
      if (!changeSet.isWritten(model, id)) continue
      await this.#completeRecord(model, id)
      finished.push({ model, id })
    }
    return finished
  }

  /** Checks the permissions of all that have written the record, because at the end it may be gone, and completes its Change. */
  async #completeRecord(model: Model, id: number): Promise<void> {
    for (const access of this.#listAccess()) await access.checkRecord(model, id)
    await this.changeSet.completeRecord(model, id)
  }

  /** The permission checks of the request and of its hooks. */
  #listAccess(): RecordAccess[] {
    const root = this.#root
    return [root, ...(root.#nested ?? [])].flatMap((state) => state.#access ?? [])
  }

  /** Returns the Changes of all written records. Throws if another record still refers to a removed one. */
  async finish(): Promise<NewChange[]> {
    if (this.#only) return [buildChange(this.context, this.#only.model, this.#only)]
    const { removedPaths } = this.changeSet
    if (removedPaths.size > 0) await refuseIfReferenced(this.context, removedPaths)
    for (const access of this.#listAccess()) await access.checkAll()
    const { attempt } = this.context
    attempt.mayHaveMoreErrors = false
    attempt.errors?.refuseIfAny()
    const changes = await this.changeSet.finish()
    if (this.#addedChanges) changes.push(...this.#addedChanges)
    return changes
  }
}

function throwNoSuchRecord({ model, path }: Draft, id: number): never {
  throw createFieldError(model, path, `refers to ${model.name} ${id}, which does not exist`)
}
