// Mutants of API keys and secrets.
import type { Database, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { faceOf } from './records.js'
import { unsharedTransaction } from '../queryables.js'

/** Changes permissions without a new permissions version. */
export function forgettingPermissionsVersion(db: Database): Database {
  const silent = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      run: async (sql, params) => (sql.startsWith('insert into verso_epoch') ? 0 : tx.run(sql, params)),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(silent(tx)), options) }
}

/** Logs hashed secrets in the next Change. */
export function leakingHashes(db: Database): Database {
  const leaking = (tx: Transaction): Transaction => {
    let hash = ''
    const watch = (params: readonly SqlValue[] = []) => {
      const seen = params.find((value) => typeof value === 'string' && value.startsWith('$argon2'))
      if (typeof seen === 'string') hash = seen
      return params
    }
    const told = (sql: string, params: readonly SqlValue[] = []) =>
      sql.includes('insert into verso_log')
        ? params.map((value) =>
            value === '{}' || String(value).startsWith('{"') ? JSON.stringify({ hash }) : value,
          )
        : watch(params)
    return unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      run: (sql, params) => tx.run(sql, told(sql, params)),
      insert: (sql, params) => tx.insert(sql, told(sql, params)),
    })
  }
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(leaking(tx)), options) }
}
