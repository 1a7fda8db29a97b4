// Compares the responses that clients got with the stored records: after any fault, the two must agree.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../../src/store/engine/database.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import type { Change } from '../../src/wire.js'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import type { WireRecord } from '../../src/wire.js'
import { exchange, type Answer, type Session } from './load-client.js'

const MODEL = 'crm.Contact'
const UPDATES_EACH = 5
const PAUSE_MS = 10

interface State {
  readonly version: number
  /** Identifies the write. */
  readonly token: string
  readonly size: number
}

interface LoggedState {
  readonly version: number
  readonly token: unknown
}

/** Done; rejected without a write; or unknown because the connection or the database was lost. */
export type Outcome = 'done' | 'rejected' | 'unknown'

export class Journal {
  /** The number of responses by status; `lost` counts requests without a response. */
  readonly answers: Record<string, number> = {}
  /** Responses that no client should ever get. */
  readonly faults: string[] = []
  readonly #acknowledged = new Map<number, State>()
  readonly #unknownUpdates = new Map<number, State>()
  readonly #unknownCreates = new Map<string, State>()
  #writes = 0

  /** The number of acknowledged writes. */
  get acknowledged(): number {
    return this.answers['200'] ?? 0
  }

  /** Records that can be updated because their current version is known. */
  get ids(): number[] {
    return [...this.#acknowledged.keys()].filter((id) => !this.#unknownUpdates.has(id))
  }

  /** Resolves with the id if the record was created. */
  async create(session: Session, size = 0): Promise<number | undefined> {
    const state = { version: 0, token: this.#nextToken(), size }
    this.#unknownCreates.set(state.token, state)
    const { outcome, record } = await this.#send(session, 'PUT', `/ws/rest/${MODEL}`, state)
    if (outcome !== 'unknown') this.#unknownCreates.delete(state.token)
    if (!record) return undefined
    this.#acknowledged.set(record.id, state)
    return record.id
  }

  async update(session: Session, id: number, size = 0): Promise<Outcome> {
    const before = this.#acknowledged.get(id)
    if (!before || this.#unknownUpdates.has(id)) throw new Error(`nobody knows what record ${id} is at`)
    const state = { version: before.version + 1, token: this.#nextToken(), size }
    this.#unknownUpdates.set(id, state)
    const { outcome } = await this.#send(session, 'POST', `/ws/rest/${MODEL}/${id}`, state, before.version)
    if (outcome !== 'unknown') this.#unknownUpdates.delete(id)
    if (outcome === 'done') this.#acknowledged.set(id, state)
    return outcome
  }

  /** Creates a record, updates it several times, and starts again, until it is told to stop or the server is gone. */
  async keepWriting(session: Session, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const lost = this.answers['lost']
      const id = await this.create(session)
      let outcome: Outcome = id === undefined ? 'rejected' : 'done'
      for (let i = 0; id !== undefined && i < UPDATES_EACH && outcome === 'done' && !isOver(); i++) {
        outcome = await this.update(session, id)
      }
      if (outcome !== 'done') await sleep(PAUSE_MS)
      if (this.answers['lost'] !== lost) return
    }
  }

  /** Every difference between the responses and the stored records. Settles unknown outcomes, so no write may be in flight. */
  async check(db: Queryable): Promise<string[]> {
    const stored = await readStates(db)
    const logged = await readLog(db)
    const violations = [
      ...this.faults,
      ...this.#lost(stored),
      ...this.#unexpected(stored),
      ...unlogged(stored, logged),
    ]
    this.#acknowledged.clear()
    this.#unknownUpdates.clear()
    this.#unknownCreates.clear()
    for (const [id, state] of stored) this.#acknowledged.set(id, state)
    return violations
  }

  *#lost(stored: ReadonlyMap<number, State>): Generator<string> {
    for (const [id, expected] of this.#acknowledged) {
      const actual = stored.get(id)
      const isThere = isSame(actual, expected) || isSame(actual, this.#unknownUpdates.get(id))
      if (!isThere) yield `record ${id} was acknowledged as ${shown(expected)} and is ${shown(actual)}`
    }
  }

  *#unexpected(stored: ReadonlyMap<number, State>): Generator<string> {
    const tokens = new Set<string>()
    for (const [id, actual] of stored) {
      if (tokens.has(actual.token)) yield `${shown(actual)} is stored twice`
      tokens.add(actual.token)
      if (this.#acknowledged.has(id) || isSame(actual, this.#unknownCreates.get(actual.token))) continue
      yield `record ${id} is ${shown(actual)}, and nobody was told so`
    }
  }

  async #send(
    session: Session,
    method: string,
    path: string,
    { version, token, size }: State,
    from?: number,
  ): Promise<{ outcome: Outcome; record?: WireRecord }> {
    const notes = randomBytes(size).toString('hex').slice(0, size)
    let answer: Answer
    try {
      answer = await exchange(session, method, path, { data: { version: from, lastName: token, notes } })
    } catch {
      this.#count('lost')
      return { outcome: 'unknown' }
    }
    this.#count(String(answer.status))
    if (answer.status === 200) {
      const [record] = answer.body.data as WireRecord[]
      if (record?.version !== version)
        this.faults.push(`${token} was answered with version ${record?.version ?? 'none'}`)
      return record ? { outcome: 'done', record } : { outcome: 'unknown' }
    }
    return { outcome: this.#error(token, answer) }
  }

  #error(token: string, { status, headers, body }: Answer): Outcome {
    const { message } = body.data as { message: string }
    if (status !== 503 && status !== 507) this.faults.push(`${token} was answered with ${status}: ${message}`)
    else if (!(Number(headers['retry-after']) > 0))
      this.faults.push(`${token}: ${status} without Retry-After`)
    return message.includes('read before you try again') ? 'unknown' : 'rejected'
  }

  #count(what: string): void {
    this.answers[what] = (this.answers[what] ?? 0) + 1
  }

  #nextToken(): string {
    return `write ${++this.#writes}`
  }
}

