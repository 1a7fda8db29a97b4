// One attempt of the transaction of a batch.
import { VersoError } from '../../errors.js'
import { formatRequestPath } from '../../model/write/batch.js'
import { replaceRefsWithDrafts, replaceRefsWithIds, type Refs } from '../../model/write/refs.js'
import type { NewChange } from '../../store/log/log.js'
import type { WireRecord } from '../../wire.js'
import { addRequestIndex, mapRequests, withRequestIndex } from './batch-paths.js'
import type { AssertTask, SaveTask, BatchTask } from './batch-tasks.js'
import { readKnownVersions, refuseIfStale, type KnownVersions } from '../write/conflict.js'
import { areIndependent } from '../write/plain-lists.js'
import type { Draft } from '../../model/write/draft.js'
import { throwNotFound } from '../access/request-checks.js'
import { lockBatch, type RecordIdentity } from '../write/lock-order.js'
import { removeInTransaction } from './remove.js'
import { evaluateOptionalCriteria } from '../access/record-access.js'
import { getVisibleCriteria } from '../access/visible-records.js'
import { RecordWriter } from '../write/record-writer.js'
import { readRecordKey } from './save.js'
import { requireVersion } from './verify.js'
import type { WriteContext } from '../context/context.js'
import { AnswerCollector } from '../context/written-answers.js'

/** The answer to one request: the record as written, or the id of a deleted one. */
export type BatchAnswer = WireRecord | number

export class BatchRun {
  readonly #writer: RecordWriter
  /** Ids of the created records by ref. */
  readonly #createdIds = new Map<string, number>()
  /** The last request that wrote each record, until its answer is known. */
  readonly #lastWriters = new Map<string, number>()
  readonly #answers = new Map<number, BatchAnswer>()
  readonly #drafts: readonly Draft[]
  #versions: KnownVersions | undefined
  /** Limits the memory that the answers take until the end. */
  readonly #answerCollector: AnswerCollector<BatchAnswer>

