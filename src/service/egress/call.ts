// Sends one webhook call to a checked address. Redirects are not followed, and the content of the response is discarded.
import { request as httpRequest, type ClientRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import {
  resolveAddresses,
  readHost,
  UnreachableError,
  type HostAddress,
  type HostResolver,
} from './destination.js'
import type { EgressPolicy } from './egress-policy.js'

/** Options that all outgoing calls share. */
export interface EgressOptions {
  readonly egressPolicy: EgressPolicy
  readonly resolve: HostResolver
  /** Limits a whole call, from the DNS lookup to the end of the response. */
  readonly timeoutMs: number
  readonly userAgent: string
}

export interface WebhookCall {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface CallOutcome {
  /** The HTTP status; null without a response. */
  readonly status: number | null
  /** A short reason for the delivery log; null if the receiver accepted the call. */
  readonly error: string | null
  readonly ms: number
}

/** The content of a response is ignored. The connection is closed after this many bytes of it. */
const MAX_RESPONSE_BYTES = 64 * 1024

/** Never throws. Returns undefined if the signal aborted the call. */
export async function callWebhook(
  outgoing: EgressOptions,
  sent: WebhookCall,
  signal?: AbortSignal,
): Promise<CallOutcome | undefined> {
  const startMs = performance.now()
  const outcome = (status: number | null, error: string | null): CallOutcome => ({
    status,
    error,
    ms: Math.round(performance.now() - startMs),
  })
  const timeout = AbortSignal.timeout(outgoing.timeoutMs)
  const abort = signal ? AbortSignal.any([signal, timeout]) : timeout
  try {
    const url = new URL(sent.url)
    const addresses = await rejectOnAbort(
      resolveAddresses(readHost(url), outgoing.egressPolicy, outgoing.resolve),
      abort,
    )
    const status = await readStatus(openRequest({ url, addresses }, outgoing, sent, abort), sent.body)
    return outcome(status, describeStatusError(status))
  } catch (error) {
    if (signal?.aborted) return undefined
    return outcome(
      null,
      timeout.aborted ? `no response within ${outgoing.timeoutMs / 1_000} s` : describeCallError(error),
    )
  }
}

interface Destination {
  readonly url: URL
  readonly addresses: readonly HostAddress[]
}

function openRequest(
  { url, addresses }: Destination,
  { userAgent }: EgressOptions,
  { headers, body }: WebhookCall,
  signal: AbortSignal,
): ClientRequest {
  const host = readHost(url)
  const options: RequestOptions & { readonly rejectUnauthorized: boolean; readonly servername?: string } = {
    host,
    port: url.port,
    path: url.pathname + url.search,
    method: 'POST',
    signal,
    // A new connection for each call: no keep-alive connection, no proxy from the environment.
    agent: false,
    lookup: createPinnedLookup(addresses),
    rejectUnauthorized: true,
    ...(isIP(host) > 0 ? {} : { servername: host }),
    headers: {
      ...headers,
      host: url.host,
      'user-agent': userAgent,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
    },
  }
  return url.protocol === 'https:' ? httpsRequest(options) : httpRequest(options)
}

/** Returns the checked addresses to the socket, which would otherwise look the host up again and could get others. */
function createPinnedLookup(addresses: readonly HostAddress[]): LookupFunction {
  return (_, { all }, answer) => {
    if (all) {
      answer(null, [...addresses])
      return
    }
    const [first] = addresses
    answer(null, first?.address ?? '', first?.family)
  }
}

async function readStatus(request: ClientRequest, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response) => {
      const end = () => {
        resolve(response.statusCode ?? 0)
      }
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MAX_RESPONSE_BYTES) response.destroy()
      })
      // The status counts even if the body fails.
      response.on('error', end)
      response.on('close', end)
    })
    request.end(body)
  })
}

function describeStatusError(status: number): string | null {
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400
    ? 'responded with a redirect, which is not followed'
    : `responded with ${status}`
}

/** Rejects when the signal aborts, because a DNS lookup of the system has no time limit. */
async function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => {
      reject(new Error('interrupted'))
    }
    signal.addEventListener('abort', end, { once: true })
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', end)
    })
  })
}

const NETWORK_ERROR_MESSAGES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed by the receiver',
  EPIPE: 'connection closed by the receiver',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'host name lookup failed',
}

function describeCallError(error: unknown): string {
  if (error instanceof UnreachableError) return error.message
  // Node reports one error for each address that it tried.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const code = first instanceof Error && 'code' in first ? String(first.code) : ''
  if (/CERT|ALTNAME|SIGNATURE|ISSUER/.test(code)) return `certificate not trusted (${code})`
  return NETWORK_ERROR_MESSAGES[code] ?? (code === '' ? 'request failed' : `request failed (${code})`)
}
