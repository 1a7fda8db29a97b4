// Chooses the HTTP status of every error: `STATUS_BY_KIND` maps each kind of VersoError (see src/errors.ts) to its status and title. Errors of
// Fastify and of the HTTP parser have tables below it. This file also builds the bodies of error responses.
import type { Socket } from 'node:net'
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { summarizeError, VersoError, type ErrorKind } from '../../errors.js'
import { MERGE_PATCH, createPatchTypeError } from '../request/bodies.js'
import type { Protocol } from '../compat/protocol.js'
import { JSON_TYPE, sendBody } from './resource.js'
import { SECURITY_HEADERS, addVary } from '../response/security-headers.js'

const STATUS_BY_KIND: Readonly<Record<ErrorKind, readonly [status: number, title: string]>> = {
  'bad-request': [400, 'Bad request'],
  unauthenticated: [401, 'Not logged in'],
  forbidden: [403, 'Not permitted'],
  'unknown-model': [404, 'No such model'],
  'not-found': [404, 'Not found'],
  method: [405, 'Method not allowed'],
  conflict: [409, 'Not the current version'],
  'not-unique': [409, 'Not unique'],
  'still-referenced': [409, 'Still referred to'],
  gone: [410, 'No longer kept'],
  'stale-match': [412, 'Not the current version'],
  'too-large': [413, 'Too large'],
  'media-type': [415, 'Wrong content type'],
  misdirected: [421, 'Wrong host'],
  invalid: [422, 'Invalid values'],
  'key-reused': [422, 'Idempotency key used before'],
  'too-many': [429, 'Too many requests'],
  busy: [503, 'Busy'],
  'storage-full': [507, 'Storage full'],
}

const PROBLEM_JSON = 'application/problem+json'

/** The kinds and messages for errors that Fastify raises about a request. */
const FASTIFY_ERRORS: Readonly<Record<string, readonly [ErrorKind, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'too-large',
    'The body is larger than this service takes (--body-limit; 16 KiB for a login): nothing was changed',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['media-type', 'Send the body as application/json'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad-request', 'Content-Length is not the length of the body'],
  FST_ERR_BAD_URL: ['bad-request', 'The path is not well formed'],
}

const NOT_HTTP_ERROR = ['400 Bad Request', 'bad-request', 'This is not HTTP'] as const
const SOCKET_ERRORS: Readonly<Record<string, readonly [status: string, kind: ErrorKind, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'too-large', 'The headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'bad-request', 'The request took too long to arrive'],
}

/** Statuses of errors about records; other statuses concern authentication, routing or the service. */
const RECORD_ERROR_STATUSES = [400, 404, 409, 412, 422]

export interface ErrorContext {
  readonly log: Logger
  readonly protocol: Protocol
  /** Accepted authentication schemes, for `WWW-Authenticate`. */
  readonly schemes: readonly string[]
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
  readonly headers: Readonly<Record<string, string | number>>
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
  const failedRequest: FailedRequest = {
    ...{ requestId, accept: headers.accept, isPatch: isPatch(request) },
    isAboutRecords: readRouteConfig(request)?.isAboutRecords === true,
  }
  const knownError = error instanceof VersoError ? error : (convertFastifyError(error, request) ?? error)
  const response = buildErrorResponse(context, knownError, failedRequest)
  addVary(reply, 'Accept')
  sendBody(reply.code(response.status).headers(response.headers), response.body, true)
}

/** Builds the response without sending it. The sender must add `Accept` to `Vary`. */
export function buildErrorResponse(
  { log, protocol, schemes }: ErrorContext,
  error: unknown,
  { requestId, accept, isAboutRecords, isPatch }: FailedRequest,
): ErrorResponse {
  const versoError = error instanceof VersoError ? error : undefined
  if (!versoError) log.error({ err: error, requestId }, 'a request failed')
  else if (versoError.kind === 'busy' || versoError.kind === 'storage-full') {
    log.warn(
      { ...summarizeError(versoError.cause ?? versoError), kind: versoError.kind, requestId },
      versoError.message,
    )
  }
  const [status, title] = versoError ? STATUS_BY_KIND[versoError.kind] : ([500, 'Internal error'] as const)
  const kind = versoError?.kind ?? 'internal'
  const message =
    versoError?.message ?? 'Something went wrong here; the log of the service says what, under this requestId'
  const { errors, data, retryAfterS, allow } = versoError?.details ?? {}
  const headers = {
    ...(retryAfterS === undefined ? {} : { 'retry-after': retryAfterS }),
    ...(allow ? { allow: allow.join(', ') } : {}),
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
    return { status, headers: { ...headers, 'content-type': PROBLEM_JSON }, body }
  }
  const report = { kind, title, message, requestId, ...data }
  const isSentAs200 = protocol.sendsErrorsAs200 && RECORD_ERROR_STATUSES.includes(status) && isAboutRecords
  const bodyStatus = kind === 'invalid' && !isSentAs200 ? -4 : -1
  return {
    status: isSentAs200 ? 200 : status,
    headers: { ...headers, 'content-type': JSON_TYPE },
    body: JSON.stringify({ status: bodyStatus, ...fieldErrors, data: report }),
  }
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
  const [code, status] = [
    'code' in error ? error.code : undefined,
    'statusCode' in error ? error.statusCode : undefined,
  ]
  const known = typeof code === 'string' ? FASTIFY_ERRORS[code] : undefined
  if (known?.[0] === 'media-type' && isPatch(request)) return createPatchTypeError(error)
  if (known) return new VersoError(known[0], known[1], { cause: error })
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new VersoError('bad-request', 'The request is not well formed', { cause: error })
  }
  return undefined
}

const SECURITY_HEADER_LINES = Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`)

/** Answers malformed HTTP on the socket, because such a request never reaches a route. */
export function sendSocketError(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable) return
  const [status, kind, message] = SOCKET_ERRORS[error.code ?? ''] ?? NOT_HTTP_ERROR
  const body = JSON.stringify({ status: -1, data: { kind, title: status.slice(4), message } })
  const head = [
    `HTTP/1.1 ${status}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...SECURITY_HEADER_LINES,
  ]
  socket.end(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`)
}
