// A group commit of SQLite: its members run one after the other in one transaction and share their `beforeCommit` handlers.
import type { BeforeCommitHandler, GroupableWrite, Transaction } from '../engine/database.js'

/** The transaction of groupable members. */
export class SqliteGroupTransaction implements Transaction {
  readonly #handlers = new Map<
    string,
    { readonly run: BeforeCommitHandler<unknown>; readonly inputs: unknown[] }
  >()
  readonly #memo = new Map<string, Promise<unknown>>()
  readonly #writtenRecords = new Set<string>()

  readonly all: Transaction['all']
  readonly run: Transaction['run']
  readonly insert: Transaction['insert']

  constructor(private readonly tx: Transaction) {
    this.all = (sql, params) => tx.all(sql, params)
    this.run = (sql, params) => tx.run(sql, params)
    this.insert = (sql, params) => tx.insert(sql, params)
  }

  async memoize<T>(key: string, load: () => Promise<T>): Promise<T> {
    const value = this.#memo.get(key) ?? load()
    this.#memo.set(key, value)
    return value as Promise<T>
  }

  beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): void {
    const handler = this.#handlers.get(key) ?? { run: run as BeforeCommitHandler<unknown>, inputs: [] }
    this.#handlers.set(key, handler)
    handler.inputs.push(input)
  }

  /** The transaction of the next member. A member that may read records of other members runs after the handlers of those members. */
  async beginMember(groupable: GroupableWrite | undefined): Promise<Transaction> {
    const { record } = groupable ?? {}
    if (!groupable || (record !== undefined && this.#writtenRecords.has(record))) await this.runHandlers()
    if (record !== undefined) this.#writtenRecords.add(record)
    return groupable ? this : this.tx
  }

  async runHandlers(): Promise<void> {
    const handlers = [...this.#handlers.values()]
    this.#handlers.clear()
    this.#memo.clear()
    for (const { run, inputs } of handlers) await run(this.tx, inputs)
  }
}
