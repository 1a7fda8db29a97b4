// Mutants of batches.
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { faceOf } from './records.js'

/** Commits the writes before an error instead of rolling them back. */
export function commitsPart(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: async <T>(work: (tx: Transaction) => Promise<T>) => {
      const outcome = await db.transaction(async (tx) => {
        try {
          return { result: await work(tx) }
        } catch (error) {
          return { error }
        }
      })
      if ('error' in outcome) throw outcome.error
      return outcome.result
    },
  }
}

/** An assert compares the version without a lock. */
export function assertsByLooking(db: Database): Database {
  return { ...faceOf(db), dialect: { ...db.dialect, lockForShare: '' } }
}
