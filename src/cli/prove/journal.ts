// All that clients did and were told, in the order of the answers.
import type { ObservedState } from './adapter.js'

export type OperationKind = 'create' | 'read' | 'update' | 'remove' | 'total'
export type OperationOutcome = 'ok' | 'conflict' | 'missing' | 'refused' | 'unknown' | 'unexpected'

export interface ClientOperation {
  readonly kind: OperationKind
  readonly client: string
  /** By a clock that only goes forward. */
  readonly invokedMs: number
  readonly answeredMs: number
  readonly outcome: OperationOutcome
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
  /** What a conflict told of the record. */
  readonly theirs?: ObservedState | undefined
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export class Journal {
  readonly operations: ClientOperation[] = []
  /** Records that were made, as far as clients were told. */
  readonly records = new Set<string>()
  /** `update ok`: so often. */
  readonly #counts = new Map<string, number>()
  readonly #countedKeys = new Set<string>()
  readonly #unknownBases = new Map<string, Set<number>>()
  readonly #lists = new Map<string, readonly string[]>()
  readonly #tokens = new Map<string, string>()

  nextToken(client: string): string {
    const token = `${client}.${this.#tokens.size}`
    this.#tokens.set(token, token)
    return token
  }

  add(operation: ClientOperation): void {
    const { record, tokens, kind, outcome, named } = operation
    this.operations.push(tokens ? { ...operation, tokens: this.#intern(record, tokens) } : operation)
    this.#count(operation)
    if (record === undefined) return
    if (kind === 'create' && outcome === 'ok') this.records.add(record)
    if (outcome === 'unknown' && named !== undefined) this.#markUnknownBase(record, named)
  }

  /** How many came to this outcome. What was repeated counts once. */
  count(kind: OperationKind, outcome: OperationOutcome): number {
    return this.#counts.get(`${kind} ${outcome}`) ?? 0
  }

  /** Whether a write without an answer could still take effect, as long as the record is at this version. */
  isInDoubt(record: string, { version }: ObservedState): boolean {
    return this.#unknownBases.get(record)?.has(version) ?? false
  }

  #count({ kind, outcome, key }: ClientOperation): void {
    const name = `${kind} ${outcome}`
    const counted = `${key ?? ''} ${name}`
    if (key !== undefined && this.#countedKeys.has(counted)) return
    if (key !== undefined) this.#countedKeys.add(counted)
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  #markUnknownBase(record: string, named: number): void {
    const bases = this.#unknownBases.get(record) ?? new Set()
    this.#unknownBases.set(record, bases.add(named))
  }

  /** Most answers have been seen before: one copy of each is kept, and one of each token. */
  #intern(record: string | undefined, tokens: readonly string[]): readonly string[] {
    const listKey = `${record ?? ''} ${tokens.length}`
    const known = this.#lists.get(listKey)
    if (known?.every((token, index) => token === tokens[index])) return known
    const own = tokens.map((token) => this.#tokens.get(token) ?? token)
    if (!known) this.#lists.set(listKey, own)
    return own
  }
}
