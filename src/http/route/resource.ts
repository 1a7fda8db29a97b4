import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { VersoError } from '../../errors.js'
import { StagedBody, type ResponseBody, type ResponseBuffer } from '../answer/answer-body.js'
import { MAX_CREDENTIAL_BYTES, MERGE_PATCH } from '../request/bodies.js'
import type { Guards } from './guard.js'

const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
type HttpMethod = (typeof HTTP_METHODS)[number]

export type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

export interface Resource {
  readonly path: string
  /** Run in this order before anything of the request is read, whatever its method. */
  readonly guards: readonly onRequestAsyncHookHandler[]
  /** Besides those, for the methods that write. */
  readonly writeGuards?: readonly onRequestAsyncHookHandler[]
  readonly handlers: Readonly<Partial<Record<HttpMethod, RouteHandler>>>
  /** Methods whose handlers read the query string, and refuse parameters that they do not know. */
  readonly withParameters?: readonly HttpMethod[]
  /** What whoever used a wrong method may have wanted. */
  readonly hint?: string
  /** A GET that does something has no HEAD. */
  readonly hasHead?: boolean
  /** What is refused here concerns records, and not the way to them. */
  readonly isAboutRecords?: boolean
  /** Answered however much there is to do. */
  readonly isAlwaysAnswered?: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly responseBuffer: ResponseBuffer
  }
  interface FastifyContextConfig {
    readonly isAboutRecords?: boolean
    readonly isAlwaysAnswered?: boolean
    readonly hasPatch?: boolean
    /** Whether the guard leaves the query string to the handler. */
    readonly readsQuery?: boolean
  }
}

/** Every method of a path: those it has, OPTIONS, and 405 with `Allow` for the rest. All of them guarded. */
export function addResource(server: FastifyInstance, resource: Resource): void {
  const { path, guards, writeGuards = [], handlers, withParameters = [], hint, hasHead = true } = resource
  const { isAboutRecords = false, isAlwaysAnswered = false } = resource
  const hasPatch = handlers.PATCH !== undefined
  const shared = { isAboutRecords, isAlwaysAnswered, hasPatch }
  const config = { ...shared, readsQuery: true }
  const offered = HTTP_METHODS.filter((method) => handlers[method])
  const allow = [...offered, ...(handlers.GET && hasHead ? ['HEAD'] : []), 'OPTIONS']
  for (const method of HTTP_METHODS) {
    const handler = handlers[method]
    const readsQuery = handlers[method] === undefined || withParameters.includes(method)
    const isWrite = method !== 'GET'
    const allGuards = [...(isWrite ? writeGuards : []), ...guards]
    server.route({
      method,
      url: path,
      // A wrong method is refused before the body is read.
      onRequest: handler ? allGuards : [...allGuards, refuseMethod],
      handler: handler ?? refuseMethod,
      exposeHeadRoute: hasHead,
      config: { ...shared, readsQuery },
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

/** What all resources of records share: nobody without a session, no write from another site's page, no unknown parameter. */
export function buildRecordRouteDefaults(guards: Guards) {
  return {
    guards: [guards.requireLogin, guards.refuseUnreadParameters],
    writeGuards: [guards.requireSameSiteOrKey],
    isAboutRecords: true,
  } as const
}

export const JSON_TYPE = 'application/json; charset=utf-8'

export function sendData(reply: FastifyReply, data: readonly unknown[]): FastifyReply {
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
