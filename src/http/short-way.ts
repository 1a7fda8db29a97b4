// The shortest way for what is asked most, by somebody who was here a moment ago: a record, a page, a new record, an update. It answers what it
// understands wholly; whatever else there is to a request is left to the routes, as if it had not been here.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import { pipeline } from 'node:stream'
import type { Model } from '../model/definition/model.js'
import type { App } from '../service/context/app.js'
import { authenticateCached } from '../service/auth/sessions.js'
import type { Principal } from '../service/context/principal.js'
import { StagedBody, type ResponseBody, type ResponseBuffer } from './response/response-buffer.js'
import { readSessionId } from './request/credentials.js'
import type { HostCheck } from './route/origin.js'
import type { RequestLimits } from './route/limits.js'
import { buildErrorResponse, type ErrorContext } from './route/errors.js'
import type { RequestLogger } from './connection/request-log.js'
import { JSON_TYPE } from './route/resource.js'
import { buildHttpHeaders } from './response/security-headers.js'
import type { HttpSettings } from './settings.js'

export interface FastPathParts {
  readonly app: App
  readonly settings: HttpSettings
  readonly limits: RequestLimits
  readonly checkHost: HostCheck
  readonly logRequest: RequestLogger
  readonly errors: ErrorContext
  readonly isStopping: () => boolean
  readonly responseBuffer: ResponseBuffer
}

/** A request that the short way has understood. */
export interface FastPathRequest {
  readonly model: Model
  readonly principal: Principal
  readonly route: string
  /** The body of a 200 and its own headers. Nothing has happened where it fails with ForTheRoutes. */
  readonly answer: () => Promise<[body: ResponseBody, headers: Listed]>
}

/** Names and values by turns, which is the quickest that Node takes. */
export type Listed = readonly string[]
/** Undefined for what is not plainly what it takes. */
export type FastPathReader = (request: IncomingMessage) => FastPathRequest | undefined

/** What a request turns out to be for the routes. */
export class ForTheRoutes extends Error {}
/** Nobody waits for an answer. */
export class Gone extends Error {}

export const LIST = '/ws/rest/:model'
export const RECORD = '/ws/rest/:model/:id'
export const ID = /^[1-9][0-9]{0,14}$/

/** Whoever sends one of these wants something that the routes know of. */
const UNUSUAL = [
  ...['authorization', 'api-key', 'origin', 'sec-fetch-site', 'transfer-encoding', 'expect', 'upgrade'],
  ...['if-none-match', 'if-match', 'prefer', 'idempotency-key', 'content-encoding'],
]

/** The same listener, with the short way in front of it. */
export function withShortWay(
  routing: RequestListener,
  parts: FastPathParts,
  readers: readonly FastPathReader[],
): RequestListener {
  const { settings, limits, logRequest, errors, isStopping, responseBuffer } = parts
  // Behind a proxy it takes more to know where a request comes from.
  if (settings.trustProxy !== false) return routing
  const always = buildHttpHeaders(settings)
  const answering = listed(always)
  const refusing = listed({ ...always, vary: `${String(always['vary'])}, Accept` })
  return (request, response) => {
    const startMs = performance.now()
    const asked = isStopping() ? undefined : understood(readers, request)
    if (!asked || !limits.admit(response, asked.principal)) {
      routing(request, response)
      return
    }
    const { principal, model, route } = asked
    const requestId = randomUUID()
    const send = (status: number, headers: Listed, body: ResponseBody) => {
      const isText = typeof body === 'string'
      const length = isText ? Buffer.byteLength(body) : body.length
      response.writeHead(status, ['x-request-id', requestId, ...headers, 'content-length', String(length)])
      // A client that goes away ends both.
      if (body instanceof StagedBody) pipeline(body.stream(), response, () => undefined)
      // Where each character is a byte, Node need not look for others.
      else if (isText && length === body.length) response.end(body, 'latin1')
      else response.end(body)
      const { method = '', socket } = request
      const address = socket.remoteAddress
      logRequest({
        requestId,
        method,
        route,
        model: model.name,
        status,
        startMs,
        principal: principal,
        address,
      })
    }
    const refuse = (error: unknown) => {
      if (error instanceof Gone) return
      if (error instanceof ForTheRoutes) {
        limits.readmit(response, principal)
        // Nothing has happened, and whoever has gone need not be told why.
        if (!response.destroyed) routing(request, response)
        return
      }
      const { accept } = request.headers
      const refused = { requestId, accept, isAboutRecords: true, isPatch: false }
      const { status, headers, body } = buildErrorResponse(errors, error, refused)
      send(status, [...refusing, ...listed(headers)], responseBuffer.buffer(body, response, true))
    }
    asked.answer().then(([content, headers]) => {
      let body: ResponseBody
      try {
        body = responseBuffer.buffer(content, response, request.method !== 'GET')
      } catch (error) {
        refuse(error)
        return
      }
      send(200, [...answering, ...headers, 'content-type', JSON_TYPE], body)
    }, refuse)
  }
}

export function listed(headers: Readonly<Record<string, string | number>>): Listed {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
}

/** A reader may meet what it has not expected: whatever is wrong with that, the routes say. */
function understood(
  readers: readonly FastPathReader[],
  request: IncomingMessage,
): FastPathRequest | undefined {
  try {
    for (const reader of readers) {
      const asked = reader(request)
      if (asked) return asked
    }
  } catch {
    return undefined
  }
  return undefined
}

/** Whoever is known by the cookie alone, and has asked for nothing unusual. */
export function callerKnown(
  { app, checkHost }: Pick<FastPathParts, 'app' | 'checkHost'>,
  request: IncomingMessage,
): Principal | undefined {
  const { headers } = request
  for (const name of UNUSUAL) if (headers[name] !== undefined) return undefined
  const sessionId = readSessionId({ headers })
  const principal = sessionId === undefined ? undefined : authenticateCached(app, sessionId)
  if (principal) checkHost({ headers, raw: request })
  return principal
}
