// Reads a stream of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html

export interface ServerEvent {
  /** Position after this event; undefined if it has none. */
  readonly id: string | undefined
  /** Undefined for a comment with an id. */
  readonly event: string | undefined
  readonly data: string
}

/** Splits text into events, however the connection has cut it into chunks. */
export class EventParser {
  #rest = ''
  #lines: string[] = []

  /** Returns the events that are complete. Half an event waits for its rest, and is lost with the connection. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = []
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line !== '') this.#lines.push(line)
      else if (this.#lines.length > 0) {
        events.push(parseEvent(this.#lines))
        this.#lines = []
      }
    }
    return events
  }
}

function parseEvent(lines: readonly string[]): ServerEvent {
  const values = new Map<string, string[]>()
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return {
    id: values.get('id')?.at(-1),
    event: values.has('data') ? (values.get('event')?.at(-1) ?? 'message') : undefined,
    data: values.get('data')?.join('\n') ?? '',
  }
}

/** Yields events until the stream ends. Throws if nothing arrives for `stallMs`: the connection may be dead. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  stallMs: number,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parser = new EventParser()
  try {
    for (;;) {
      const { done, value } = await readInTime(reader, stallMs)
      if (done) return
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  } finally {
    // The connection is of no use any more, whether it has ended or not.
    await reader.cancel().catch(() => undefined)
  }
}

/** The time of a slow consumer does not count: the timer runs only while nothing is being processed. */
async function readInTime(reader: ReadableStreamDefaultReader<Uint8Array>, stallMs: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stalled = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing arrived for ${stallMs} ms`)), stallMs)
  })
  try {
    return await Promise.race([reader.read(), stalled])
  } finally {
    clearTimeout(timer)
  }
}
