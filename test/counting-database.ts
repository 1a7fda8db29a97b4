import type { Database, Queryable, QueryPool, Reader, Transaction } from '../src/store/engine/database.js'
import { searchingBy } from './query-pool.js'
import { unshared, unsharedTransaction } from './queryables.js'

/** A database that records its statements. */
export class CountingDatabase implements Database {
  readonly reader: Reader
  readonly queryPool: QueryPool
  #statements: string[] = []
  #characters = 0
  /** The pages by id that were requested. */
  pages = 0

  constructor(private readonly inner: Database) {
    this.reader = this.#counted(inner.reader)
    this.queryPool = searchingBy(inner.queryPool, (queryable) => this.#counted(queryable))
  }

  get dialect(): Database['dialect'] {
    return this.inner.dialect
  }

  get blobs(): Database['blobs'] {
    return this.inner.blobs
  }

  get commits(): Database['commits'] {
    return this.inner.commits
  }

  writability: Database['writability'] = () => this.inner.writability()
  gauges: Database['gauges'] = () => this.inner.gauges()
  measure: Database['measure'] = () => this.inner.measure()

  transaction: Database['transaction'] = (work, options) =>
    this.inner.transaction((tx) => work(this.#countedTransaction(tx)), options)

  async close(): Promise<void> {
    await this.inner.close()
  }

  /** The statements that the database gets during the call. */
  async statementsOf(call: () => Promise<unknown>): Promise<readonly string[]> {
    this.#statements = []
    await call()
    return this.#statements
  }

  /** The number of characters that the database returns during the call. */
  async charactersOf(call: () => Promise<unknown>): Promise<number> {
    this.#characters = 0
    await call()
    return this.#characters
  }

  #countedTransaction(tx: Transaction): Transaction {
    return unsharedTransaction({
      all: this.#count(tx),
      run: (sql, params) => {
        this.#statements.push(sql)
        return tx.run(sql, params)
      },
      insert: (sql, params) => {
        this.#statements.push(sql)
        return tx.insert(sql, params)
      },
    })
  }

  #counted(queryable: Queryable): Reader {
    return unshared({ all: this.#count(queryable) })
  }

  #count(queryable: Queryable): Queryable['all'] {
    return async (sql, params) => {
      this.#statements.push(sql)
      if (sql.includes('where t."id" > ? ')) this.pages++
      const rows = await queryable.all(sql, params)
      for (const row of rows)
        for (const value of Object.values(row))
          if (typeof value === 'string') this.#characters += value.length
      return rows
    }
  }
}
