// Clients that repeat or resume wrongly. Each wraps `fetch`, so that the rest of the client stays as it is.

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