async function readStates(db: Queryable): Promise<Map<number, State>> {
  const rows = await db.all(
    `select "id", "version", "lastName", coalesce(length("notes"), 0) as size from ${quoteIdentifier(toTableName(MODEL))}`,
  )
  return new Map(
    rows.map((row) => [
      Number(row['id']),
      { version: Number(row['version']), token: String(row['lastName']), size: Number(row['size']) },
    ]),
  )
}

async function readLog(db: Queryable): Promise<Map<number, LoggedState[]>> {
  const rows = await db.all(
    `select record, version, changes from ${LOG_TABLE} where model = ? order by seq`,
    [MODEL],
  )
  const states = new Map<number, LoggedState[]>()
  for (const row of rows) {
    const id = Number(row['record'])
    const { lastName } = JSON.parse(String(row['changes'])) as Change['changes']
    states.set(id, [...(states.get(id) ?? []), { version: Number(row['version']), token: lastName?.after }])
  }
  return states
}

/** The change log has every version of every record once, in order, and nothing else. */
function* unlogged(
  stored: ReadonlyMap<number, State>,
  logged: ReadonlyMap<number, LoggedState[]>,
): Generator<string> {
  for (const [id, { version, token }] of stored) {
    const states = logged.get(id) ?? []
    const isComplete =
      states.length === version + 1 && states.every((state, index) => state.version === index)
    if (!isComplete)
      yield `record ${id} is at ${version}, and the Log has ${states.map((state) => state.version).join()}`
    else if (states.at(-1)?.token !== token) yield `record ${id} is not what the Log says`
  }
  for (const id of logged.keys()) if (!stored.has(id)) yield `the Log has a record ${id} that is not there`
}

function isSame(left: State | undefined, right: State | undefined): boolean {
  return (
    left?.version === right?.version && left?.token === right?.token && left?.size === right?.size && !!left
  )
}

function shown(state: State | undefined): string {
  return state ? `"${state.token}" at version ${state.version}` : 'gone'
}
