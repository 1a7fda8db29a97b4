// Error responses of routes: their bodies and headers. error-status.ts chooses the status; socket-errors.ts answers what is no valid request.
import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { describeThrown, summarizeError, VersoError, type ErrorKind } from '../../errors.js'
import { MERGE_PATCH, createPatchTypeError } from '../request/bodies.js'
import type { Protocol } from '../compat/protocol.js'
import { FASTIFY_ERRORS, INTERNAL_STATUS, RECORD_ERROR_STATUSES, STATUS_BY_KIND } from './error-status.js'
import { acceptsHtml, escapeHtml, sendHtmlPage } from '../assets/page.js'
import { SECURITY_HEADERS, type HeaderList } from '../response/headers.js'
import { JSON_TYPE, addVary, sendBody, setHeader } from '../response/send.js'

export const PROBLEM_JSON = 'application/problem+json'

/** For errors other than VersoError. */
const INTERNAL_MESSAGE = 'Internal error; see the server log for this requestId'

export interface ErrorContext {
  readonly log: Logger
  readonly protocol: Protocol
  /** Accepted authentication schemes, for `WWW-Authenticate`. */
  readonly schemes: readonly string[]
  /** For the files of an error page. */
  readonly basePath: string
  /** Counts error responses. */
  readonly recordError?: ((request: FastifyRequest, kind: ErrorKind | 'internal') => void) | undefined
}

/** The facts about a request on which its error response depends. */
export interface FailedRequest {
  readonly requestId: string
  readonly accept: string | undefined
  readonly isAboutRecords: boolean
  /** True for a PATCH of a resource that supports PATCH. */
  readonly isPatch: boolean
}

export interface ErrorResponse {
  readonly status: number
  readonly title: string
  readonly headers: Readonly<Record<string, string>>
  readonly type: string
  readonly body: string
}

/** Sends the response for an error. Errors other than VersoError are defects: they are logged, and the client gets 500 without details. */
export function sendError(
  context: ErrorContext,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { headers, id: requestId } = request
  if (reply.raw.headersSent) {
    context.log.error({ err: error, requestId }, 'request failed after its response was sent')
    return
  }
  const failedRequest: FailedRequest = {
    requestId,
    accept: headers.accept,
    isPatch: isPatch(request),
    isAboutRecords: readRouteConfig(request)?.isAboutRecords === true,
  }
  const knownError =
    error instanceof VersoError ? requireKnownKind(error) : (convertFastifyError(error, request) ?? error)
  context.recordError?.(request, knownError instanceof VersoError ? knownError.kind : 'internal')
  const response = buildSafeResponse(context, knownError, failedRequest)
  addVary(reply, 'Accept')
  // Fastify closes the connection after a body that it could not read to its end.
  if (reply.hasHeader('connection')) setHeader(reply, 'connection', 'close')
  for (const [name, value] of Object.entries(response.headers)) setHeader(reply, name, value)
  if (readRouteConfig(request)?.isPage === true && acceptsHtml(request)) {
    const { message } = describeError(knownError, INTERNAL_MESSAGE)
    sendHtmlPage(
      reply.code(response.status),
      {
        title: response.title,
        basePath: context.basePath,
        bodyHtml: `<p>${escapeHtml(message)}.</p>\n<p>Request ${escapeHtml(requestId)}</p>`,
      },
      true,
    )
    return
  }
  sendBody(reply.code(response.status), response.type, response.body, true)
}

/** The types do not keep hooks and routes in JavaScript from throwing a VersoError of any kind. Such an error is a defect. */
function requireKnownKind(error: VersoError): Error {
  if (Object.hasOwn(STATUS_BY_KIND, error.kind)) return error
  const kinds = Object.keys(STATUS_BY_KIND)
  return new Error(`a VersoError has the unknown kind "${error.kind}". The kinds are ${kinds.join(', ')}`, {
    cause: error,
  })
}

