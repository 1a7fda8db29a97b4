// Mutants of merging. A merge writes its fields onto the newest version and leaves the changes of others as they are.
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { faceOf } from './records.js'
import { unsharedTransaction } from '../queryables.js'

/** Writes the whole record as the client knew it, when all other fields were empty. */
export function writingAllFields(table: string, names: readonly string[]): (db: Database) => Database {
  const start = `update "${table}" set `
  return (db) =>
    inTransactions(db, (tx) =>
      unsharedTransaction({
        all: (sql, params) => tx.all(sql, params),
        insert: (sql, params) => tx.insert(sql, params),
        run: (sql, params) => {
          if (!sql.startsWith(start)) return tx.run(sql, params)
          const others = names.filter((name) => !sql.includes(`"${name}" = ?`))
          const emptied = others.map((name) => `"${name}" = null, `).join('')
          return tx.run(start + emptied + sql.slice(start.length), params)
        },
      }),
    )
}

/** Ignores the changes of others since the base version. */
export function forgettingChanges(db: Database): Database {
  return inTransactions(db, (tx) =>
    unsharedTransaction({
      all: async (sql, params) => {
        const rows = await tx.all(sql, params)
        return sql.includes(' as "page" on "page".seq = l.seq ')
          ? rows.map((row) => ({ ...row, changes: '{}' }))
          : rows
      },
      insert: (sql, params) => tx.insert(sql, params),
      run: (sql, params) => tx.run(sql, params),
    }),
  )
}

function inTransactions(db: Database, change: (tx: Transaction) => Transaction): Database {
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(change(tx)), options) }
}
