// Clients that write, and a record of what each of them was answered. It shares no code with `verso prove`.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpAnswer, HttpTarget } from './service-process.js'

export const MODEL = 'promise.Item'
const PATH = `/ws/rest/${MODEL}`
/** Writers share the newest records, so that they meet conflicts. */
const SHARED_RECORDS = 24
const MAX_LOG = 30
const PAUSE_AFTER_LOSS_MS = 25

export type WriteKind = 'create' | 'update' | 'merge' | 'delete' | 'batch'
/** In doubt: the connection was lost, or the answer says that the result is unknown. */
export type WriteOutcome = 'acknowledged' | 'refused' | 'in-doubt'

export interface RecordedWrite {
  readonly kind: WriteKind
  /** Each token is stored at most once: in `token` of a new record, at the end of `log`, or in `note`. A delete has none. */
  readonly tokens: readonly string[]
  readonly key: string
  readonly method: string
  readonly path: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
  /** The record; undefined for a create or a batch until it is acknowledged. */
  readonly id: number | undefined
  outcome: WriteOutcome
  /** Sent more than once, so that a refused connection does not say that nothing is stored. */
  isRepeated: boolean
  /** The id and version of each token, as answered. */
  answered: readonly { readonly id: number; readonly version: number }[]
}

interface KnownRecord {
  readonly id: number
  version: number
  log: readonly string[]
}

interface WireItem {
  readonly id: number
  readonly version: number
  readonly log?: readonly string[] | null
}

export class Recorder {
  readonly writes: RecordedWrite[] = []
  /** Answers by status; `lost` are requests without an answer. */
  readonly answers = new Map<string, number>()
  /** Answers that no client should get. */
  readonly faults: string[] = []
  readonly latenciesMs: number[] = []
  #records: KnownRecord[] = []
  #count = 0
  readonly #run = randomUUID().slice(0, 8)

  count(outcome: WriteOutcome): number {
    return this.writes.filter((write) => write.outcome === outcome).length
  }

  /** Writes until it is over. */
  async keepWriting(targets: readonly HttpTarget[], isOver: () => boolean): Promise<void> {
    for (let i = Math.floor(Math.random() * targets.length); !isOver(); i++) {
      const target = targets[i % targets.length]
      if (!target) return
      const write = this.#plan()
      this.writes.push(write)
      const isAnswered = await this.#send(target, write)
      if (!isAnswered) await sleep(PAUSE_AFTER_LOSS_MS)
    }
  }

