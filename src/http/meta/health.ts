import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { sendJson } from '../response/send.js'
import { documented, type Resource } from '../route/resource.js'
import { HEALTH_DOCS, READINESS_DOCS } from './meta-docs.js'
import { ReadinessCheck, SHUTTING_DOWN } from './readiness.js'

const HEALTHY_JSON = JSON.stringify({ status: 0, data: [] })

/**
 * `/healthz` succeeds while the process answers. `/readyz` succeeds while the node can read; its body says whether it can write, and
 * `?write` requires that. Both are public.
 */
export function createHealthResources(app: App, isStopping: () => boolean): readonly Resource[] {
  const check = new ReadinessCheck(app)
  const shared = { guards: [], isExemptFromLimits: true }
  return [
    {
      ...shared,
      path: '/healthz',
      handlers: { GET: documented(HEALTH_DOCS, async (_, reply) => sendJson(reply, HEALTHY_JSON)) },
    },
    {
      ...shared,
      path: '/readyz',
      handlers: {
        GET: documented(READINESS_DOCS, async (request, reply) => {
          const { canRead, obstacle } = isStopping() ? SHUTTING_DOWN : await check.find()
          const data = { writable: !obstacle, ...obstacle, ...app.readiness.collect() }
          if (obstacle && (!canRead || requiresWritable(request.query)))
            throw new VersoError('busy', obstacle.reason, { retryAfterS: 1, data })
          return sendJson(reply, JSON.stringify({ status: 0, data: [data] }))
        }),
      },
    },
  ]
}

function requiresWritable(query: unknown): boolean {
  return isObject(query) && Object.hasOwn(query, 'write')
}
