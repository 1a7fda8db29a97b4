import type { FastifyRequest } from 'fastify'
import { MAX_BATCH_REQUESTS } from '../../model/write/batch.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { listPermittedModels } from '../../service/access/request-checks.js'
import type { WireRecord } from '../../wire.js'
import { requirePrincipal } from '../route/guard.js'
import type { Protocol } from '../compat/protocol.js'
import { isMerged, readMergePreference, setMergeApplied, readBaseVersion } from '../request/preferences.js'
import { sendWriteResult } from './record-responses.js'
import { readIdempotencyKey, refuseIfMatch } from '../request/headers.js'
import { buildRecordRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import { BATCH_DOCS } from './bulk-docs.js'

/** Executes several requests about records of any model, atomically. */
export function createBatchResource({ app, guards, protocol }: RouteContext): Resource {
  return {
    ...buildRecordRouteDefaults(guards),
    path: '/ws/batch',
    handlers: {
      POST: documented(BATCH_DOCS, async (request, reply) => {
        refuseIfMatch(request)
        const requests = readBatchRequests(app, protocol, request)
        const records = recordsForPrincipal(app, requirePrincipal(request))
        const written = await records.batch(requests, {
          ...readIdempotencyKey(request),
          ...readMergePreference(request),
        })
        if (requests.some((batchRequest, index) => isMergedUpdate(batchRequest, written.data[index])))
          setMergeApplied(reply)
        return sendWriteResult(reply, written)
      }),
    },
  }
}

/** Returns the requests with their record values converted by the protocol. */
function readBatchRequests(
  app: App,
  protocol: Protocol,
  { body, principal }: FastifyRequest,
): readonly unknown[] {
  const requests = isObject(body) ? body['requests'] : undefined
  // The service rejects an empty list and a list that is too long.
  if (!principal || !Array.isArray(requests)) return []
  if (requests.length > MAX_BATCH_REQUESTS) return requests
  const models = new Map(listPermittedModels(app, principal).map((model) => [model.name, model]))
  return requests.map((request: unknown) => {
    const name = isObject(request) ? request['model'] : undefined
    const model = typeof name === 'string' ? models.get(name) : undefined
    if (!model || !isObject(request) || !isObject(request['data'])) return request
    return { ...request, data: protocol.convertRecord(principal, model, request['data']) }
  })
}

function isMergedUpdate(request: unknown, result: WireRecord | number | undefined): boolean {
  if (!isObject(request) || request['op'] !== 'update' || typeof result !== 'object') return false
  return isMerged(readBaseVersion(request) ?? readBaseVersion(request['data']), result)
}
