import { briefly, Refusal } from '../errors.js'
import type { App } from '../service/app.js'
import { isCurrent } from '../store/stored-shapes.js'
import { sendJson, type Resource } from './resource.js'

const CHECKED_FOR_MS = 1_000
const OK = JSON.stringify({ status: 0, data: [] })

/** `/healthz`: the process answers. `/readyz`: it can serve, asked at most once a second. Open to all, so cheap. */
export function healthResources(app: App, isStopping: () => boolean): readonly Resource[] {
  let checked: { readonly atMs: number; readonly trouble: Promise<string | undefined> } | undefined
  const trouble = async () => {
    const now = performance.now()
    if (!checked || now - checked.atMs > CHECKED_FOR_MS) checked = { atMs: now, trouble: findTrouble(app) }
    return isStopping() ? 'The service is stopping' : checked.trouble
  }
  const shared = { guards: [], isAlwaysAnswered: true }
  return [
    { ...shared, path: '/healthz', handlers: { GET: async (_, reply) => sendJson(reply, OK) } },
    {
      ...shared,
      path: '/readyz',
      handlers: {
        GET: async (_, reply) => {
          const message = await trouble()
          if (message === undefined) return sendJson(reply, OK)
          throw new Refusal('busy', message, { retryAfterS: 1 })
        },
      },
    },
  ]
}

/** What keeps this node from serving, or undefined. */
async function findTrouble({ db, shapes, log }: App): Promise<string | undefined> {
  try {
    const isServing = await isCurrent(db.reader, shapes, [...shapes.keys()])
    return isServing
      ? undefined
      : 'The tables have changed since this node started: restart it with the new models'
  } catch (error) {
    log.warn(briefly(error), 'the store cannot be reached')
    return 'The store cannot be reached'
  }
}
