// A resource is a path with its handlers by method. addResource registers them, and answers OPTIONS and all other methods.
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
} from 'fastify'
import { VersoError } from '../../errors.js'
import { StagedBody, type ResponseBody, type ResponseBuffer } from '../response/response-buffer.js'
import type { App } from '../../service/context/app.js'
import type { Protocol } from '../compat/protocol.js'
import { MAX_CREDENTIAL_BYTES, MERGE_PATCH } from '../request/bodies.js'
import type { HttpSettings } from '../settings.js'
import type { Guards } from './guard.js'

const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
type HttpMethod = (typeof HTTP_METHODS)[number]

/** The values from which routes are created. */
export interface RouteContext {
  readonly app: App
  readonly settings: HttpSettings
  readonly guards: Guards
  readonly protocol: Protocol
}

export type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

export interface Resource {
  readonly path: string
  /** Run in this order for every method, before the body is read. */
  readonly guards: readonly onRequestAsyncHookHandler[]
  /** Run before `guards` for the methods that write. */
  readonly writeGuards?: readonly onRequestAsyncHookHandler[]
  readonly handlers: Readonly<Partial<Record<HttpMethod, RouteHandler>>>
  /** Methods whose handlers read the query string and reject unknown parameters themselves. */
  readonly readsQueryFor?: readonly HttpMethod[]
  /** Added to the message of a 405. */
  readonly hint?: string
  /** False for a GET that has side effects. */
  readonly hasHead?: boolean
  /** Errors of this resource are about records; see `Protocol.sendsErrorsAs200`. */
  readonly isAboutRecords?: boolean
  /** Requests to this resource are exempt from limits. */
  readonly isExemptFromLimits?: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly responseBuffer: ResponseBuffer
  }
  interface FastifyContextConfig {
    readonly isAboutRecords?: boolean
    readonly isExemptFromLimits?: boolean
    readonly hasPatch?: boolean
    /** True if the handler, not `Guards.refuseUnreadParameters`, checks the query string. */
    readonly readsQuery?: boolean
  }
}

/** Registers every method of a path: its handlers, OPTIONS, and 405 with `Allow` for the rest. The guards run for all of them. */
export function addResource(server: FastifyInstance, resource: Resource): void {
  const { path, guards, writeGuards = [], handlers, readsQueryFor = [], hint, hasHead = true } = resource
  const { isAboutRecords = false, isExemptFromLimits = false } = resource
  const hasPatch = handlers.PATCH !== undefined
  const config: FastifyContextConfig = { isAboutRecords, isExemptFromLimits, hasPatch, readsQuery: true }
  const offered = HTTP_METHODS.filter((method) => handlers[method])
  const allow = [...offered, ...(handlers.GET && hasHead ? ['HEAD'] : []), 'OPTIONS']
  for (const method of HTTP_METHODS) {
    const handler = handlers[method]
    const readsQuery = handlers[method] === undefined || readsQueryFor.includes(method)
    const isWrite = method !== 'GET'
    const allGuards = [...(isWrite ? writeGuards : []), ...guards]
    server.route({
      method,
      url: path,
      // A wrong method is rejected before the body is read.
      onRequest: handler ? allGuards : [...allGuards, refuseMethod],
      handler: handler ?? refuseMethod,
      exposeHeadRoute: hasHead,
      config: { ...config, readsQuery },
    })
  }
  if (!hasHead)
    server.route({ method: 'HEAD', url: path, onRequest: [...guards], handler: refuseMethod, config })
  server.route({
    method: 'OPTIONS',
    url: path,
    onRequest: [...guards],
    config,
    bodyLimit: MAX_CREDENTIAL_BYTES,
    handler: async (_, reply) => {
      if (hasPatch) void reply.header('accept-patch', MERGE_PATCH)
      return reply.code(204).header('allow', allow.join(', ')).send()
    },
  })
  async function refuseMethod(request: FastifyRequest): Promise<never> {
    const message = `${request.method} is not possible here, but ${allow.join(', ')}${hint ? `: ${hint}` : ''}`
    throw new VersoError('method', message, { allow })
  }
}

type ResourceDefaults = Pick<Resource, 'guards' | 'writeGuards' | 'isAboutRecords'>

/** Shared settings of record resources: login required, no writes from pages of other sites, no unread query parameters. */
export function buildRecordRouteDefaults(guards: Guards): ResourceDefaults {
  return {
    guards: [guards.requireLogin, guards.refuseUnreadParameters],
    writeGuards: [guards.requireSameSiteOrKey],
    isAboutRecords: true,
  }
}

/** Shared settings of account resources: as for records, but also a write with an API key must come from the same site. */
export function buildAccountRouteDefaults(guards: Guards): ResourceDefaults {
  return {
    guards: [guards.requireLogin, guards.refuseUnreadParameters],
    writeGuards: [guards.requireSameSite],
  }
}

/** Shared settings of resources for administrators. */
export function buildAdminRouteDefaults(guards: Guards): ResourceDefaults {
  return {
    guards: [guards.requireLogin, guards.requireAdmin, guards.refuseUnreadParameters],
    writeGuards: [guards.requireSameSite],
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends `data` in the envelope of a successful response. */
export function sendData(reply: FastifyReply, data: object): FastifyReply {
  return sendJson(reply, JSON.stringify({ status: 0, data }))
}

export function sendJson(reply: FastifyReply, body: ResponseBody, isWriteResult = false): FastifyReply {
  return sendBody(reply.header('content-type', JSON_TYPE), body, isWriteResult)
}

export function sendBody(reply: FastifyReply, body: ResponseBody, isWriteResult: boolean): FastifyReply {
  const buffered = reply.server.responseBuffer.buffer(body, reply.raw, isWriteResult)
  if (!(buffered instanceof StagedBody)) return reply.serializer(String).send(buffered)
  return reply.header('content-length', buffered.length).send(buffered.stream())
}
