// A resource is a path with its handlers by method. addResource registers them, and answers OPTIONS and all other methods.
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { sendEmpty, setHeader, type SentReply } from '../response/send.js'
import type { App } from '../../service/context/app.js'
import type { Protocol } from '../compat/protocol.js'
import { MAX_CREDENTIAL_BYTES, MERGE_PATCH } from '../request/bodies.js'
import type { HttpSettings } from '../settings.js'
import type { OperationDocs } from './documentation.js'
import { runGuards, type Guard, type Guards } from './guard.js'

export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type HttpMethod = (typeof HTTP_METHODS)[number]

/** The values from which routes are created. */
export interface RouteContext {
  readonly app: App
  readonly settings: HttpSettings
  readonly guards: Guards
  readonly protocol: Protocol
}

export type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<SentReply>

/** A handler with its description for the API documents. */
export interface DocumentedHandler {
  readonly docs: OperationDocs
  readonly handle: RouteHandler
}

export function documented(docs: OperationDocs, handle: RouteHandler): DocumentedHandler {
  return { docs, handle }
}

export interface Resource {
  readonly path: string
  /** Run in this order for every method, before the body is read. */
  readonly guards: readonly Guard[]
  /** Run before `guards` for the methods that write. */
  readonly writeGuards?: readonly Guard[]
  readonly handlers: Readonly<Partial<Record<HttpMethod, DocumentedHandler>>>
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
  /** Browsers get the errors of this resource as HTML. */
  readonly isPage?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly isAboutRecords?: boolean
    readonly isExemptFromLimits?: boolean
    readonly isPage?: boolean
    readonly hasPatch?: boolean
    /** True if the handler, not `Guards.refuseUnreadParameters`, checks the query string. */
    readonly readsQuery?: boolean
    /** The description of the operation. Absent for methods that the resource refuses, and for OPTIONS. */
    readonly docs?: OperationDocs
    /** True for a method that the resource refuses with 405, and for OPTIONS. */
    readonly isAutomatic?: boolean
  }
}

/** Registers every method of a path: its handlers, OPTIONS, and 405 with `Allow` for the rest. The guards run for all of them. */
export function addResource(server: FastifyInstance, resource: Resource): void {
  const { path, guards, writeGuards = [], handlers, readsQueryFor = [], hint, hasHead = true } = resource
  const { isAboutRecords = false, isExemptFromLimits = false, isPage = false } = resource
  const hasPatch = handlers.PATCH !== undefined
  const config: FastifyContextConfig = {
    isAboutRecords,
    isExemptFromLimits,
    isPage,
    hasPatch,
    readsQuery: true,
    isAutomatic: true,
  }
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
      onRequest: runGuards(handler ? allGuards : [...allGuards, refuseMethod]),
      handler: handler?.handle ?? refuseMethod,
      exposeHeadRoute: hasHead,
      config: handler
        ? { ...config, readsQuery, isAutomatic: false, docs: handler.docs }
        : { ...config, readsQuery },
    })
  }
  if (!hasHead)
    server.route({ method: 'HEAD', url: path, onRequest: runGuards(guards), handler: refuseMethod, config })
  server.route({
    method: 'OPTIONS',
    url: path,
    onRequest: runGuards(guards),
    config,
    bodyLimit: MAX_CREDENTIAL_BYTES,
    handler: async (_, reply) => {
      if (hasPatch) setHeader(reply, 'accept-patch', MERGE_PATCH)
      setHeader(reply, 'allow', allow.join(', '))
      return sendEmpty(reply, 204)
    },
  })
  async function refuseMethod(request: FastifyRequest): Promise<never> {
    const message = `${request.method} is not allowed here: use ${allow.join(', ')}${hint ? `. ${hint}` : ''}`
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
