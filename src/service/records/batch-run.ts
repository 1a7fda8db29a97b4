// One attempt of the transaction of a batch.
import { VersoError } from '../../errors.js'
import { formatRequestPath } from '../../model/write/batch.js'
import { replaceRefsWithIds, replaceRefsWithDrafts } from '../../model/write/ref-drafts.js'
import type { Refs } from '../../model/write/refs.js'
import type { NewChange } from '../../store/log/log.js'
import type { WireRecord } from '../../wire.js'
import { each, located } from './batch-paths.js'
import type { Assert, Save, Task } from './batch-tasks.js'
import { refuseIfStale } from '../write/conflict.js'
import { missing } from '../context/ids.js'
import { lockNamed, type Identity } from '../write/lock-order.js'
import { removeOne } from './remove.js'
import { holding } from '../access/record-access.js'
import { seenBy } from '../access/visible-records.js'
import { writtenKey } from './save.js'
import { Saving } from '../write/record-writer.js'
import { requireVersion } from './verify.js'
import type { Work } from '../context/context.js'
import { WrittenAnswers } from '../write/written-answers.js'

/** A record as it was written; the id of one that is gone. */
export type Answer = WireRecord | number

export class Running {
  readonly #saving: Saving
  /** What was made by now, by ref. */
  readonly #made = new Map<string, number>()
  /** The last request that wrote each record, until that is answered. */
  readonly #writers = new Map<string, number>()
  readonly #answers = new Map<number, Answer>()
  /** Bounds what they take in memory until the end. */
  readonly #kept: WrittenAnswers<Answer>

  constructor(
    private readonly work: Work,
    private readonly tasks: readonly Task[],
    private readonly refs: Refs,
    merges: boolean,
  ) {
    this.#saving = new Saving(work, [], { isOfOne: tasks.length === 1, merges })
    this.#kept = new WrittenAnswers(work.app)
  }

  async lock(): Promise<void> {
    await lockNamed(this.work, {
      drafts: this.tasks.flatMap((task) => (task.op === 'save' ? [task.draft] : [])),
      removed: this.tasks.flatMap((task) => (task.op === 'delete' ? [task] : [])),
      asserted: this.tasks.flatMap((task) => (task.op === 'assert' ? [task] : [])),
    })
  }

  /** Before anything is written, so that a conflict shows what is committed; what is asserted stays so until the end. */
  async refuseStale(task: Task): Promise<void> {
    const { app, tx } = this.work
    if (task.op === 'save') return this.#saving.refuseStale([replaceRefsWithDrafts(task.draft, this.refs)])
    const { model, id } = task
    // What is yet to be made has no version before its time.
    if (this.refs.findPending(id)) return
    const table = app.tables.of(model)
    if (task.op === 'assert') return this.#requireVersion(task)
    await this.#saving.requireRemovable(table, id)
    if (task.expected) await refuseIfStale(this.work, tx, table, id, task.expected, null)
  }

  /** Answers the id of the record. */
  async do(task: Task, index: number): Promise<number> {
    if (task.op === 'save') return this.#save(task, index)
    const { model } = task
    const id = this.#idOf(task.id)
    const isMade = id !== task.id
    if (task.op === 'delete') {
      if (isMade) await this.#settle({ model, id }, true)
      await removeOne(this.work, this.#saving, model, id, task.expected, formatRequestPath(index))
    } else if (isMade) await this.#requireVersion({ ...task, id })
    return id
  }

  /** What is asserted must not be changed by the rest either: then it is not as its sender has seen it. */
  async finish(): Promise<readonly NewChange[]> {
    const changes = await this.#saving.finish()
    const versions = new Map(changes.map(({ model, id, version }) => [`${model} ${id}`, version]))
    await each(this.tasks, async (task) => {
      if (task.op !== 'assert') return
      const name = `${task.model.name} ${this.#idOf(task.id)}`
      if ((versions.get(name) ?? 0) <= task.version) return
      const message = `${name} is asserted, and changed in this request: nothing was written`
      throw new VersoError('bad-request', message)
    })
    return changes
  }

  async answerOf(task: Task, id: number, index: number): Promise<Answer> {
    const answer = this.#answers.get(index)
    if (answer !== undefined) return answer
    if (task.op === 'save') return task.shown(this.#saving, this.work.tx, id)
    return task.op === 'delete' ? id : { id, version: task.version }
  }

  async #save(task: Save, index: number): Promise<number> {
    const draft = replaceRefsWithIds(task.draft, this.refs, this.#made)
    const { model, key } = draft
    const isMade = key !== undefined && key.id !== task.draft.key?.id
    if (isMade) await this.#settle({ model, id: key.id }, draft.lists.size > 0)
    const id = await this.#saving.save(draft)
    if (task.ref !== undefined) this.#made.set(task.ref, id)
    this.#writers.set(`${model.name} ${id}`, index)
    return id
  }

  /** What was written of a record is complete before it is written again, and is what its request is answered. */
  async #settle(record: Identity, mayLoseParts: boolean): Promise<void> {
    // A fault of it is one of the request that wrote it.
    const settled = await located(undefined, () => this.#saving.settle(record, mayLoseParts))
    for (const { model, id } of settled) {
      const name = `${model.name} ${id}`
      const writer = this.#writers.get(name) ?? -1
      const task = this.tasks[writer]
      if (task) this.#answers.set(writer, await this.#answerNow(task, { model, id }, writer))
      this.#writers.delete(name)
    }
  }

  async #answerNow(task: Task, { model, id }: Identity, index: number): Promise<Answer> {
    const { app, tx } = this.work
    const isKey = this.#kept.isFull && task.op === 'save'
    const answer = await (isKey ? writtenKey(app, tx, model, id) : this.answerOf(task, id, index))
    this.#kept.add(answer)
    return answer
  }

  async #requireVersion({ model, id, version }: Assert): Promise<void> {
    const { app, tx } = this.work
    const [isSeen] = await holding(tx, app.tables.of(model), id, [seenBy(this.work, model)])
    return isSeen ? requireVersion(this.work, tx, model, { id, version }) : missing(model, id)
  }

  /** The id of what a task names, also of what was made by now. */
  #idOf(named: number): number {
    const made = this.refs.findPending(named)
    const id = made ? this.#made.get(made.ref) : named
    if (id === undefined) throw new Error(`"${made?.ref}" was to be made before it is named`)
    return id
  }
}
