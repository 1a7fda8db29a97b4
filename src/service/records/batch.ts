// Runs several requests about any models in one transaction: all of them, or none.
import { readBatch, type BatchRequest } from '../../model/write/batch.js'
import { Refs } from '../../model/write/refs.js'
import type { BatchOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import { mapRequests, withRequestIndex } from './batch-paths.js'
import { BatchRun, type BatchAnswer } from './batch-run.js'
import { prepareTasks } from './batch-tasks.js'
import { readRecordKey } from './save.js'
import { withRuleErrors } from './rule-errors.js'
import { redactSecrets } from '../input/secrets.js'
import { type Context } from '../context/context.js'
import { writeInTransaction, type TransactionScope, type WriteRequest } from '../write/transaction.js'
import { AnswerCollector } from '../context/written-answers.js'

export async function runBatch(
  context: Context,
  sent: unknown,
  options: BatchOptions = {},
): Promise<WriteResult<readonly BatchAnswer[]>> {
  const { app } = context
  const requests = readBatch(sent)
  const refs = new Refs()
  const tasks = await prepareTasks(context, requests, refs)
  const request = await buildBatchWriteRequest(app, requests, options)
  const drafts = tasks.flatMap((task) => (task.op === 'save' ? [task.draft] : []))
  const hasSaves = drafts.length > 0
  const work = async ({ context: writing, changes }: TransactionScope) => {
    const run = new BatchRun(writing, tasks, refs, options.merge === 'fields')
    await run.lock()
    await mapRequests(tasks, (task) => run.refuseStale(task))
    const written = await run.executeAll()
    changes.push(...(await withRequestIndex(undefined, () => run.finish())))
    const answers = new AnswerCollector<BatchAnswer>(app)
    await mapRequests(tasks, async (task, index) => {
      const id = written[index] ?? 0
      const isKey = answers.isFull && task.op === 'save'
      answers.add(
        await (isKey
          ? readRecordKey(app, writing.tx, task.draft.model, id)
          : run.readAnswer(task, id, index)),
      )
    })
    return answers.all()
  }
  return withRequestIndex(undefined, () =>
    withRuleErrors(
      context,
      () => writeInTransaction(context, request, { ...options, isNecessary: !hasSaves }, work),
      drafts,
    ),
  )
}

/** Describes the batch for the comparison with a repeat under the same idempotency key. */
async function buildBatchWriteRequest(
  app: App,
  requests: readonly BatchRequest[],
  { idempotencyKey, merge }: BatchOptions,
): Promise<WriteRequest> {
  if (idempotencyKey === undefined) return { action: 'batch' }
  const sent = requests.map((request) => ({
    model: app.catalog.get(request.model),
    data: 'data' in request ? request.data : null,
  }))
  const { data, secret } = await redactSecrets(app.catalog, sent, idempotencyKey)
  return {
    action: 'batch',
    data: requests.map((request, index) => ({ ...request, data: data[index] })),
    secret,
    ...(merge ? { merge } : {}),
  }
}
