// Several requests about records of any model, one after the other in one transaction: all of them are done, or none.
import { Refusal } from '../errors.js'
import { indexOfPlace, placeOf, readBatch, type BatchRequest } from '../model/batch.js'
import { draftsOf, type Draft, type Drafting } from '../model/draft.js'
import type { Model } from '../model/model.js'
import { withIds, withRefs } from '../model/ref-drafts.js'
import { Refs } from '../model/refs.js'
import type { NewChange } from '../store/log.js'
import type { WireRecord, WriteOptions, Written } from '../wire.js'
import { refuseNewKey } from './accounts/key-rules.js'
import type { App } from './app.js'
import { refuseIfStale } from './conflict.js'
import { missing, writable } from './ids.js'
import { lockNamed } from './lock-order.js'
import { removeOne } from './removals.js'
import { sightOf, type Caller } from './rights/caller.js'
import { modelFor, requirePermitted } from './rights/permitted.js'
import { holding } from './rights/permits.js'
import { seenBy } from './rights/shown.js'
import { ready, requireUpdatable, shownTo, type Shown } from './saves.js'
import { Saving } from './saving.js'
import { withoutSecrets } from './secrets.js'
import { requireVersion } from './verify.js'
import type { Expected } from './versions.js'
import { nowOf, type Work } from './work.js'
import { write, type WriteRequest } from './writing.js'

/** A record as it was written; the id of one that is gone. */
type Answer = WireRecord | number

/** A request that was checked as far as it can be without a transaction. */
type Task =
  | { readonly op: 'save'; readonly ref: string | undefined; readonly draft: Draft; readonly shown: Shown }
  | { readonly op: 'delete'; readonly model: Model; readonly id: number; readonly expected?: Expected }
  | { readonly op: 'assert'; readonly model: Model; readonly id: number; readonly version: number }

export async function batch(
  app: App,
  by: Caller,
  sent: unknown,
  options: WriteOptions = {},
): Promise<Written<readonly Answer[]>> {
  const now = nowOf(app)
  const requests = readBatch(sent)
  const refs = new Refs()
  const tasks = await tasksOf(app, by, requests, refs, now)
  const request = await requestOf(app, requests, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const running = new Running({ app, ...by, tx, now }, tasks, refs)
    await running.lock()
    await each(tasks, (task) => running.refuseStale(task))
    const written = await each(tasks, (task, index) => running.do(task, index))
    changes.push(...(await located(undefined, () => running.finish())))
    return each(tasks, (task, index) => running.answerOf(task, written[index] ?? 0))
  })
}

/** One attempt of the transaction. */
class Running {
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

/** Whether each may be asked for, then the values of all of them, with every fault of theirs. */
async function tasksOf(
  app: App,
  by: Caller,
  requests: readonly BatchRequest[],
  refs: Refs,
  now: string,
): Promise<Task[]> {
  const models = await each(requests, (request) => permitted(app, by, request))
  const drafting = draftsOf(sightOf(app, by), refs, now)
  const tasks = await each(requests, async (request, index) =>
    taskOf(app, by, request, modelAt(models, index), drafting, refs, index),
  )
  await located(undefined, async () => {
    drafting.finish()
  })
  return each(tasks, async (task) =>
    task.op === 'save' ? { ...task, draft: await ready(app, by, task.draft) } : task,
  )
}

/** The model, if such a request about it is permitted at all. */
async function permitted(app: App, by: Caller, request: BatchRequest): Promise<Model> {
  const model = modelFor(app, by, request.model)
  if (request.op !== 'assert') writable(model)
  if (request.op === 'create') {
    requirePermitted(by, 'create', model)
    refuseNewKey(model)
  }
  if (request.op === 'update') await requireUpdatable(app, by, model, request.id)
  return model
}

function taskOf(
  app: App,
  by: Caller,
  request: BatchRequest,
  model: Model,
  drafting: Drafting,
  refs: Refs,
  index: number,
): Task {
  const { op } = request
  if (op === 'assert') return { ...request, op, model }
  if (op === 'delete') {
    const { id, version } = request
    return { op, model, id, ...(version === undefined ? {} : { expected: { version, by: 'version' } }) }
  }
  const key = op === 'update' ? { id: request.id, version: request.version } : undefined
  const draft = drafting.read(model, { data: request.data, key }, placeOf(index))
  const ref = op === 'create' ? request.ref : undefined
  if (ref !== undefined) refs.add(ref, model)
  return { op: 'save', ref, draft, shown: shownTo(app, by, model, {}) }
}

function modelAt(models: readonly Model[], index: number): Model {
  const model = models[index]
  if (!model) throw new Error(`request ${index} has no model`)
  return model
}

/** What a repeat under the same key must be equal to. */
async function requestOf(
  app: App,
  requests: readonly BatchRequest[],
  { idempotencyKey }: WriteOptions,
): Promise<WriteRequest> {
  if (idempotencyKey === undefined) return { action: 'batch' }
  const sent = requests.map((request) => ({
    model: app.catalog.get(request.model),
    data: 'data' in request ? request.data : null,
  }))
  const { data, secret } = await withoutSecrets(app.catalog, sent, idempotencyKey)
  return {
    action: 'batch',
    data: requests.map((request, index) => ({ ...request, data: data[index] })),
    secret,
  }
}

/** One after the other; a refusal says which of them it is about. */
async function each<T, R>(all: readonly T[], work: (one: T, index: number) => R | Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const [index, one] of all.entries()) results.push(await located(index, async () => work(one, index)))
  return results
}

/** Where the number is not known, the refusal may tell it by its place. */
async function located<T>(index: number | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { data, ...details } = error.details
    const place = details.place ?? Object.keys(details.errors ?? {})[0]
    const found = index ?? indexOfPlace(place)
    if (found === undefined || data?.['index'] !== undefined) throw error
    throw new Refusal(error.kind, error.message, { ...details, data: { ...data, index: found } })
  }
}
