// The shortest way for what is asked most: a record by its id, by somebody who was here a moment ago. It answers what it understands wholly
// and finds at once; whatever else there is to a request, refusals among them, is left to the routes, as if it had not been here.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Model } from '../model/model.js'
import type { App } from '../service/app.js'
import { authenticateKnown } from '../service/accounts/sessions.js'
import { printedRecord } from '../service/records.js'
import type { Caller } from '../service/rights/caller.js'
import { modelFor } from '../service/rights/permitted.js'
import type { PrintedRecord } from '../store/records.js'
import { sessionIdOf } from './cookies.js'
import type { CheckHost } from './guard.js'
import type { Limits } from './limits.js'
import { printBody } from './record-answers.js'
import type { LogRequest } from './request-log.js'
import { JSON_TYPE } from './resource.js'
import { headersOverHttp } from './security-headers.js'
import type { HttpSettings } from './settings.js'

/** Whoever sends one of these wants something that the routes know of. */
const UNUSUAL = [
  'authorization',
  'api-key',
  'origin',
  'if-none-match',
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
] as const
const ID = /^[1-9][0-9]{0,14}$/
const ROUTE = '/ws/rest/:model/:id'

export interface Parts {
  readonly app: App
  readonly settings: HttpSettings
  readonly limits: Limits
  readonly checkHost: CheckHost
  readonly logRequest: LogRequest
  readonly isStopping: () => boolean
}

interface Asked {
  readonly model: Model
  readonly id: number
  readonly caller: Caller
}

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** The same listener, with the short way in front of it. */
export function withQuickReads(routing: Listener, parts: Parts): Listener {
  const { app, settings, limits, logRequest, isStopping } = parts
  // Behind a proxy it takes more to know where a request comes from.
  if (settings.trustProxy !== false) return routing
  const asked = makeReader(parts)
  const headers = headersOverHttp(settings)
  const route = settings.basePath + ROUTE
  const send = (response: ServerResponse, requestId: string, record: PrintedRecord) => {
    const [body, etag] = printBody(record)
    response.writeHead(200, {
      'x-request-id': requestId,
      ...headers,
      etag,
      'content-type': JSON_TYPE,
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  }
  return (request, response) => {
    const startMs = performance.now()
    const found = isStopping() ? undefined : asked(request)
    if (!found || !limits.admit(request, response, found.caller)) {
      routing(request, response)
      return
    }
    const { caller, model, id } = found
    printedRecord(app, caller, model, id).then(
      (record) => {
        const requestId = randomUUID()
        send(response, requestId, record)
        const address = request.socket.remoteAddress
        logRequest({
          requestId,
          method: 'GET',
          route,
          model: model.name,
          status: 200,
          startMs,
          caller,
          address,
        })
      },
      () => {
        limits.readmit(response, caller)
        routing(request, response)
      },
    )
  }
}

/** What is asked for, if it is plainly that; undefined for all else. */
function makeReader({ app, settings, checkHost }: Parts): (request: IncomingMessage) => Asked | undefined {
  const prefix = `${settings.basePath}/ws/rest/`
  return (request) => {
    const { method, url = '', headers } = request
    if (method !== 'GET' || !url.startsWith(prefix)) return undefined
    const slash = url.indexOf('/', prefix.length)
    const id = slash < 0 ? '' : url.slice(slash + 1)
    if (!ID.test(id) || UNUSUAL.some((name) => headers[name] !== undefined)) return undefined
    const sessionId = sessionIdOf({ headers })
    const caller = sessionId === undefined ? undefined : authenticateKnown(app, sessionId)
    if (!caller) return undefined
    try {
      checkHost({ headers, raw: request })
      return { caller, id: Number(id), model: modelFor(app, caller, url.slice(prefix.length, slash)) }
    } catch {
      return undefined
    }
  }
}