  /** Reads pages until it is over. */
  async keepReading(target: HttpTarget, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const answer = await target.send('GET', `${PATH}?limit=3`).catch(() => undefined)
      this.#countAnswer(answer ? String(answer.status) : 'lost')
      if (!answer) await sleep(PAUSE_AFTER_LOSS_MS)
    }
  }

  /** Repeats every second write that is in doubt, with its key. The others stay in doubt. */
  async repeatHalf(target: HttpTarget): Promise<void> {
    const doubtful = this.writes.filter(({ outcome }) => outcome === 'in-doubt')
    for (const [index, write] of doubtful.entries()) if (index % 2 === 0) await this.#send(target, write)
  }

  #plan(): RecordedWrite {
    const dice = Math.random()
    const record = this.#records[Math.floor(Math.random() * this.#records.length)]
    if (!record || dice < 0.15 || this.#records.length < 4) return this.#planCreate()
    if (dice < 0.22) return this.#planBatch()
    if (dice < 0.3) return this.#planDelete(record)
    const isMerge = dice < 0.42
    const token = this.#nextToken()
    const { id, version, log } = record
    const data = isMerge
      ? { version: Math.max(0, version - 1), note: token }
      : { version, log: [...log, token] }
    const headers = isMerge ? { prefer: 'merge=fields' } : {}
    return this.#write(isMerge ? 'merge' : 'update', 'POST', `${PATH}/${id}`, {
      body: { data },
      tokens: [token],
      id,
      headers,
    })
  }

  #planCreate(): RecordedWrite {
    const token = this.#nextToken()
    return this.#write('create', 'PUT', PATH, { body: { data: { token, log: [] } }, tokens: [token] })
  }

  #planBatch(): RecordedWrite {
    const tokens = [this.#nextToken(), this.#nextToken(), this.#nextToken()]
    return this.#write('batch', 'POST', PATH, {
      body: { records: tokens.map((token) => ({ token, log: [] })) },
      tokens,
    })
  }

  #planDelete({ id, version }: KnownRecord): RecordedWrite {
    return this.#write('delete', 'DELETE', `${PATH}/${id}`, {
      tokens: [],
      id,
      headers: { 'if-match': `"${version}"` },
    })
  }

  #write(
    kind: WriteKind,
    method: string,
    path: string,
    more: Pick<RecordedWrite, 'tokens'> & Partial<Pick<RecordedWrite, 'body' | 'id' | 'headers'>>,
  ): RecordedWrite {
    const key = randomUUID()
    const { body, tokens, id, headers } = more
    return {
      kind,
      tokens,
      key,
      method,
      path,
      body,
      id,
      headers: { ...headers, 'idempotency-key': key },
      outcome: 'in-doubt',
      isRepeated: false,
      answered: [],
    }
  }

  /** Resolves with false if there was no answer. */
  async #send(target: HttpTarget, write: RecordedWrite): Promise<boolean> {
    const startMs = performance.now()
    let answer: HttpAnswer
    try {
      answer = await target.send(write.method, write.path, write.body, write.headers)
    } catch (error) {
      const isUnsent = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
      this.#countAnswer(isUnsent ? 'not connected' : 'lost')
      if (isUnsent && write.outcome === 'in-doubt' && !write.isRepeated) write.outcome = 'refused'
      return false
    }
    this.latenciesMs.push(performance.now() - startMs)
    this.#countAnswer(String(answer.status))
    if (answer.status === 200) this.#acknowledge(write, answer)
    else this.#refuse(write, answer)
    return true
  }

  #acknowledge(write: RecordedWrite, { body }: HttpAnswer): void {
    write.outcome = 'acknowledged'
    if (write.kind === 'delete') {
      this.#forget(write.id)
      return
    }
    const records = (body as { readonly data: readonly WireItem[] }).data
    write.answered = records.map(({ id, version }) => ({ id, version }))
    if (records.length !== write.tokens.length)
      this.faults.push(`${write.kind} of ${write.tokens.length} records was answered with ${records.length}`)
    for (const { id, version, log } of records) this.#learn({ id, version, log: log ?? [] })
  }

  #refuse(write: RecordedWrite, { status, headers, body }: HttpAnswer): void {
    const data = (body as { readonly data?: { readonly message?: string; readonly current?: WireItem } }).data
    const message = data?.message ?? ''
    const isExpected = [404, 409, 412, 429, 503, 507].includes(status)
    if (!isExpected) this.faults.push(`${write.kind} was answered with ${status}: ${message}`)
    if (status >= 503 && headers['retry-after'] === undefined)
      this.faults.push(`${status} without Retry-After`)
    const isUnknown = status >= 500 && (!isExpected || /read before you try again|unknown/i.test(message))
    write.outcome = isUnknown ? 'in-doubt' : 'refused'
    if (write.id !== undefined && status < 500) this.#forget(write.id)
  }

  #learn(record: KnownRecord): void {
    const known = this.#records.find(({ id }) => id === record.id)
    if (known && known.version < record.version) Object.assign(known, record)
    if (record.log.length >= MAX_LOG) this.#forget(record.id)
    else if (!known) this.#records = [...this.#records, record].slice(-SHARED_RECORDS)
  }

  #forget(id: number | undefined): void {
    this.#records = this.#records.filter((record) => record.id !== id)
  }

  #countAnswer(status: string): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
  }

  #nextToken(): string {
    return `${this.#run}-${++this.#count}`
  }
}

export interface Load {
  readonly recorder: Recorder
  readonly targets: readonly HttpTarget[]
  readonly writers: number
  /** They read from the first target. */
  readonly readers?: number
}

/** Runs the clients until `work` has ended. */
export async function writeDuring<T>(
  { recorder, targets, writers, readers = 0 }: Load,
  work: () => Promise<T>,
): Promise<T> {
  let isOver = false
  const [first] = targets
  const running = Array.from({ length: writers }, () => recorder.keepWriting(targets, () => isOver))
  for (let i = 0; first && i < readers; i++) running.push(recorder.keepReading(first, () => isOver))
  try {
    return await work()
  } finally {
    isOver = true
    await Promise.all(running)
  }
}
