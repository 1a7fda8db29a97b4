// Mutants of the change log and the history.
import { VERSIONS_TABLE } from '../../src/store/auth/permissions-version.js'
import { FORMER_FIELD_TABLE } from '../../src/store/schema/former-fields.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import type { Database, Row, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { searchingBy, withoutSnapshots } from '../query-pool.js'
import { faceOf } from './records.js'
import { unshared, unsharedTransaction } from '../queryables.js'

function running(
  db: Database,
  run: (tx: Transaction, sql: string, params: readonly SqlValue[]) => Promise<number>,
): Database {
  const changed = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      run: (sql, params = []) => run(tx, sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(changed(tx)), options) }
}

/** Does not log the former value of `name`. */
export function withoutBefore(db: Database): Database {
  const forget = (value: SqlValue) =>
    typeof value === 'string' && value.startsWith('{')
      ? value.replace(/("name":\{"before":)"[^"]*"/g, '$1null')
      : value
  return running(db, (tx, sql, params) =>
    tx.run(sql, sql.includes(`insert into ${LOG_TABLE}`) ? params.map(forget) : params),
  )
}

/** Skips one Change of each record in a rewind. */
export function skippingOne(db: Database): Database {
  const skip = (row: Row) =>
    row['changes'] !== undefined && row['version'] === 2 && row['action'] === 'update'
      ? { ...row, changes: '{}' }
      : row
  return {
    ...faceOf(db),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({
        all: async (sql, params) => (await each.all(sql, params)).map(skip),
      }),
    ),
  }
}

/** Reads the Log and a table in different snapshots. */
export function readingWithoutSnapshot(db: Database): Database {
  return { ...faceOf(db), queryPool: withoutSnapshots(db.queryPool) }
}

/** Deletes Changes without raising the retention floor. */
export function withoutRetentionFloor(db: Database): Database {
  return running(db, async (tx, sql, params) =>
    sql.startsWith(`insert into ${VERSIONS_TABLE}`) && sql.includes('log-horizon') ? 0 : tx.run(sql, params),
  )
}

/** Forgets the former names of renamed fields. */
export function withoutFormerFields(db: Database): Database {
  return running(db, async (tx, sql, params) =>
    sql.startsWith(`insert into ${FORMER_FIELD_TABLE}`) ? 0 : tx.run(sql, params),
  )
}

/** Finds deletes of records that were restored, or deleted again. */
export function findingEveryDelete(db: Database): Database {
  const widen = (sql: string) => sql.replace(/ and not exists \(select 1 from \w+ as "later"[^)]*\)/, '')
  return {
    ...faceOf(db),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({ all: (sql, params) => each.all(widen(sql), params) }),
    ),
  }
}

/** Takes every condition of a permission as fulfilled by the past values of a record. */
export function fulfillingConditions(db: Database): Database {
  const fulfil = (row: Row) => (row['c0'] === undefined ? row : { ...row, c0: 1 })
  return {
    ...faceOf(db),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({ all: async (sql, params) => (await each.all(sql, params)).map(fulfil) }),
    ),
  }
}
