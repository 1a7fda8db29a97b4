import { summarizeError, VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { findUnwritableReason, type UnwritableState } from '../../store/engine/write-health.js'
import { isSchemaCurrent } from '../../store/records/write.js'
import { sendJson } from '../response/send.js'
import { documented, type Resource } from '../route/resource.js'
import { HEALTH_DOCS, READINESS_DOCS } from './meta-docs.js'

const READINESS_CACHE_MS = 1_000
const HEALTHY_JSON = JSON.stringify({ status: 0, data: [] })

/**
 * `/healthz` succeeds while the process answers. `/readyz` succeeds while the node can read; its body says whether it can write, and
 * `?write` requires that. Both are public, so the database is queried at most once a second.
 */
export function createHealthResources(app: App, isStopping: () => boolean): readonly Resource[] {
  let cached: { readonly atMs: number; readonly readiness: Promise<Readiness> } | undefined
  const findReadiness = async (): Promise<Readiness> => {
    const now = performance.now()
    if (!cached || now - cached.atMs > READINESS_CACHE_MS)
      cached = { atMs: now, readiness: checkReadiness(app) }
    return isStopping() ? { problem: 'The service is shutting down' } : cached.readiness
  }
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
          const { problem, unwritable } = await findReadiness()
          if (problem !== undefined) throw new VersoError('busy', problem, { retryAfterS: 1 })
          const data = unwritable ? { writable: false, reason: unwritable.reason } : { writable: true }
          if (unwritable && requiresWritable(request.query))
            throw new VersoError('busy', unwritable.reason, { retryAfterS: 1, data })
          return sendJson(reply, JSON.stringify({ status: 0, data: [data] }))
        }),
      },
    },
  ]
}

interface Readiness {
  /** Reason why this node cannot serve requests. */
  readonly problem?: string
  /** Reason why this node rejects writes. */
  readonly unwritable?: UnwritableState | undefined
}

function requiresWritable(query: unknown): boolean {
  return isObject(query) && Object.hasOwn(query, 'write')
}

async function checkReadiness({ db, snapshots, log }: App): Promise<Readiness> {
  try {
    if (await isSchemaCurrent(db.reader, snapshots, [...snapshots.keys()]))
      return { unwritable: await db.writability() }
    return {
      problem:
        'This node runs outdated models: the schema changed after it started. Restart it with the new models',
    }
  } catch (error) {
    log.warn(summarizeError(error), 'database unavailable')
    return { problem: findUnwritableReason(error) ?? 'The database cannot be reached' }
  }
}
