// The state that the stages of one request share. The first stage that needs a part creates it: a plain write of one record needs none.
import type { Draft } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import type { NewChange } from '../../store/log/log.js'
import type { WireRecord } from '../../wire.js'
import { RecordAccess } from '../access/record-access.js'
import type { WriteContext } from '../context/context.js'
import { ChangeSet } from './change-set.js'
import { buildChange, type RecordTransition } from './write-rows.js'
import type { RecordIdentity } from './lock-order.js'
import { RecordDeleter } from './record-deleter.js'
import { RecordHooks } from './run-hooks.js'

/** A plain write of the only record of a request. */
interface OnlyWrite extends RecordTransition {
  readonly model: Model
  readonly after: WireRecord
}

export class WriteState {
  #only: OnlyWrite | undefined
  #changeSet: ChangeSet | undefined
  #access: RecordAccess | undefined
  #hooks: RecordHooks | undefined
  #deleter: RecordDeleter | undefined

  constructor(readonly context: WriteContext) {}

  get changeSet(): ChangeSet {
    return (this.#changeSet ??= new ChangeSet(this.context))
  }

  get access(): RecordAccess {
    return (this.#access ??= new RecordAccess(this.context))
  }

  get hooks(): RecordHooks {
    return (this.#hooks ??= new RecordHooks(this.context))
  }

  get deleter(): RecordDeleter {
    return (this.#deleter ??= new RecordDeleter(this.context, this.changeSet, this.access, this.hooks))
  }

  /** The deleter, if the request has removed a record. */
  get usedDeleter(): RecordDeleter | undefined {
    return this.#deleter
  }

  /** Sets the only write of the request, which then needs no change set. */
  setOnlyWrite(only: OnlyWrite): void {
    this.#only = only
  }

  isWritten(model: Model, id: number): boolean {
    return this.#changeSet?.isWritten(model, id) === true
  }

  /** Each record gets one version and one Change in a request, so a list cannot take in a record that the request writes elsewhere. */
  refuseSecondWrite({ model, path }: Draft, id: number): void {
    const done = this.#changeSet?.describeWrite(model, id)
    if (done === undefined) return
    throw createFieldError(
      model,
      path,
      `changes ${model.name} ${id}, which is ${done} in this request already`,
    )
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
  async finishRecord(record: RecordIdentity, mayLoseParts: boolean): Promise<RecordIdentity[]> {
    const { changeSet, access, deleter } = this
    const all = mayLoseParts ? [record, ...(await deleter.collectParts(record))] : [record]
    const finished: RecordIdentity[] = []
    for (const { model, id } of all) {
      if (!changeSet.isWritten(model, id)) continue
      await access.checkRecord(model, id)
      await changeSet.finishRecord(model, id)
      finished.push({ model, id })
    }
    return finished
  }

  /** Returns the Changes of all written records. Throws if another record still refers to a removed one. */
  async finish(): Promise<NewChange[]> {
    if (this.#only) return [buildChange(this.context, this.#only.model, this.#only)]
    await this.#deleter?.refuseIfReferenced()
    await this.#access?.checkAll()
    const changes = await this.changeSet.finish()
    if (this.#hooks) changes.push(...this.#hooks.addedChanges)
    return changes
  }
}
