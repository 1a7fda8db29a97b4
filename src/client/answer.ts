// Turns a response into its body, or into an error.
import { createRequestError, type RequestError } from './errors.js'

/** A response with a JSON body. */
export interface JsonAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

type AnswerObject = Readonly<Record<string, unknown>>

const RETRIED_STATUSES: readonly number[] = [429, 502, 503, 504]
const MAX_QUOTED_CHARACTERS = 80
const NOT_MODIFIED = 304

/** True if a request that takes effect at most once may be sent again. */
export function isTransient({ kind, status }: RequestError): boolean {
  return kind === 'network' || RETRIED_STATUSES.includes(status)
}

/** Reads the answer of the service to one of its calls. Anything else, such as an empty body, comes from a proxy or was cut off. */
export async function readEnvelope(response: Response): Promise<JsonAnswer> {
  const answer = await readAnswer(response)
  const { body, status } = answer
  if (isJsonObject(body) && typeof body['status'] === 'number' && 'data' in body) return answer
  const message = `The response with status ${status} is not an answer of the service`
  throw createRequestError({ kind: 'network', message, status })
}

/** Reads a JSON body. Throws the error that it describes. */
export async function readAnswer(response: Response): Promise<JsonAnswer> {
  const { status, headers, ok } = response
  const text = await response.text()
  const body = parseJson(text)
  if ((ok || status === NOT_MODIFIED) && text === '') return { status, headers, body: undefined }
  if (body === undefined) throw createNotJsonError(response, text)
  const isError = isJsonObject(body) && typeof body['status'] === 'number' && body['status'] < 0
  // With `--compat axelor`, an error about a record has the status 200.
  if (!ok || isError) throw createErrorFromBody(response, body)
  return { status, headers, body }
}

/** The service never redirects such a request. A proxy may, for example to https. */
export function refuseRedirect({ status, headers, type }: Response): void {
  if (type !== 'opaqueredirect' && (status < 300 || status > 399 || status === NOT_MODIFIED)) return
  const target = headers.get('location')
  const message = `The server redirects${target === null ? '' : ` to ${target}`}: connect to the final URL`
  throw createRequestError({ kind: 'redirect', status, message })
}

export function getData(body: unknown): unknown {
  return isJsonObject(body) ? body['data'] : undefined
}

/** The one record in a body. */
export function getFirst(body: unknown): unknown {
  const data = getData(body)
  return Array.isArray(data) ? (data as unknown[])[0] : undefined
}

export function isJsonObject(value: unknown): value is AnswerObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // The caller makes an error that says more than a SyntaxError.
    return undefined
  }
}

function createErrorFromBody({ status, headers }: Response, body: unknown): RequestError {
  const envelope = isJsonObject(body) ? body : {}
  const data = isJsonObject(envelope['data']) ? envelope['data'] : {}
  const { kind, message, requestId } = data
  const { errors } = envelope
  return createRequestError({
    kind: typeof kind === 'string' ? kind : nameStatus(status),
    message: typeof message === 'string' ? message : `The server responded with status ${status}`,
    status,
    fields: isJsonObject(errors) ? errors : {},
    requestId: typeof requestId === 'string' ? requestId : (headers.get('x-request-id') ?? undefined),
    data,
    retryAfterMs: parseRetryAfter(headers),
  })
}

/** A page of a proxy, or half a body. */
function createNotJsonError({ status, headers, ok }: Response, text: string): RequestError {
  const type = headers.get('content-type') ?? 'no content type'
  const start = text.slice(0, MAX_QUOTED_CHARACTERS).replaceAll(/\s+/g, ' ')
  const reason = `The response with status ${status} is not JSON (${type}): ${JSON.stringify(start)}`
  return createRequestError({
    kind: ok ? 'network' : nameStatus(status),
    // A proxy without a service behind it.
    message: RETRIED_STATUSES.includes(status) ? `The service cannot be reached. ${reason}` : reason,
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterMs: parseRetryAfter(headers),
  })
}

/** Only the service itself can say that a record does not exist; the 404 of a proxy means something else. */
function nameStatus(status: number): string {
  return RETRIED_STATUSES.includes(status) ? 'busy' : 'unexpected'
}

/** Seconds, or a date, which is compared with the clock of the server. */
function parseRetryAfter(headers: Headers): number | undefined {
  const text = headers.get('retry-after')?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const nowMs = Date.parse(headers.get('date') ?? '')
  const delayMs = Date.parse(text) - (Number.isNaN(nowMs) ? Date.now() : nowMs)
  return Number.isNaN(delayMs) ? undefined : Math.max(0, delayMs)
}

/** Compares JSON values; the order of keys does not matter. */
export function isSameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((each, index) => isSameJson(each, right[index]))
  if (!isJsonObject(left) || !isJsonObject(right)) return false
  const names = Object.keys(left)
  const isSameSize = names.length === Object.keys(right).length
  return (
    isSameSize && names.every((name) => Object.hasOwn(right, name) && isSameJson(left[name], right[name]))
  )
}
