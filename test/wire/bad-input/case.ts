// A case of bad input: the request and its response, on either engine.
import { rawRequest, type Sent } from '../exchange.js'

export interface Case {
  readonly name: string
  /** A request with the session, or raw bytes for a socket. */
  readonly sent: Sent | { readonly raw: string | Buffer; readonly isCut?: boolean }
  readonly status: number
  /** `done` if the request is valid after all, `bare` if the response is one of HTTP without a body. */
  readonly kind: string
  /** The fields that the errors must name, exactly. */
  readonly faults?: readonly string[]
  readonly says?: string
}

type Outcome = readonly [status: number, kind: string]
export const BAD: Outcome = [400, 'bad-request']
export const LOGIN: Outcome = [401, 'unauthenticated']
export const NOT_FOUND: Outcome = [404, 'not-found']
export const NO_MODEL: Outcome = [404, 'unknown-model']
export const CONFLICT: Outcome = [409, 'conflict']
export const TAKEN: Outcome = [409, 'not-unique']
export const STALE: Outcome = [412, 'stale-match']
export const TOO_LARGE: Outcome = [413, 'too-large']
export const MEDIA: Outcome = [415, 'media-type']
export const MISDIRECTED: Outcome = [421, 'misdirected']
export const INVALID: Outcome = [422, 'invalid']
export const HUGE_HEADERS: Outcome = [431, 'too-large']
export const DONE: Outcome = [200, 'done']
export const bare = (status: number): Outcome => [status, 'bare']

export const CONTACTS = '/ws/rest/crm.Contact'
/** The first record that the tests create; it is at version 1. */
export const TARGET = `${CONTACTS}/1`
export const MIB = 1024 * 1024
const JSON_TYPE = 'application/json'

export function row(
  name: string,
  sent: Case['sent'],
  [status, kind]: Outcome,
  more: Partial<Case> = {},
): Case {
  return { name, sent, status, kind, ...more }
}

/** The words of a text, unescaped. */
export function words(...text: Parameters<typeof String.raw>): string[] {
  return String.raw(...text)
    .trim()
    .split(/\s+/)
}

/** Shortens a text for a test title. */
export function show(text: string): string {
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length})` : text
}

export function get(path: string, headers = {}): Sent {
  return { path, headers }
}

export function withBody(method: string, path: string, body: string | Buffer, headers = {}): Sent {
  return { method, path, body, headers: { 'content-type': JSON_TYPE, ...headers } }
}

export function create(model: string, data: unknown, headers = {}): Sent {
  return withBody('PUT', `/ws/rest/${model}`, JSON.stringify({ data }), headers)
}

export function update(data: unknown, headers = {}): Sent {
  return withBody('POST', TARGET, JSON.stringify({ data }), headers)
}

export function remove(path: string, headers = {}): Sent {
  return { method: 'DELETE', path, headers }
}

/** A create with exactly this body. */
export function createBy(body: string | Buffer, headers = {}): Sent {
  return withBody('PUT', CONTACTS, body, headers)
}

export function login(body: string | Buffer, headers = {}): Sent {
  return withBody('POST', '/callback', body, headers)
}

type Headers = Readonly<Record<string, string>>

/** A whole request for a socket; `{cookie}` becomes the session cookie. */
export function request(method: string, path: string, headers: Headers = {}, body = ''): string {
  const own = { cookie: '{cookie}', 'content-type': JSON_TYPE }
  return rawRequest(`${method} ${path} HTTP/1.1`, { ...own, ...headers }, body)
}
