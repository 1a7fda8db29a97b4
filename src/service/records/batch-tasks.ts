// The requests of a batch, checked as far as they can be without a transaction.
import { VersoError } from '../../errors.js'
import { formatRequestPath, type BatchRequest, type BatchTarget } from '../../model/write/batch.js'
import { createDraftReader, type Draft, type BatchDraftReader } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import type { Refs } from '../../model/write/refs.js'
import { isServiceModel } from '../../model/catalog/system-models.js'
import { refuseNewKey } from '../auth/key-rules.js'
import type { App } from '../context/app.js'
import { each, located } from './batch-paths.js'
import { writable } from '../context/ids.js'
import type { Identity } from '../write/lock-order.js'
import { sightOf, type Caller } from '../context/principal.js'
import { modelFor, requirePermitted } from '../access/permission-checks.js'
import { ready, requireUpdatable, shownTo, type Shown } from './save.js'
import type { Expected } from '../write/versions.js'

export interface Save {
  readonly op: 'save'
  readonly ref: string | undefined
  readonly draft: Draft
  readonly shown: Shown
}

/** By its id; what an earlier request makes, by what stands for it. */
export interface Delete extends Identity {
  readonly op: 'delete'
  readonly expected?: Expected
}

export interface Assert extends Identity {
  readonly op: 'assert'
  readonly version: number
}

export type Task = Save | Delete | Assert

/** Whether each may be asked for, then the values of all of them, with every fault of theirs. */
export async function tasksOf(
  app: App,
  by: Caller,
  requests: readonly BatchRequest[],
  refs: Refs,
  now: string,
): Promise<Task[]> {
  const models = await each(requests, (request) => permitted(app, by, request))
  const drafting = createDraftReader(sightOf(app, by), refs, now)
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
  if (request.op === 'update') await requireChangeable(app, by, model, request.id)
  return model
}

async function requireChangeable(app: App, by: Caller, model: Model, id: BatchTarget): Promise<void> {
  if (typeof id === 'number') return requireUpdatable(app, by, model, id)
  requirePermitted(by, 'update', model)
  // Their rules look at a whole record before anything is written, and there is none yet.
  if (isServiceModel(model))
    throw new VersoError(
      'bad-request',
      `A ${model.name} is made and changed in one request: say all of it where it is made`,
    )
}

function taskOf(
  app: App,
  by: Caller,
  request: BatchRequest,
  model: Model,
  drafting: BatchDraftReader,
  refs: Refs,
  index: number,
): Task {
  const { op } = request
  const idOf = (named: BatchTarget) => (typeof named === 'number' ? named : refs.getTemporaryId(named.$ref))
  if (op === 'assert') return { op, model, id: idOf(request.id), version: request.version }
  if (op === 'delete') {
    const { version } = request
    const id = idOf(request.id)
    return { op, model, id, ...(version === undefined ? {} : { expected: { version, by: 'version' } }) }
  }
  const key = op === 'update' ? { id: idOf(request.id), version: request.version } : undefined
  const draft = drafting.read(model, { data: request.data, key }, formatRequestPath(index))
  const ref = op === 'create' ? request.ref : undefined
  if (ref !== undefined) refs.add(ref, model)
  return { op: 'save', ref, draft, shown: shownTo(app, by, model, {}) }
}

function modelAt(models: readonly Model[], index: number): Model {
  const model = models[index]
  if (!model) throw new Error(`request ${index} has no model`)
  return model
}
