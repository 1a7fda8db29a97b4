// Checks the requests of a batch as far as possible without a transaction.
import { VersoError } from '../../errors.js'
import { formatRequestPath, type BatchRequest, type BatchTarget } from '../../model/write/batch.js'
import { createDraftReader, type BatchDraftReader } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import type { Refs } from '../../model/write/refs.js'
import { isCheckedBeforehand } from '../context/hooks.js'
import { mapRequests, withRequestIndex } from './batch-paths.js'
import type { RecordIdentity } from '../write/lock-order.js'
import {
  requireKnownModel,
  requireDirectCreate,
  requirePermission,
  requireWritableModel,
  type ExpectedVersion,
  requireUpdatable,
} from '../access/request-checks.js'
import { buildResultReader, prepareDraft, type ResultReader } from './save.js'
import { getVisibility, type Context } from '../context/context.js'
import { withRuleErrors } from './rule-errors.js'

export interface SaveTask {
  readonly op: 'save'
  readonly ref: string | undefined
  readonly draft: Draft
  readonly readResult: ResultReader
}

/** A record by its id, or the placeholder of a record that an earlier request creates. */
export interface DeleteTask extends RecordIdentity {
  readonly op: 'delete'
  readonly expected?: ExpectedVersion
}

export interface AssertTask extends RecordIdentity {
  readonly op: 'assert'
  readonly version: number
}

export type BatchTask = SaveTask | DeleteTask | AssertTask

/** Checks the permissions of all requests, then their values, and reports every error. */
export async function prepareTasks(
  context: Context,
  requests: readonly BatchRequest[],
  refs: Refs,
): Promise<BatchTask[]> {
  const models = await mapRequests(requests, (request) => requirePermittedRequest(context, request))
  const draftReader = createDraftReader(getVisibility(context.app, context.principal), refs, context.now)
  const preparation = { context, draftReader, refs }
  const tasks = await mapRequests(requests, async (request, index) =>
    prepareTask(preparation, request, requireModelAt(models, index), index),
  )
  await withRequestIndex(undefined, () =>
    withRuleErrors(context, async () => {
      draftReader.finish()
    }),
  )
  return mapRequests(tasks, async (task) =>
    task.op === 'save' ? { ...task, draft: await prepareDraft(context, task.draft) } : task,
  )
}

/** Finds the model and checks that the request is permitted at all. */
async function requirePermittedRequest(context: Context, request: BatchRequest): Promise<Model> {
  const { principal } = context
  const model = requireKnownModel(context.app, principal, request.model)
  if (request.op !== 'assert') requireWritableModel(model)
  if (request.op === 'create') {
    requirePermission(principal, 'create', model)
    requireDirectCreate(model)
  }
  if (request.op === 'update') await requireBatchUpdatable(context, model, request.id)
  return model
}

async function requireBatchUpdatable(context: Context, model: Model, id: BatchTarget): Promise<void> {
  if (typeof id === 'number') return requireUpdatable(context, model, id)
  requirePermission(context.principal, 'update', model)
  // Hooks that check a record before the transaction would find none.
  if (isCheckedBeforehand(context.app.hooks, model))
    throw new VersoError(
      'bad-request',
      `A batch cannot update a ${model.name} that it creates: send all of its values with the create; nothing was changed`,
    )
}

interface BatchPreparation {
  readonly context: Context
  readonly draftReader: BatchDraftReader
  readonly refs: Refs
}

function prepareTask(
  { context, draftReader, refs }: BatchPreparation,
  request: BatchRequest,
  model: Model,
  index: number,
): BatchTask {
  const { op } = request
  const resolveId = (named: BatchTarget) =>
    typeof named === 'number' ? named : refs.getTemporaryId(named.$ref)
  if (op === 'assert') return { op, model, id: resolveId(request.id), version: request.version }
  if (op === 'delete') {
    const { version } = request
    const id = resolveId(request.id)
    return { op, model, id, ...(version === undefined ? {} : { expected: { version, source: 'version' } }) }
  }
  const key = op === 'update' ? { id: resolveId(request.id), version: request.version } : undefined
  const draft = draftReader.read(model, { data: request.data, key }, formatRequestPath(index))
  const ref = op === 'create' ? request.ref : undefined
  if (ref !== undefined) refs.add(ref, model)
  return { op: 'save', ref, draft, readResult: buildResultReader(context, model, {}) }
}

function requireModelAt(models: readonly Model[], index: number): Model {
  const model = models[index]
  if (!model) throw new Error(`request ${index} has no model`)
  return model
}
