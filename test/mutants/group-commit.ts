// Mutants of group commit on PostgreSQL.
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { answersBeforeCommit, faceOf } from './records.js'
import { changedTransaction, unsharedTransaction } from '../queryables.js'

type Work = (tx: Transaction) => Promise<unknown>

/** Updates several records without the version guard. */
export function withoutSharedGuard(db: Database): Database {
  const GUARD = ' and t."version" = "new"."$version"'
  return inTransactions(db, (tx) =>
    changedTransaction(tx, { all: (sql, params) => tx.all(sql.replace(GUARD, ''), params) }),
  )
}

/**
 * All works are let in, whatever they rest on, and nobody leaves. The person is stored when the company is gone: so late that whoever removed it has
 * found nobody who refers to it.
 */
export function sharingEverything(db: Database): Database {
  let isGone = (): void => undefined
  const gone = new Promise<void>((resolve) => (isGone = resolve))
  const attempt = async <T>(tx: Transaction, work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const done = { hasRemoved: false }
    const value = await work(
      unsharedTransaction({
        all: (sql, params) => tx.all(sql, params),
        run: (sql, params) => {
          done.hasRemoved ||= sql.startsWith('delete from "rel.Company"')
          return tx.run(sql, params)
        },
        insert: async (sql, params) => {
          if (sql.startsWith('insert into "rel.Person"')) await gone
          return tx.insert(sql, params)
        },
      }),
    )
    if (done.hasRemoved) isGone()
    return value
  }
  return {
    ...faceOf(db),
    transaction: (work) => db.transaction((tx) => attempt(tx, work), { groupable: {} }),
  }
}

/** Answers a write of a group before the shared COMMIT. */
export function answersBeforeSharedCommit(db: Database): Database {
  const early = answersBeforeCommit(db)
  return {
    ...faceOf(db),
    transaction: (work, options) => (options?.groupable ? early : db).transaction(work, options),
  }
}

/** One transaction for all writes of a tick, without savepoints: one failure rolls back all of them. */
export function withoutIsolation(db: Database): Database {
  let waiting: { work: Work; resolve: (value: unknown) => void; reject: (error: unknown) => void }[] = []
  const run = async () => {
    const members = waiting
    waiting = []
    try {
      const values: unknown[] = []
      await db.transaction(async (tx) => {
        for (const { work } of members) values.push(await work(tx))
      })
      members.forEach(({ resolve }, index) => {
        resolve(values[index])
      })
    } catch (error) {
      for (const { reject } of members) reject(error)
    }
  }
  return {
    ...faceOf(db),
    transaction: async <T>(work: (tx: Transaction) => Promise<T>) =>
      new Promise<T>((resolve, reject) => {
        if (waiting.length === 0) setImmediate(() => void run())
        waiting.push({ work, resolve: resolve as (value: unknown) => void, reject })
      }),
  }
}

/** Replaces the transaction that each write sees; the shared one stays. */
export function inTransactions(db: Database, change: (tx: Transaction) => Transaction): Database {
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(change(tx)), options) }
}
