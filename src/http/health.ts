import { briefly, Refusal } from '../errors.js'
import type { App } from '../service/app.js'
import { sendJson, type Resource } from './resource.js'

const CHECKED_FOR_MS = 1_000
const OK = JSON.stringify({ status: 0, data: [] })

/** `/healthz`: the process answers. `/readyz`: the store answers too, asked at most once a second. Open to all, so cheap. */
export function healthResources(app: App, isStopping: () => boolean): readonly Resource[] {
  let checked = { atMs: -Infinity, result: Promise.resolve(true) }
  const isReady = async () => {
    const now = performance.now()
    if (now - checked.atMs > CHECKED_FOR_MS) checked = { atMs: now, result: canRead(app) }
    return (await checked.result) && !isStopping()
  }
  return [
    { path: '/healthz', guards: [], handlers: { GET: async (_, reply) => sendJson(reply, OK) } },
    {
      path: '/readyz',
      guards: [],
      handlers: {
        GET: async (_, reply) => {
          if (await isReady()) return sendJson(reply, OK)
          throw new Refusal(
            'busy',
            isStopping() ? 'The service is stopping' : 'The store cannot be reached',
            { retryAfterS: 1 },
          )
        },
      },
    },
  ]
}

async function canRead(app: App): Promise<boolean> {
  try {
    await app.db.reader.all('select 1 as "one"')
    return true
  } catch (error) {
    app.log.warn(briefly(error), 'the store cannot be reached')
    return false
  }
}
