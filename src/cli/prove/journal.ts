// All that clients did and were told, in the order of the answers.
import type { State } from './adapter.js'

export type OperationKind = 'create' | 'read' | 'update' | 'remove' | 'total'
export type Outcome = 'ok' | 'conflict' | 'missing' | 'refused' | 'unknown' | 'unexpected'

export interface Operation {
  readonly kind: OperationKind
  readonly client: string
  /** By a clock that only goes forward. */
  readonly invokedMs: number
  readonly answeredMs: number
  readonly outcome: Outcome
  /** Which one; of a create only if its answer came. */
  readonly record?: string | undefined
  /** Requests with the same key are one request that was repeated. */
  readonly key?: string | undefined
  /** What an update appends. */
  readonly token?: string | undefined
  /** The version that an update or a removal was made from. */
  readonly named?: number | undefined
  /** What was answered. */
  readonly version?: number | undefined
  readonly tokens?: readonly string[] | undefined
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export class Journal {
  readonly operations: Operation[] = []
  /** How often each kind came to each outcome: `update ok`. */
  readonly counts = new Map<string, number>()
  /** Records that were made, as far as clients were told. */
  readonly records = new Set<string>()
  readonly #unknownBases = new Map<string, Set<number>>()
  readonly #lists = new Map<string, readonly string[]>()
  readonly #tokens = new Map<string, string>()

  nextToken(client: string): string {
    const token = `${client}.${this.#tokens.size}`
    this.#tokens.set(token, token)
    return token
  }

  add(operation: Operation): void {
    const { record, tokens, kind, outcome, named } = operation
    this.operations.push(tokens ? { ...operation, tokens: this.#shared(record, tokens) } : operation)
    const count = `${kind} ${outcome}`
    this.counts.set(count, (this.counts.get(count) ?? 0) + 1)
    if (record === undefined) return
    if (kind === 'create' && outcome === 'ok') this.records.add(record)
    if (outcome === 'unknown' && named !== undefined) this.#remember(record, named)
  }

  count(kind: OperationKind, outcome: Outcome): number {
    return this.counts.get(`${kind} ${outcome}`) ?? 0
  }

  /** Whether a write without an answer could still take effect, as long as the record is at this version. */
  isInDoubt(record: string, { version }: State): boolean {
    return this.#unknownBases.get(record)?.has(version) ?? false
  }

  #remember(record: string, named: number): void {
    const bases = this.#unknownBases.get(record) ?? new Set()
    this.#unknownBases.set(record, bases.add(named))
  }

  /** Most answers have been seen before: one copy of each is kept, and one of each token. */
  #shared(record: string | undefined, tokens: readonly string[]): readonly string[] {
    const place = `${record ?? ''} ${tokens.length}`
    const known = this.#lists.get(place)
    if (known?.every((token, index) => token === tokens[index])) return known
    const own = tokens.map((token) => this.#tokens.get(token) ?? token)
    if (!known) this.#lists.set(place, own)
    return own
  }
}
