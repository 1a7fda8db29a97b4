// The shortest way for what is asked most, by somebody who was here a moment ago: a record by its id, a page by its offset. It answers what it
// understands wholly and finds; whatever else there is to a request, refusals among them, is left to the routes, as if it had not been here.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Model } from '../model/model.js'
import type { App } from '../service/app.js'
import { authenticateKnown } from '../service/accounts/sessions.js'
import { printedPage, printedRecord } from '../service/records.js'
import type { Caller } from '../service/rights/caller.js'
import { modelFor } from '../service/rights/permitted.js'
import { sessionIdOf } from './cookies.js'
import type { CheckHost } from './guard.js'
import type { Limits } from './limits.js'
import { printBody, printPage } from './record-answers.js'
import type { Query } from './record-requests.js'
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
const PAGE =
  /^(?:(offset|limit)=([0-9]{1,15}))(?:&(offset|limit)=([0-9]{1,15})(?:&after=([A-Za-z0-9_-]+))?)?$/
const LIST = '/ws/rest/:model'
const RECORD = '/ws/rest/:model/:id'

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
  readonly caller: Caller
  readonly route: string
  readonly answer: () => Promise<[body: string, headers: Headers]>
}

type Headers = Readonly<Record<string, string | number>>

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** The same listener, with the short way in front of it. */
export function withQuickReads(routing: Listener, parts: Parts): Listener {
  const { settings, limits, logRequest, isStopping } = parts
  // Behind a proxy it takes more to know where a request comes from.
  if (settings.trustProxy !== false) return routing
  const asked = makeReader(parts)
  const always = headersOverHttp(settings)
  const send = (response: ServerResponse, requestId: string, body: string, headers: Headers) => {
    response.writeHead(200, {
      'x-request-id': requestId,
      ...always,
      ...headers,
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
    const { caller, model, route } = found
    found.answer().then(
      ([body, headers]) => {
        const requestId = randomUUID()
        send(response, requestId, body, headers)
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
  const { basePath } = settings
  const prefix = `${basePath}/ws/rest/`
  const known = (request: IncomingMessage): Caller | undefined => {
    const { headers } = request
    if (UNUSUAL.some((name) => headers[name] !== undefined)) return undefined
    const sessionId = sessionIdOf({ headers })
    const caller = sessionId === undefined ? undefined : authenticateKnown(app, sessionId)
    if (caller) checkHost({ headers, raw: request })
    return caller
  }
  const readOne = (caller: Caller, name: string, id: number): Asked => {
    const model = modelFor(app, caller, name)
    return {
      ...{ caller, model, route: basePath + RECORD },
      answer: async () => {
        const [body, etag] = printBody(await printedRecord(app, caller, model, id))
        return [body, { etag }]
      },
    }
  }
  const readPage = (caller: Caller, name: string, query: Query): Asked => {
    const model = modelFor(app, caller, name)
    return {
      ...{ caller, model, route: basePath + LIST },
      answer: async () => printPage(prefix + model.name, await printedPage(app, caller, model, query), query),
    }
  }
  return (request) => {
    const { method, url = '' } = request
    if (method !== 'GET' || !url.startsWith(prefix)) return undefined
    const end = url.indexOf('/', prefix.length)
    const question = end < 0 ? url.indexOf('?', prefix.length) : -1
    const id = end < 0 ? '' : url.slice(end + 1)
    const page = question < 0 ? null : PAGE.exec(url.slice(question + 1))
    if (!ID.test(id) && !page) return undefined
    try {
      const caller = known(request)
      if (!caller) return undefined
      if (!page) return readOne(caller, url.slice(prefix.length, end), Number(id))
      const [, first = '', one, second, other, after] = page
      if (first === second) return undefined
      const place = second === undefined ? { [first]: one } : { [first]: one, [second]: other }
      const query = after === undefined ? place : { ...place, after }
      return readPage(caller, url.slice(prefix.length, question), query)
    } catch {
      return undefined
    }
  }
}
