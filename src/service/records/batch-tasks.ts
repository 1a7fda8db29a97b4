// The requests of a batch, checked as far as they can be without a transaction.
import { VersoError } from '../../errors.js'
import { formatRequestPath, type BatchRequest, type BatchTarget } from '../../model/write/batch.js'
import { createDraftReader, type Draft, type BatchDraftReader } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import type { Refs } from '../../model/write/refs.js'
import { isServiceModel } from '../../model/catalog/system-models.js'
import { refuseDirectKeyCreate } from '../auth/key-rules.js'
import type { App } from '../context/app.js'
import { mapRequests, withRequestIndex } from './batch-paths.js'
import { requireWritableModel } from '../context/ids.js'
import type { RecordIdentity } from '../write/lock-order.js'
import { getVisibility, type Principal } from '../context/principal.js'
import { requireKnownModel, requirePermission } from '../access/permission-checks.js'
import { prepareDraft, requireUpdatable, buildResultReader, type ResultReader } from './save.js'
import type { ExpectedVersion } from '../write/versions.js'

export interface SaveTask {
  readonly op: 'save'
  readonly ref: string | undefined
  readonly draft: Draft
  readonly readResult: ResultReader
}

/** By its id; what an earlier request makes, by what stands for it. */
export interface DeleteTask extends RecordIdentity {
  readonly op: 'delete'
  readonly expected?: ExpectedVersion
}

export interface AssertTask extends RecordIdentity {
  readonly op: 'assert'
  readonly version: number
}

export type BatchTask = SaveTask | DeleteTask | AssertTask

/** Whether each may be asked for, then the values of all of them, with every fault of theirs. */
export async function prepareTasks(
  app: App,
  principal: Principal,
  requests: readonly BatchRequest[],
  refs: Refs,
  now: string,
): Promise<BatchTask[]> {
  const models = await mapRequests(requests, (request) => requirePermittedRequest(app, principal, request))
  const drafting = createDraftReader(getVisibility(app, principal), refs, now)
  const tasks = await mapRequests(requests, async (request, index) =>
    prepareTask(app, principal, request, requireModelAt(models, index), drafting, refs, index),
  )
  await withRequestIndex(undefined, async () => {
    drafting.finish()
  })
  return mapRequests(tasks, async (task) =>
    task.op === 'save' ? { ...task, draft: await prepareDraft(app, principal, task.draft) } : task,
  )
}

/** The model, if such a request about it is permitted at all. */
async function requirePermittedRequest(
  app: App,
  principal: Principal,
  request: BatchRequest,
): Promise<Model> {
  const model = requireKnownModel(app, principal, request.model)
  if (request.op !== 'assert') requireWritableModel(model)
  if (request.op === 'create') {
    requirePermission(principal, 'create', model)
    refuseDirectKeyCreate(model)
  }
  if (request.op === 'update') await requireBatchUpdatable(app, principal, model, request.id)
  return model
}

async function requireBatchUpdatable(
  app: App,
  principal: Principal,
  model: Model,
  id: BatchTarget,
): Promise<void> {
  if (typeof id === 'number') return requireUpdatable(app, principal, model, id)
  requirePermission(principal, 'update', model)
  // Their rules look at a whole record before anything is written, and there is none yet.
  if (isServiceModel(model))
    throw new VersoError(
      'bad-request',
      `A ${model.name} is made and changed in one request: say all of it where it is made`,
    )
}

function prepareTask(
  app: App,
  principal: Principal,
  request: BatchRequest,
  model: Model,
  drafting: BatchDraftReader,
  refs: Refs,
  index: number,
): BatchTask {
  const { op } = request
  const idOf = (named: BatchTarget) => (typeof named === 'number' ? named : refs.getTemporaryId(named.$ref))
  if (op === 'assert') return { op, model, id: idOf(request.id), version: request.version }
  if (op === 'delete') {
    const { version } = request
    const id = idOf(request.id)
    return { op, model, id, ...(version === undefined ? {} : { expected: { version, source: 'version' } }) }
  }
  const key = op === 'update' ? { id: idOf(request.id), version: request.version } : undefined
  const draft = drafting.read(model, { data: request.data, key }, formatRequestPath(index))
  const ref = op === 'create' ? request.ref : undefined
  if (ref !== undefined) refs.add(ref, model)
  return { op: 'save', ref, draft, readResult: buildResultReader(app, principal, model, {}) }
}

function requireModelAt(models: readonly Model[], index: number): Model {
  const model = models[index]
  if (!model) throw new Error(`request ${index} has no model`)
  return model
}
