// Records all operations of the clients with their results, in the order of the responses.
import type { ObservedState } from '../adapters/adapter.js'
import type { ClientOperation, OperationKind, OperationOutcome } from '../checks/operation.js'

export class Journal {
  readonly operations: ClientOperation[] = []
  /** Records whose creation was acknowledged. */
  readonly records = new Set<string>()
  /** Counts by kind and outcome, such as `update ok`. */
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

  /** Counts the operations with this outcome. A repeated operation counts once. */
  count(kind: OperationKind, outcome: OperationOutcome): number {
    return this.#counts.get(`${kind} ${outcome}`) ?? 0
  }

  /** True if a write without a response could still take effect, because it names the record's current version. */
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

  /** Interns token lists and tokens, because most responses repeat earlier ones. */
  #intern(record: string | undefined, tokens: readonly string[]): readonly string[] {
    const listKey = `${record ?? ''} ${tokens.length}`
    const interned = this.#lists.get(listKey)
    if (interned?.every((token, index) => token === tokens[index])) return interned
    const own = tokens.map((token) => this.#tokens.get(token) ?? token)
    if (!interned) this.#lists.set(listKey, own)
    return own
  }
}
