import type { FastifyRequest } from 'fastify'
import { MAX_BATCH_REQUESTS } from '../../model/write/batch.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { listPermittedModels } from '../../service/access/permission-checks.js'
import type { WireRecord } from '../../wire.js'
import { callerOf, type Guards } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { isMerged, mergeOf, sayMerged, versionIn } from '../request/merge-preference.js'
import { sendWritten } from './record-answers.js'
import { keyOf, refuseIfMatch } from '../route/record-request.js'
import { aboutRecords, type Resource } from '../route/resource.js'

/** Several requests about records of any model, all of them or none. */
export function batchResource(app: App, guards: Guards, habits: Habits): Resource {
  return {
    ...aboutRecords(guards),
    path: '/ws/batch',
    handlers: {
      POST: async (request, reply) => {
        refuseIfMatch(request)
        const requests = requestsIn(app, habits, request)
        const records = recordsForPrincipal(app, callerOf(request))
        const written = await records.batch(requests, { ...keyOf(request), ...mergeOf(request) })
        if (requests.some((sent, index) => isMergedUpdate(sent, written.data[index]))) sayMerged(reply)
        return sendWritten(reply, written)
      },
    },
  }
}

/** As they were sent, but for what is sent for records: that may be in the habits of existing clients. */
function requestsIn(app: App, habits: Habits, { body, caller }: FastifyRequest): readonly unknown[] {
  const requests = isObject(body) ? body['requests'] : undefined
  // What is no list, or too long, is refused further on.
  if (!caller || !Array.isArray(requests)) return []
  if (requests.length > MAX_BATCH_REQUESTS) return requests
  const models = new Map(listPermittedModels(app, caller).map((model) => [model.name, model]))
  return requests.map((request: unknown) => {
    const name = isObject(request) ? request['model'] : undefined
    const model = typeof name === 'string' ? models.get(name) : undefined
    if (!model || !isObject(request) || !isObject(request['data'])) return request
    return { ...request, data: habits.record(caller, model, request['data']) }
  })
}

function isMergedUpdate(sent: unknown, answer: WireRecord | number | undefined): boolean {
  if (!isObject(sent) || sent['op'] !== 'update' || typeof answer !== 'object') return false
  return isMerged(versionIn(sent) ?? versionIn(sent['data']), answer)
}
