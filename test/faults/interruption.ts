// Runs and commits another action in the middle of a transaction, at the same point in every run.
import type { Database, Queryable, Transaction } from '../../src/store/engine/database.js'
import { FunctionQueryable } from '../../src/store/engine/unshared.js'
import { faceOf } from '../mutants/records.js'
import { unsharedTransaction } from '../queryables.js'

export class Interruption {
  #next: { readonly isAfter: (sql: string) => boolean; readonly act: () => Promise<unknown> } | undefined

  /** Runs `act` once, after the next read statement that matches. */
  after(isAfter: (sql: string) => boolean, act: () => Promise<unknown>): void {
    this.#next = { isAfter, act }
  }

  /** True once the action has run. */
  get isOver(): boolean {
    return this.#next === undefined
  }

  in(db: Database): Database {
    const transaction = (tx: Transaction): Transaction =>
      unsharedTransaction({
        all: this.#reading(tx).all,
        run: (sql, params) => tx.run(sql, params),
        insert: (sql, params) => tx.insert(sql, params),
      })
    return {
      ...faceOf(db),
      reader: this.#reading(db.reader),
      transaction: (work, options) => db.transaction((tx) => work(transaction(tx)), options),
    }
  }

  #reading(db: Queryable): FunctionQueryable {
    return new FunctionQueryable(async (sql, params) => {
      const rows = await db.all(sql, params)
      const next = this.#next
      if (!next?.isAfter(sql)) return rows
      this.#next = undefined
      await next.act()
      return rows
    })
  }
}
