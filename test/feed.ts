// The feed as a client follows it: Changes folded into a copy of the tables, and events of a stream as they arrive.
import type { Change, WireRecord } from '../src/wire.js'
import type { HttpClient } from './http-client.js'

const KEPT = ['id', 'version', 'createdOn', 'createdBy', 'updatedOn', 'updatedBy']

type Plain = Readonly<Record<string, unknown>>
interface Copied {
  readonly version: number
  readonly values: Plain
}

/** A copy that is kept by Changes alone. It complains of every one that does not follow from the one before. */
export class Copy {
  readonly complaints: string[] = []
  readonly #records = new Map<string, Copied>()
  #seq: number

  constructor(
    /** The cursor at which the copy was made. */
    seq = 0,
    records: Readonly<Record<string, readonly WireRecord[]>> = {},
  ) {
    this.#seq = seq
    for (const [model, some] of Object.entries(records))
      for (const record of some) this.#records.set(`${model} ${record.id}`, copied(record))
  }

  get seq(): number {
    return this.#seq
  }

  apply(change: Change): void {
    const { seq, model, id, version, action, changes } = change
    const key = `${model} ${id}`
    const before = this.#records.get(key)
    if (seq <= this.#seq) this.complaints.push(`${seq} comes after ${this.#seq}`)
    this.#seq = seq
    if (before && version !== before.version + 1)
      this.complaints.push(`${seq}: ${key} goes from ${before.version} to ${version}`)
    if (!before && action !== 'create')
      this.complaints.push(`${seq}: ${action} of ${key}, which is not there`)
    if (action === 'delete') {
      this.#records.delete(key)
      return
    }
    const after = Object.fromEntries(Object.entries(changes).map(([name, each]) => [name, each.after]))
    this.#records.set(key, { version, values: tidy({ ...before?.values, ...after }) })
  }

  applyAll(changes: readonly Change[]): void {
    for (const change of changes) this.apply(change)
  }

  /** Its records of one model, by id. */
  recordsOf(model: string): ReadonlyMap<number, Copied> {
    const own = [...this.#records].filter(([key]) => key.startsWith(`${model} `))
    return new Map(own.map(([key, record]) => [Number(key.slice(model.length + 1)), record]))
  }
}

/** Records as they are answered, in the same form. */
export function tableOf(records: readonly WireRecord[]): ReadonlyMap<number, Copied> {
  return new Map(records.map((record) => [record.id, copied(record)]))
}

function copied(record: WireRecord): Copied {
  const own = Object.entries(record).filter(([name]) => !KEPT.includes(name))
  return {
    version: record.version,
    values: tidy(Object.fromEntries(own.map(([name, value]) => [name, bare(value)]))),
  }
}

/** Reduces related records to their ids. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare)
  const isNeighbour = typeof value === 'object' && value !== null && '$version' in value && 'id' in value
  return isNeighbour ? { id: value.id } : value
}

function tidy(values: Plain): Plain {
  const isThere = ([, value]: [string, unknown]) =>
    value !== null && !(Array.isArray(value) && value.length === 0)
  return Object.fromEntries(
    Object.entries(values)
      .filter(isThere)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** A stream of events, read as the standard has it. */
export class EventReader {
  readonly response: Promise<Response>
  readonly #aborting = new AbortController()
  /** The value that a browser sends as `Last-Event-ID`. */
  lastId = ''

  constructor(client: HttpClient, query: string, headers: Record<string, string> = {}) {
    this.response = fetch(`${client.url}/ws/changes?${query}`, {
      headers: { cookie: client.cookie, accept: 'text/event-stream', ...headers },
      signal: this.#aborting.signal,
    })
    this.response.catch(() => undefined)
  }

  /** To the end of the stream, or until it is cut. */
  async *events(): AsyncGenerator<StreamEvent> {
    const { body } = await this.response
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = this.#block(text.slice(0, end))
        text = text.slice(end + 2)
        if (event) yield event
      }
    }
  }

  close(): void {
    this.#aborting.abort()
  }

  #block(block: string): StreamEvent | undefined {
    const fields = new Map<string, string>()
    for (const line of block.split('\n')) {
      const [name = '', ...rest] = line.split(': ')
      if (name !== '') fields.set(name, rest.join(': '))
    }
    this.lastId = fields.get('id') ?? this.lastId
    const data = fields.get('data')
    return data === undefined ? undefined : { id: this.lastId, event: fields.get('event') ?? 'message', data }
  }
}
