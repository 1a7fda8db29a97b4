// Broken twins: each is a Database with one promise taken out. The tests of that promise must catch it, or they test nothing.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, SqlValue, Transaction } from '../src/store/database.js'

const GUARD = ' and "version" = ?'
const COMMIT_LATE_MS = 40

type Statement = [sql: string, params: readonly SqlValue[] | undefined]

/** An update no longer asks whether the record is still at its version. */
export function withoutVersionGuard(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(unguarded(tx)), options),
  }
}

/** Read, check, write, each for itself: no transaction around them, and no guard in the update. */
export function readCheckWrite(db: Database): Database {
  const alone: Transaction = {
    all: (sql, params) => db.reader.all(sql, params),
    run: (sql, params) => db.transaction((tx) => tx.run(...withoutGuard(sql, params))),
    insert: (sql, params) => db.transaction((tx) => tx.insert(sql, params)),
  }
  return { ...faceOf(db), transaction: (work) => work(alone) }
}

/** Numbers of the Log are given as they come, not in the order of the commits. */
export function withoutLogLock(db: Database): Database {
  return { ...faceOf(db), dialect: { ...db.dialect, lockLog: [] } }
}

/** Says done when the work is done; the COMMIT comes later, if nothing comes between. */
export function answersBeforeCommit(db: Database, lateMs = COMMIT_LATE_MS): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      new Promise((resolve, reject) => {
        const lateWork = async (tx: Transaction) => {
          resolve(await work(tx))
          await sleep(lateMs)
        }
        db.transaction(lateWork, options).catch(reject)
      }),
  }
}

function faceOf(db: Database): Database {
  return {
    dialect: db.dialect,
    reader: db.reader,
    transaction: (work, options) => db.transaction(work, options),
    close: () => db.close(),
  }
}

function unguarded(tx: Transaction): Transaction {
  return {
    all: (sql, params) => tx.all(sql, params),
    run: (sql, params) => tx.run(...withoutGuard(sql, params)),
    insert: (sql, params) => tx.insert(sql, params),
  }
}

function withoutGuard(sql: string, params: readonly SqlValue[] | undefined): Statement {
  const isGuarded = sql.startsWith('update ') && sql.endsWith(GUARD)
  return isGuarded ? [sql.slice(0, -GUARD.length), params?.slice(0, -1)] : [sql, params]
}