/** The details of an error that a hook or a route has made can be values that JSON does not know, or getters that throw. */
function buildSafeResponse(context: ErrorContext, error: unknown, failed: FailedRequest): ErrorResponse {
  try {
    return buildErrorResponse(context, error, failed)
  } catch (failure) {
    const message = `an error with invalid details was thrown: ${describeThrown(failure)}`
    return buildErrorResponse(context, new Error(message), failed)
  }
}

/** True if the response does not say where the error comes from, or leaves out values that the user may not see. */
function isErrorOfRule({ origin, cause }: VersoError): boolean {
  return cause instanceof VersoError || origin?.isThrown === false
}

function describeRuleError(error: VersoError, requestId: string): Readonly<Record<string, unknown>> {
  const whole = error.cause instanceof VersoError ? error.cause : error
  const hook = (whole.origin ?? error.origin)?.hook
  return { ...(hook === undefined ? {} : { hook }), kind: whole.kind, requestId, reason: whole.message }
}

/** Builds the response without sending it. The sender must add `Accept` to `Vary`. */
export function buildErrorResponse(
  { log, protocol, schemes }: ErrorContext,
  error: unknown,
  { requestId, accept, isAboutRecords, isPatch }: FailedRequest,
): ErrorResponse {
  const versoError = error instanceof VersoError ? error : undefined
  if (!versoError) log.error({ err: error, requestId }, 'request failed')
  else if (versoError.kind === 'hook-failed')
    log.error(describeRuleError(versoError, requestId), 'a hook failed')
  else if (versoError.kind === 'busy' || versoError.kind === 'storage-full') {
    log.warn(
      { ...summarizeError(versoError.cause ?? versoError), kind: versoError.kind, requestId },
      versoError.message,
    )
  } else if (isErrorOfRule(versoError))
    log.info(describeRuleError(versoError, requestId), 'a rule refused the request')
  const [status, title] = versoError ? STATUS_BY_KIND[versoError.kind] : INTERNAL_STATUS
  const { kind, message, data } = describeError(error, INTERNAL_MESSAGE)
  const { errors, retryAfterS, allow, fileSize } = versoError?.details ?? {}
  const headers = {
    ...(Number.isFinite(retryAfterS) ? { 'retry-after': String(retryAfterS) } : {}),
    ...(allow ? { allow: allow.join(', ') } : {}),
    ...(fileSize === undefined ? {} : { 'content-range': `bytes */${fileSize}` }),
    ...(status === 415 && isPatch ? { 'accept-patch': MERGE_PATCH } : {}),
    ...(status === 401
      ? { 'www-authenticate': schemes.map((scheme) => `${scheme} realm="verso"`).join(', ') }
      : {}),
  }
  const fieldErrors = errors ? { errors } : {}
  if (acceptsProblemJson(accept)) {
    const problem = {
      type: `urn:verso:${kind}`,
      title,
      status,
      detail: message,
      instance: `urn:verso:request:${requestId}`,
    }
    const body = JSON.stringify({ ...problem, kind, ...fieldErrors, ...data })
    return { status, title, headers, type: PROBLEM_JSON, body }
  }
  const report = { kind, title, message, requestId, ...data }
  const isSentAs200 = protocol.sendsErrorsAs200 && RECORD_ERROR_STATUSES.includes(status) && isAboutRecords
  const bodyStatus = kind === 'invalid' && !isSentAs200 ? -4 : -1
  return {
    status: isSentAs200 ? 200 : status,
    title,
    headers,
    type: JSON_TYPE,
    body: JSON.stringify({ status: bodyStatus, ...fieldErrors, data: report }),
  }
}

export interface ErrorDescription {
  readonly kind: ErrorKind | 'internal'
  readonly message: string
  readonly data: Readonly<Record<string, unknown>> | undefined
}

/** Returns the parts of an error that clients see. `internalMessage` hides the details of errors other than VersoError. */
export function describeError(error: unknown, internalMessage: string): ErrorDescription {
  if (!(error instanceof VersoError)) return { kind: 'internal', message: internalMessage, data: undefined }
  return { kind: error.kind, message: error.message, data: error.details.data }
}

