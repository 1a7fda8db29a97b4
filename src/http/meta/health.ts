import { summarizeError, VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { findUnwritableReason, type UnwritableState } from '../../store/engine/database-condition.js'
import { isSchemaCurrent } from '../../store/schema/stored-snapshots.js'
import { sendJson, type Resource } from '../route/resource.js'

const CHECKED_FOR_MS = 1_000
const OK = JSON.stringify({ status: 0, data: [] })

/**
 * `/healthz`: the process answers. `/readyz`: it can read, and its body says whether it can write; with `?write` it must be able to.
 * Asked of the database at most once a second. Open to all, so cheap.
 */
export function healthResources(app: App, isStopping: () => boolean): readonly Resource[] {
  let checked: { readonly atMs: number; readonly readiness: Promise<Readiness> } | undefined
  const look = async (): Promise<Readiness> => {
    const now = performance.now()
    if (!checked || now - checked.atMs > CHECKED_FOR_MS) checked = { atMs: now, readiness: lookAt(app) }
    return isStopping() ? { trouble: 'The service is stopping' } : checked.readiness
  }
  const shared = { guards: [], isAlwaysAnswered: true }
  return [
    { ...shared, path: '/healthz', handlers: { GET: async (_, reply) => sendJson(reply, OK) } },
    {
      ...shared,
      path: '/readyz',
      handlers: {
        GET: async (request, reply) => {
          const { trouble, unwritable } = await look()
          if (trouble !== undefined) throw new VersoError('busy', trouble, { retryAfterS: 1 })
          const data = unwritable ? { writable: false, reason: unwritable.reason } : { writable: true }
          if (unwritable && mustWrite(request.query))
            throw new VersoError('busy', unwritable.reason, { retryAfterS: 1, data })
          return sendJson(reply, JSON.stringify({ status: 0, data: [data] }))
        },
      },
    },
  ]
}

interface Readiness {
  /** What keeps this node from serving at all. */
  readonly trouble?: string
  /** Why it takes no writes. */
  readonly unwritable?: UnwritableState | undefined
}

function mustWrite(query: unknown): boolean {
  return isObject(query) && Object.hasOwn(query, 'write')
}

async function lookAt({ db, snapshots, log }: App): Promise<Readiness> {
  try {
    if (await isSchemaCurrent(db.reader, snapshots, [...snapshots.keys()]))
      return { unwritable: await db.writability() }
    return { trouble: 'The tables have changed since this node started: restart it with the new models' }
  } catch (error) {
    log.warn(summarizeError(error), 'the store cannot be reached')
    return { trouble: findUnwritableReason(error) ?? 'The store cannot be reached' }
  }
}
