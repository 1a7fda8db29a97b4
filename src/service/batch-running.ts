// One attempt of the transaction of a batch.
import { Refusal } from '../errors.js'
import { placeOf } from '../model/batch.js'
import { withIds, withRefs } from '../model/ref-drafts.js'
import type { Refs } from '../model/refs.js'
import type { NewChange } from '../store/log.js'
import type { WireRecord } from '../wire.js'
import { each } from './batch-places.js'
import type { Task } from './batch-tasks.js'
import { refuseIfStale } from './conflict.js'
import { missing } from './ids.js'
import { lockNamed } from './lock-order.js'
import { removeOne } from './removals.js'
import { holding } from './rights/permits.js'
import { seenBy } from './rights/shown.js'
import { Saving } from './saving.js'
import { requireVersion } from './verify.js'
import type { Work } from './work.js'

/** A record as it was written; the id of one that is gone. */
export type Answer = WireRecord | number

export class Running {
  readonly #saving: Saving
  /** What was made by now, by ref. */
  readonly #made = new Map<string, number>()

  constructor(
    private readonly work: Work,
    private readonly tasks: readonly Task[],
    private readonly refs: Refs,
  ) {
    this.#saving = new Saving(work, [], { isOfOne: tasks.length === 1 })
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
    if (task.op === 'save') return this.#saving.refuseStale([withRefs(task.draft, this.refs)])
    const { model, id } = task
    const table = app.tables.of(model)
    if (task.op === 'assert') {
      const [isSeen] = await holding(tx, table, id, [seenBy(this.work, model)])
      return isSeen ? requireVersion(this.work, tx, model, task) : missing(model, id)
    }
    await this.#saving.requireRemovable(table, id)
    if (task.expected) await refuseIfStale(this.work, tx, table, id, task.expected, null)
  }

  /** Answers the id of the record. */
  async do(task: Task, index: number): Promise<number> {
    if (task.op === 'assert') return task.id
    if (task.op === 'delete') {
      await removeOne(this.work, this.#saving, task.model, task.id, task.expected, placeOf(index))
      return task.id
    }
    const id = await this.#saving.save(withIds(task.draft, this.refs, this.#made))
    if (task.ref !== undefined) this.#made.set(task.ref, id)
    return id
  }

  /** What is asserted must not be changed by the rest either: then it is not as its sender has seen it. */
  async finish(): Promise<readonly NewChange[]> {
    const changes = await this.#saving.finish()
    const changed = new Set(changes.map(({ model, id }) => `${model} ${id}`))
    await each(this.tasks, async (task) => {
      if (task.op !== 'assert' || !changed.has(`${task.model.name} ${task.id}`)) return
      const message = `${task.model.name} ${task.id} is asserted, and changed in this request: nothing was written`
      throw new Refusal('bad-request', message)
    })
    return changes
  }

  async answerOf(task: Task, id: number): Promise<Answer> {
    if (task.op === 'save') return task.shown(this.#saving, this.work.tx, id)
    return task.op === 'delete' ? id : { id, version: task.version }
  }
}
