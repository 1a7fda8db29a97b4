// Chooses the HTTP status of every error. `STATUS_BY_KIND` is the only table from the kind of a VersoError (src/errors.ts) to a status.
// One more table gives Fastify's own errors a kind. socket-errors.ts has the errors of the HTTP parser.
import type { ErrorKind } from '../../errors.js'

export const STATUS_BY_KIND: Readonly<Record<ErrorKind, readonly [status: number, title: string]>> = {
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
  range: [416, 'Range not satisfiable'],
  misdirected: [421, 'Wrong host'],
  invalid: [422, 'Invalid values'],
  'key-reused': [422, 'Idempotency key used before'],
  'too-many': [429, 'Too many requests'],
  'hook-failed': [500, 'Hook failed'],
  busy: [503, 'Busy'],
  'storage-full': [507, 'Storage full'],
}

/** For errors other than VersoError, which are defects. */
export const INTERNAL_STATUS: readonly [status: number, title: string] = [500, 'Internal error']

/** Statuses of errors about records; other statuses concern authentication, routing or the service. */
export const RECORD_ERROR_STATUSES: readonly number[] = [400, 404, 409, 412, 422]

/** The kinds and messages for errors that Fastify raises about a request. */
export const FASTIFY_ERRORS: Readonly<Record<string, readonly [kind: ErrorKind, message: string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'too-large',
    'The body exceeds the size limit (--body-limit; 16 KiB for a login); nothing was changed',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'media-type',
    'Unsupported Content-Type: send the body as application/json',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad-request', 'Content-Length does not match the length of the body'],
  FST_ERR_HANDLER_TIMEOUT: [
    'busy',
    'The route did not answer within its time limit. It is unknown whether it has changed anything',
  ],
  FST_ERR_BAD_URL: ['bad-request', 'The path is malformed'],
}
