// One attempt of the transaction of a batch.
import { VersoError } from '../../../src/errors.js'
import { formatRequestPath } from '../../../src/model/write/batch.js'
import { replaceRefsWithDrafts, replaceRefsWithIds, type Refs } from '../../../src/model/write/refs.js'
import type { NewChange } from '../../../src/store/log/log.js'
import type { WireRecord } from '../../../src/wire.js'
import { mapRequests, withRequestIndex } from '../../../src/service/records/batch-paths.js'
import type { AssertTask, SaveTask, BatchTask } from './batch-tasks.js'
import { refuseIfStale } from '../../../src/service/write/conflict.js'
import { throwNotFound } from '../../../src/service/access/permission-checks.js'
import { lockBatch, type RecordIdentity } from '../../../src/service/write/lock-order.js'
import { removeInTransaction } from './remove.js'
import { evaluateOptionalCriteria } from './record-access.js'
import { getVisibleCriteria } from '../../../src/service/access/visible-records.js'
import { readRecordKey } from './save.js'
import { RecordWriter } from './record-writer.js'
import { requireVersion } from '../../../src/service/records/verify.js'
import type { WriteContext } from '../../../src/service/context/context.js'
import { AnswerCollector } from '../../../src/service/context/written-answers.js'

/** The answer to one request: the record as written, or the id of a deleted one. */
export type BatchAnswer = WireRecord | number

export class BatchRun {
  readonly #writer: RecordWriter
  /** Ids of the created records by ref. */
  readonly #createdIds = new Map<string, number>()
  /** The last request that wrote each record, until its answer is known. */
  readonly #lastWriters = new Map<string, number>()
  readonly #answers = new Map<number, BatchAnswer>()
  /** Limits the memory that the answers take until the end. */
  readonly #answerCollector: AnswerCollector<BatchAnswer>

  constructor(
    private readonly context: WriteContext,
    private readonly tasks: readonly BatchTask[],
    private readonly refs: Refs,
    merges: boolean,
  ) {
    this.#writer = new RecordWriter(context, [], { isSingleRecord: tasks.length === 1, merges })
    this.#answerCollector = new AnswerCollector(context.app)
  }

  async lock(): Promise<void> {
    await lockBatch(this.context, {
      drafts: this.tasks.flatMap((task) => (task.op === 'save' ? [task.draft] : [])),
      removed: this.tasks.flatMap((task) => (task.op === 'delete' ? [task] : [])),
      asserted: this.tasks.flatMap((task) => (task.op === 'assert' ? [task] : [])),
    })
  }

  /**
   * Refuses stale requests before anything is written, so that a conflict shows committed values. Asserted records stay locked until the
   * end.
   */
  async refuseStale(task: BatchTask): Promise<void> {
    const { app } = this.context
    if (task.op === 'save') return this.#writer.refuseStale([replaceRefsWithDrafts(task.draft, this.refs)])
    const { model, id } = task
    // A record that the batch creates has no version yet.
    if (this.refs.findPending(id)) return
    const table = app.tables.of(model)
    if (task.op === 'assert') return this.#requireVersion(task)
    await this.#writer.requireRemovable(table, id)
    if (task.expected) await refuseIfStale(this.context, table, id, { expected: task.expected, draft: null })
  }

  /** Executes a task and returns the id of its record. */
  async execute(task: BatchTask, index: number): Promise<number> {
    if (task.op === 'save') return this.#save(task, index)
    const { model } = task
    const id = this.#resolveId(task.id)
    const isMade = id !== task.id
    if (task.op === 'delete') {
      if (isMade) await this.#finishRecord({ model, id }, true)
      const path = formatRequestPath(index)
      await removeInTransaction(this.#writer, { model, id, expected: task.expected, path })
    } else if (isMade) await this.#requireVersion({ ...task, id })
    return id
  }

  /** Refuses a batch that changes a record which it asserts: the record would no longer be the one that the client saw. */
  async finish(): Promise<readonly NewChange[]> {
    const changes = await this.#writer.finish()
    const versions = new Map(changes.map(({ model, id, version }) => [`${model} ${id}`, version]))
    await mapRequests(this.tasks, async (task) => {
      if (task.op !== 'assert') return
      const name = `${task.model.name} ${this.#resolveId(task.id)}`
      if ((versions.get(name) ?? 0) <= task.version) return
      const message = `${name} is asserted, and changed in this request: nothing was written`
      throw new VersoError('bad-request', message)
    })
    return changes
  }

  async readAnswer(task: BatchTask, id: number, index: number): Promise<BatchAnswer> {
    const answer = this.#answers.get(index)
    if (answer !== undefined) return answer
    if (task.op === 'save') return task.readResult(this.#writer, id)
    return task.op === 'delete' ? id : { id, version: task.version }
  }

  async #save(task: SaveTask, index: number): Promise<number> {
    const draft = replaceRefsWithIds(task.draft, this.refs, this.#createdIds)
    const { model, key } = draft
    const isMade = key !== undefined && key.id !== task.draft.key?.id
    if (isMade) await this.#finishRecord({ model, id: key.id }, draft.lists.size > 0)
    const id = await this.#writer.save(draft)
    if (task.ref !== undefined) this.#createdIds.set(task.ref, id)
    this.#lastWriters.set(`${model.name} ${id}`, index)
    return id
  }

  /** Completes the Change of a record before the batch writes it again. The record at this point is the answer to its request. */
  async #finishRecord(record: RecordIdentity, mayLoseParts: boolean): Promise<void> {
    // An error belongs to the request that wrote the record.
    const settled = await withRequestIndex(undefined, () => this.#writer.finishRecord(record, mayLoseParts))
    for (const { model, id } of settled) {
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
