// Clients that repeat or resume wrongly. Each wraps `fetch`, so that the rest of the client stays as it is.

import type { Change } from 'verso-records/client'

type Fetch = typeof fetch

/** Sends a new idempotency key with each attempt, so that a repeated write takes effect twice. */
export function newKeyForEachAttempt(send: Fetch): Fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers)
    if (headers.has('idempotency-key')) headers.set('idempotency-key', crypto.randomUUID())
    return send(input, { ...init, headers })
  }
}

/** Resumes a stream one change too late. */
export function resumeTooLate(send: Fetch): Fetch {
  let streams = 0
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const isStream = new Headers(init?.headers).get('accept') === 'text/event-stream'
    if (isStream && ++streams > 1)
      url.searchParams.set('since', String(Number(url.searchParams.get('since')) + 1))
    return send(url, init)
  }
}

/** Follows changes, but begins again from the start after a lost connection. */
export async function* followWithoutCursor(
  follow: (signal: AbortSignal) => AsyncIterable<Change>,
  drops: () => number,
): AsyncGenerator<Change> {
  for (;;) {
    const [stop, before] = [new AbortController(), drops()]
    for await (const change of follow(stop.signal)) {
      yield change
      if (drops() > before) stop.abort()
    }
  }
}

/** Sends the newest session of any client with every request, as a client with one session for the whole process would. */
export function shareSession(send: Fetch): Fetch {
  let cookie: string | undefined
  return async (input, init) => {
    const headers = new Headers(init?.headers)
    if (headers.has('cookie') && cookie !== undefined) headers.set('cookie', cookie)
    const response = await send(input, { ...init, headers })
    const [session] = response.headers.getSetCookie()
    cookie = session?.split(';')[0] ?? cookie
    return response
  }
}

/** Lets the service merge the results of functions, too. */
export function mergeAlways(send: Fetch): Fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('prefer', 'merge=fields')
    return send(input, { ...init, headers })
  }
}
