// New records and updates on the short way: one record as `data`, from the version that it names.
import type { IncomingMessage } from 'node:http'
import { isObject } from '../model/values/value.js'
import { authenticate } from '../service/auth/sessions.js'
import { recordsForPrincipal } from '../service/records/records.js'
import type { Principal } from '../service/context/principal.js'
import { requireKnownModel } from '../service/access/permission-checks.js'
import { parseJsonBody } from './request/bodies.js'
import { readSessionId } from './request/credentials.js'
import { buildRecordBody } from './records/record-responses.js'
import {
  callerKnown,
  ForTheRoutes,
  Gone,
  ID,
  LIST,
  RECORD,
  type FastPathParts,
  type FastPathReader,
} from './short-way.js'

/** Longer ones are worth the longer way. */
const MAX_BYTES = 16_384
const JSON_TYPES: ReadonlySet<string | undefined> = new Set([
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8',
])

export function shortWrites(parts: FastPathParts): FastPathReader {
  const { app, settings } = parts
  const { basePath } = settings
  const prefix = `${basePath}/ws/rest/`
  const [recordRoute, listRoute] = [basePath + RECORD, basePath + LIST]
  return (request) => {
    const { method, url = '', headers } = request
    if ((method !== 'PUT' && method !== 'POST') || !url.startsWith(prefix)) return undefined
    const end = url.indexOf('/', prefix.length)
    const id = end < 0 ? '' : url.slice(end + 1)
    const isUpdate = method === 'POST' && ID.test(id)
    if (!isUpdate && (method !== 'PUT' || end >= 0 || url.includes('?'))) return undefined
    const length = Number(headers['content-length'])
    const isSmall = length > 0 && length <= Math.min(MAX_BYTES, settings.bodyLimitBytes)
    if (!isSmall || !JSON_TYPES.has(headers['content-type'])) return undefined
    const principal = callerKnown(parts, request)
    if (!principal) return undefined
    const model = requireKnownModel(app, principal, url.slice(prefix.length, end < 0 ? undefined : end))
    return {
      principal,
      model,
      route: isUpdate ? recordRoute : listRoute,
      answer: async () => {
        const body = await bodyOf(request, length)
        const still = await callerStill(parts, request)
        const data = dataIn(body)
        if (!still || !data) return byTheRoutes(request, body)
        const records = recordsForPrincipal(app, still)
        const written = isUpdate
          ? await records.update(model.name, Number(id), data)
          : await records.create(model.name, data)
        const [text, etag] = buildRecordBody(written.data)
        return [text, ['etag', etag]]
      },
    }
  }
}

/** All of it, and not more: so that it can be given back. */
async function bodyOf(request: IncomingMessage, length: number): Promise<Buffer> {
  // One that is closed already says so no more.
  if (request.destroyed) throw new Gone()
  return new Promise((resolve, reject) => {
    const onReadable = () => {
      const body = request.read(length) as Buffer | null
      if (body)
        end(() => {
          resolve(body)
        })
    }
    const onClose = () => {
      end(() => {
        reject(new Gone())
      })
    }
    const end = (settle: () => void) => {
      request.off('readable', onReadable).off('close', onClose)
      settle()
    }
    request.on('readable', onReadable).on('close', onClose)
  })
}

/** Whoever takes their time with a body may be nobody by then, or may do less. */
async function callerStill(
  { app }: FastPathParts,
  { headers }: IncomingMessage,
): Promise<Principal | undefined> {
  return authenticate(app, readSessionId({ headers }), { isUse: false })
}

/** One record and nothing else; undefined for all that the routes know better, also for what is wrong. */
function dataIn(body: Buffer): object | undefined {
  try {
    const sent = (parseJsonBody(body) ?? {}) as { readonly data?: unknown }
    const [key, ...others] = Object.keys(sent)
    return key === 'data' && others.length === 0 && isObject(sent.data) ? sent.data : undefined
  } catch {
    return undefined
  }
}

function byTheRoutes(request: IncomingMessage, body: Buffer): never {
  request.unshift(body)
  throw new ForTheRoutes()
}
