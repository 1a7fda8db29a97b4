// Works that run one after the other in one transaction. What each of them leaves for its end is done once for all of them.
import type { BeforeCommitHandler, GroupableWrite, Transaction } from '../engine/database.js'

/** What plain works of a group see of their transaction. */
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

  async memoize<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const answer = this.#memo.get(key) ?? ask()
    this.#memo.set(key, answer)
    return answer as Promise<T>
  }

  beforeCommit<I>(key: string, input: I, run: BeforeCommitHandler<I>): void {
    const ending = this.#handlers.get(key) ?? { run: run as BeforeCommitHandler<unknown>, inputs: [] }
    this.#handlers.set(key, ending)
    ending.inputs.push(input)
  }

  /** For the work that comes next. One that may look at more than a record of its own finds done what others have left for the end. */
  async beginMember(plain: GroupableWrite | undefined): Promise<Transaction> {
    const { record } = plain ?? {}
    if (!plain || (record !== undefined && this.#writtenRecords.has(record))) await this.runHandlers()
    if (record !== undefined) this.#writtenRecords.add(record)
    return plain ? this : this.tx
  }

  async runHandlers(): Promise<void> {
    const endings = [...this.#handlers.values()]
    this.#handlers.clear()
    this.#memo.clear()
    for (const { run, inputs } of endings) await run(this.tx, inputs)
  }
}
