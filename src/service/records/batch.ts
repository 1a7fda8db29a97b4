// Several requests about records of any model, one after the other in one transaction: all of them are done, or none.
import { readBatch, type BatchRequest } from '../../model/write/batch.js'
import { Refs } from '../../model/write/refs.js'
import type { BatchOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import { each, located } from './batch-paths.js'
import { Running, type Answer } from './batch-run.js'
import { tasksOf } from './batch-tasks.js'
import type { Caller } from '../context/principal.js'
import { writtenKey } from './save.js'
import { withoutSecrets } from '../write/secrets.js'
import { nowOf } from '../context/context.js'
import { write, type WriteRequest } from '../write/transaction.js'
import { WrittenAnswers } from '../write/written-answers.js'

export async function batch(
  app: App,
  by: Caller,
  sent: unknown,
  options: BatchOptions = {},
): Promise<WriteResult<readonly Answer[]>> {
  const now = nowOf(app)
  const requests = readBatch(sent)
  const refs = new Refs()
  const tasks = await tasksOf(app, by, requests, refs, now)
  const request = await requestOf(app, requests, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const running = new Running({ app, ...by, tx, now }, tasks, refs, options.merge === 'fields')
    await running.lock()
    await each(tasks, (task) => running.refuseStale(task))
    const written = await each(tasks, (task, index) => running.do(task, index))
    changes.push(...(await located(undefined, () => running.finish())))
    const answers = new WrittenAnswers<Answer>(app)
    await each(tasks, async (task, index) => {
      const id = written[index] ?? 0
      const isKey = answers.isFull && task.op === 'save'
      answers.add(
        await (isKey ? writtenKey(app, tx, task.draft.model, id) : running.answerOf(task, id, index)),
      )
    })
    return answers.all()
  })
}

/** What a repeat under the same key must be equal to. */
async function requestOf(
  app: App,
  requests: readonly BatchRequest[],
  { idempotencyKey, merge }: BatchOptions,
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
    ...(merge ? { merge } : {}),
  }
}