/** Rejects requests to paths without a route in this scope, and names the paths that people look for. */
export function refuseUnknownPaths(server: FastifyInstance, basePath: string): void {
  const paths = KNOWN_PATHS.map(([path, purpose]) => `${basePath}${path} (${purpose})`).join(', ')
  const createError = () => new VersoError('not-found', `Nothing is served at this path. Try ${paths}`)
  server.setNotFoundHandler(() => {
    throw createError()
  })
  // This hook runs after all guards and before the body is read, so requests do not reach the handler above.
  server.addHook('preParsing', ({ is404 }, _, payload, done) => {
    done(is404 ? createError() : null, payload)
  })
}

/** Undefined for a malformed path, which matches no route. */
function readRouteConfig({ routeOptions }: FastifyRequest): FastifyContextConfig | undefined {
  return routeOptions.config
}

function isPatch(request: FastifyRequest): boolean {
  return request.method === 'PATCH' && readRouteConfig(request)?.hasPatch === true
}

function acceptsProblemJson(accept: string | undefined): boolean {
  return accept?.toLowerCase().includes(PROBLEM_JSON) ?? false
}

function convertFastifyError(error: unknown, request: FastifyRequest): VersoError | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? error.code : undefined
  const status = 'statusCode' in error ? error.statusCode : undefined
  const [kind, message] = (typeof code === 'string' ? FASTIFY_ERRORS[code] : undefined) ?? []
  if (kind === 'media-type' && isPatch(request)) return createPatchTypeError(error)
  if (kind && message)
    return new VersoError(kind, message, { cause: error, ...(kind === 'busy' ? { retryAfterS: 5 } : {}) })
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new VersoError('bad-request', 'The request is malformed', { cause: error })
  }
  return undefined
}

/** The entrances of the service, for the message about an unknown path. */
export const KNOWN_PATHS = [
  ['/', 'web application'],
  ['/docs', 'API reference'],
  ['/callback', 'POST: log in'],
  ['/ws/rest/<model>', 'records'],
  ['/ws/meta/models', 'names of models'],
  ['/ws/openapi.json', 'API document'],
  ['/ws/changes', 'change feed'],
  ['/ws/batch', 'POST: several writes'],
  ['/healthz', 'health'],
] as const

/** Reasons to refuse a request before it reaches a handler. */
export const BUSY_MESSAGES = {
  replaced: 'The service is about to serve other models: retry after the seconds in Retry-After',
  overloaded: 'The server is overloaded: retry after the seconds in Retry-After; nothing was changed',
} as const

/**
 * Returns a function that refuses a request before it reaches a handler. Most refusals are the same bytes, and are written to the socket
 * themselves: that takes two thirds of the time of a response that Node builds.
 */
export function createBusyResponder(
  reason: keyof typeof BUSY_MESSAGES,
): (response: ServerResponse, ownHeaders?: HeaderList) => void {
  const [status, title] = STATUS_BY_KIND.busy
  const body = JSON.stringify({ status: -1, data: { kind: 'busy', title, message: BUSY_MESSAGES[reason] } })
  const headers = [
    ...Object.entries(SECURITY_HEADERS).flat(),
    ...['content-type', JSON_TYPE, 'content-length', String(Buffer.byteLength(body)), 'retry-after', '1'],
    ...['cache-control', 'private, no-cache'],
  ]
  const lines = headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  const bytes = Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`)
  return (response, ownHeaders = []) => {
    // Without a socket, the response waits for those to earlier requests on its connection.
    const { socket, shouldKeepAlive } = response
    const { method, httpVersionMinor } = response.req
    if (socket && shouldKeepAlive && httpVersionMinor === 1 && method !== 'HEAD' && ownHeaders.length === 0) {
      socket.write(bytes)
      // Lets Node go on to the next request of the connection.
      response.emit('finish')
    } else response.writeHead(status, [...headers, ...ownHeaders]).end(body)
  }
}
