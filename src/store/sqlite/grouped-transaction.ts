// Works that run one after the other in one transaction. What each of them leaves for its end is done once for all of them.
import type { Ending, Plain, Transaction } from '../engine/database.js'

/** What plain works of a group see of their transaction. */
export class Grouped implements Transaction {
  readonly #endings = new Map<string, { readonly run: Ending<unknown>; readonly inputs: unknown[] }>()
  readonly #answers = new Map<string, Promise<unknown>>()
  readonly #records = new Set<string>()

  readonly all: Transaction['all']
  readonly run: Transaction['run']
  readonly insert: Transaction['insert']

  constructor(private readonly tx: Transaction) {
    this.all = (sql, params) => tx.all(sql, params)
    this.run = (sql, params) => tx.run(sql, params)
    this.insert = (sql, params) => tx.insert(sql, params)
  }

  async once<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const answer = this.#answers.get(key) ?? ask()
    this.#answers.set(key, answer)
    return answer as Promise<T>
  }

  atEnd<I>(key: string, input: I, run: Ending<I>): void {
    const ending = this.#endings.get(key) ?? { run: run as Ending<unknown>, inputs: [] }
    this.#endings.set(key, ending)
    ending.inputs.push(input)
  }

  /** For the work that comes next. One that may look at more than a record of its own finds done what others have left for the end. */
  async begin(plain: Plain | undefined): Promise<Transaction> {
    const { record } = plain ?? {}
    if (!plain || (record !== undefined && this.#records.has(record))) await this.end()
    if (record !== undefined) this.#records.add(record)
    return plain ? this : this.tx
  }

  async end(): Promise<void> {
    const endings = [...this.#endings.values()]
    this.#endings.clear()
    this.#answers.clear()
    for (const { run, inputs } of endings) await run(this.tx, inputs)
  }
}
