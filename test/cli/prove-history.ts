// Histories of a correct service: every operation takes effect at one instant between its request and its response.
import type { ObservedState } from '../../src/cli/prove/adapters/adapter.js'
import type { RunHistory } from '../../src/cli/prove/checks/history-check.js'
import type { ClientOperation } from '../../src/cli/prove/checks/operation.js'
import { SeededRandom } from '../../src/cli/prove/run/random.js'

const CLIENTS = 6
const RECORDS = 3
const LONGEST = 5

interface Client {
  readonly name: string
  freeAt: number
  readonly seen: Map<string, ObservedState>
}

export function rightHistory(seed: number, steps: number): RunHistory {
  const random = new SeededRandom(seed)
  const clients: Client[] = Array.from({ length: CLIENTS }, (_, index) => ({
    ...{ name: `c${index}`, freeAt: 0, seen: new Map<string, ObservedState>() },
  }))
  const store = new SimulatedStore()
  const operations: ClientOperation[] = []
  for (let now = 1; now <= steps; now++) {
    const client = clients[random.below(CLIENTS)]
    if (!client || client.freeAt > now) continue
    const times = {
      client: client.name,
      invokedMs: Math.max(client.freeAt, now - random.next() * LONGEST) + 0.01,
      answeredMs: now + 0.02 + random.next() * LONGEST,
    }
    client.freeAt = times.answeredMs
    const operation = { ...times, ...store.act(random, client, now) }
    operations.push(operation)
    const isRepeated = operation.key !== undefined && random.chance(0.7)
    if (!isRepeated) continue
    const again = { invokedMs: client.freeAt + 0.01, answeredMs: client.freeAt + random.next() + 0.02 }
    client.freeAt = again.answeredMs
    operations.push({ ...operation, ...again, ...store.repeat(operation) })
  }
  return { operations, table: new Map(store.table) }
}

type Deed = Omit<ClientOperation, 'client' | 'invokedMs' | 'answeredMs'>

class SimulatedStore {
  readonly table = new Map<string, ObservedState>()
  #made = 0
  #sent = 0
  readonly #effects = new Map<string, Deed>()

  act(random: SeededRandom, client: Client, now: number): Deed {
    const alive = [...this.table.keys()]
    const chance = random.next()
    if (alive.length < RECORDS || chance < 0.03) return this.#create(client)
    if (chance < 0.1) return { kind: 'total', outcome: 'ok', total: this.table.size }
    const record = [...client.seen.keys(), ...alive][random.below(client.seen.size + alive.length)] ?? ''
    const known = client.seen.get(record)
    if (!known || chance < 0.3) return this.#read(client, record)
    if (chance < 0.33) return this.#remove(client, record, known)
    return this.#update(random, client, record, known, now)
  }

  /** Answers a repeat with the first response, or with the current state if the first attempt had no effect. */
  repeat({ key = '', named, record = '' }: ClientOperation): Partial<ClientOperation> {
    const stored = this.#effects.get(key)
    if (stored) return stored
    const state = this.table.get(record)
    if (!state) return { outcome: 'missing' }
    return { outcome: state.version === named ? 'refused' : 'conflict' }
  }

  #create(client: Client): Deed {
    const record = `r${++this.#made}`
    const state = { version: 0, tokens: [] }
    this.table.set(record, state)
    client.seen.set(record, state)
    return { kind: 'create', outcome: 'ok', record, ...state }
  }

  #read(client: Client, record: string): Deed {
    const state = this.table.get(record)
    if (state) client.seen.set(record, state)
    else client.seen.delete(record)
    return state
      ? { kind: 'read', outcome: 'ok', record, ...state }
      : { kind: 'read', outcome: 'missing', record }
  }

  #remove(client: Client, record: string, { version: named }: ObservedState): Deed {
    client.seen.delete(record)
    const about = { kind: 'remove', record, named } as const
    const state = this.table.get(record)
    if (!state) return { ...about, outcome: 'missing' }
    if (state.version !== named) return { ...about, outcome: 'conflict' }
    this.table.delete(record)
    return { ...about, outcome: 'ok' }
  }

  #update(random: SeededRandom, client: Client, record: string, known: ObservedState, now: number): Deed {
    const token = `t${++this.#sent}`
    const key = random.chance(0.2) ? `k${now}` : undefined
    const about = { kind: 'update', record, token, named: known.version, key } as const
    client.seen.delete(record)
    const state = this.table.get(record)
    const isLost = random.chance(0.1)
    const isUnknown = isLost || random.chance(0.1)
    if (isLost) return { ...about, outcome: 'unknown' }
    if (!state) return { ...about, outcome: isUnknown ? 'unknown' : 'missing' }
    if (state.version !== known.version) return { ...about, outcome: isUnknown ? 'unknown' : 'conflict' }
    const changed = { version: state.version + 1, tokens: [...state.tokens, token] }
    this.table.set(record, changed)
    const done = { ...about, outcome: 'ok', ...changed } as const
    if (key !== undefined) this.#effects.set(key, done)
    if (isUnknown) return { ...about, outcome: 'unknown' }
    client.seen.set(record, changed)
    return done
  }
}
