// Answers of 500 and above. None goes unnoticed: a test that provokes one says so where it starts the service.
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** Kinds of answers that a service gives when it could not do its work. */
export type Failure = 'internal' | 'busy' | 'storage-full'

const STATUSES: Readonly<Record<Failure, number>> = { internal: 500, busy: 503, 'storage-full': 507 }

/** For mutants, and for servers that play another part. */
export const ANY_FAILURE: readonly Failure[] = ['internal', 'busy', 'storage-full']

const expected = new WeakMap<Server, ReadonlySet<number>>()
let unexpected: string[] = []

/** A server of this process may answer so. */
export function expectFailures(server: Server, kinds: readonly Failure[]): void {
  expected.set(server, statusesOf(kinds))
}

function statusesOf(kinds: readonly Failure[]): ReadonlySet<number> {
  return new Set(kinds.map((kind) => STATUSES[kind]))
}

interface Finished {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly server: Server
}

// Every server of this process is watched, also those that play another part: receivers of webhooks, for one.
subscribe('http.server.response.finish', (message) => {
  const { request, response, server } = message as Finished
  const { statusCode } = response
  if (statusCode < 500) return
  if (expected.get(server)?.has(statusCode) === true) return
  unexpected.push(`${request.method ?? ''} ${request.url ?? ''} was answered with ${statusCode}`)
})

/** Lines of a log, of which those of answered requests have a `status`. */
export function watchLog(kinds: readonly Failure[] = []): (chunk: Buffer) => void {
  const statuses = statusesOf(kinds)
  let rest = ''
  return (chunk) => {
    const lines = `${rest}${chunk.toString()}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const status = Number(/"status":(5\d\d)\b/.exec(line)?.[1] ?? 0)
      if (status !== 0 && !statuses.has(status)) unexpected.push(`a server in a process of its own: ${line}`)
    }
  }
}

/** The unexpected failures since the last call. */
export function takeUnexpected(): readonly string[] {
  const found = unexpected
  unexpected = []
  return found
}

export function failIfUnexpected(): void {
  const found = takeUnexpected()
  if (found.length === 0) return
  const shown = found.slice(0, 10).join('\n')
  throw new Error(`${found.length} unexpected: say so with "expects" if a test provokes it\n${shown}`)
}