  constructor(
    private readonly context: WriteContext,
    private readonly tasks: readonly BatchTask[],
    private readonly refs: Refs,
    private readonly merges: boolean,
  ) {
    this.#drafts = tasks.flatMap((task) => (task.op === 'save' ? [task.draft] : []))
    const isSingleRecord = tasks.length === 1
    this.#writer = new RecordWriter(context, [], {
      isSingleRecord,
      merges,
      areIndependent: !isSingleRecord && this.#areIndependent(),
    })
    this.#answerCollector = new AnswerCollector(context.app)
  }

  async lock(): Promise<void> {
    await lockBatch(this.context, {
      drafts: this.#drafts,
      removed: this.tasks.flatMap((task) => (task.op === 'delete' ? [task] : [])),
      asserted: this.tasks.flatMap((task) => (task.op === 'assert' ? [task] : [])),
    })
    this.#versions = await readKnownVersions(this.context, this.#drafts)
  }

  /**
   * Refuses stale requests before anything is written, so that a conflict shows committed values. Asserted records stay locked until the
   * end.
   */
  async refuseStale(task: BatchTask): Promise<void> {
    const { app } = this.context
    if (task.op === 'save') {
      const draft = replaceRefsWithDrafts(task.draft, this.refs)
      return this.#writer.refuseStale([draft], this.#versions)
    }
    const { model, id } = task
    // A record that the batch creates has no version yet.
    if (this.refs.findPending(id)) return
    const table = app.tables.of(model)
    if (task.op === 'assert') return this.#requireVersion(task)
    await this.#writer.state.access.requireRemovable(table, id, false)
    if (task.expected) await refuseIfStale(this.context, table, id, { expected: task.expected, draft: null })
  }

  /** Executes all tasks and returns the ids of their records. Consecutive plain saves are written together. */
  async executeAll(): Promise<number[]> {
    const ids: number[] = []
    for (let task = this.tasks[0]; task; task = this.tasks[ids.length]) {
      const first = ids.length
      const listed = this.#takePlainSaves(first)
      if (listed.length > 1) {
        const drafts = listed.map(({ draft }) => draft)
        const written = await this.#writer.saveAll(drafts, (error, index) =>
          addRequestIndex(error, first + index),
        )
        listed.forEach((save, index) => {
          this.#addWritten(save, written[index] ?? 0, first + index)
        })
        ids.push(...written)
      } else ids.push(await withRequestIndex(first, this.#execute.bind(this, task, first)))
    }
    return ids
  }

  /** Takes the consecutive saves that depend on no other request of the batch. */
  #takePlainSaves(from: number): SaveTask[] {
    const listed: SaveTask[] = []
    for (let index = from; index < this.tasks.length; index++) {
      const task = this.tasks[index]
      if (task?.op !== 'save' || !this.#isPlain(task.draft)) break
      listed.push(task)
    }
    return listed
  }

  #isPlain(draft: Draft): boolean {
    const isPending = draft.key !== undefined && this.refs.findPending(draft.key.id) !== undefined
    const options = this.merges ? ({ merge: 'fields' } as const) : {}
    return !isPending && this.context.app.planWrite(this.context, draft, options).isPlain
  }

  #areIndependent(): boolean {
    const { context } = this
    const isDelete = ({ op }: BatchTask) => op === 'delete'
    return (
      !this.tasks.some(isDelete) &&
      areIndependent(this.#drafts, (draft) => context.app.planWrite(context, draft, {}))
    )
  }

  /** Executes a task and returns the id of its record. */
  async #execute(task: BatchTask, index: number): Promise<number> {
    if (task.op === 'save') return this.#save(task, index)
    const { model } = task
    const id = this.#resolveId(task.id)
    const isCreatedHere = id !== task.id
    if (task.op === 'delete') {
      if (isCreatedHere) await this.#completeRecord({ model, id }, true)
      const path = formatRequestPath(index)
      await removeInTransaction(this.#writer.state, { model, id, expected: task.expected, path })
    } else if (isCreatedHere) await this.#requireVersion({ ...task, id })
    return id
  }

  /** Refuses a batch that changes a record which it asserts: the record would no longer be the one that the client saw. */
  async finish(): Promise<readonly NewChange[]> {
    const changes = await this.#writer.state.finish()
    const versions = new Map(changes.map(({ model, id, version }) => [`${model} ${id}`, version]))
    await mapRequests(this.tasks, async (task) => {
      if (task.op !== 'assert') return
      const name = `${task.model.name} ${this.#resolveId(task.id)}`
      if ((versions.get(name) ?? 0) <= task.version) return
      const message = `${name} is both asserted and changed in this batch; nothing was changed`
      throw new VersoError('bad-request', message)
    })
    return changes
  }

  async readAnswer(task: BatchTask, id: number, index: number): Promise<BatchAnswer> {
    const answer = this.#answers.get(index)
    if (answer !== undefined) return answer
    if (task.op === 'save') return task.readResult(this.#writer.state, id)
    return task.op === 'delete' ? id : { id, version: task.version }
  }

  async #save(task: SaveTask, index: number): Promise<number> {
    const draft = replaceRefsWithIds(task.draft, this.refs, this.#createdIds)
    const { model, key } = draft
    const isCreatedHere = key !== undefined && key.id !== task.draft.key?.id
    if (isCreatedHere) await this.#completeRecord({ model, id: key.id }, draft.lists.size > 0)
    const id = await this.#writer.save(draft)
    this.#addWritten(task, id, index)
    return id
  }

  #addWritten({ ref, draft: { model } }: SaveTask, id: number, index: number): void {
    if (ref !== undefined) this.#createdIds.set(ref, id)
    this.#lastWriters.set(`${model.name} ${id}`, index)
  }

  /** Completes the Change of a record before the batch writes it again. The record at this point is the answer to its request. */
  async #completeRecord(record: RecordIdentity, mayLoseParts: boolean): Promise<void> {
    // An error belongs to the request that wrote the record.
    const finished = await withRequestIndex(undefined, () =>
      this.#writer.state.completeRecords(record, mayLoseParts),
    )
    for (const { model, id } of finished) {
      const name = `${model.name} ${id}`
      const writer = this.#lastWriters.get(name) ?? -1
      const task = this.tasks[writer]
      if (task) this.#answers.set(writer, await this.#collectAnswer(task, { model, id }, writer))
      this.#lastWriters.delete(name)
    }
  }

  async #collectAnswer(task: BatchTask, { model, id }: RecordIdentity, index: number): Promise<BatchAnswer> {
    const { app, tx } = this.context
    const isKey = this.#answerCollector.isFull && task.op === 'save'
    const answer = await (isKey ? readRecordKey(app, tx, model, id) : this.readAnswer(task, id, index))
    this.#answerCollector.add(answer)
    return answer
  }

  async #requireVersion({ model, id, version }: AssertTask): Promise<void> {
    const { app, tx } = this.context
    const [isVisible] = await evaluateOptionalCriteria(tx, app.tables.of(model), id, [
      getVisibleCriteria(this.context.principal, model),
    ])
    return isVisible ? requireVersion(this.context, model, { id, version }) : throwNotFound(model, id)
  }

  /** Resolves a ref to the id of the record that the batch has created. */
  #resolveId(reference: number): number {
    const pending = this.refs.findPending(reference)
    const id = pending ? this.#createdIds.get(pending.ref) : reference
    if (id === undefined) throw new Error(`the record of ref "${pending?.ref}" does not exist yet`)
    return id
  }
}
