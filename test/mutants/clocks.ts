// Mutants that trust wrong clocks.
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import type { Database } from '../../src/store/engine/database.js'
import { searchingBy } from '../query-pool.js'
import { unshared } from '../queryables.js'
import { faceOf } from './records.js'

function searching(db: Database, change: (sql: string) => string): Database {
  return {
    ...faceOf(db),
    queryPool: searchingBy(db.queryPool, (each) =>
      unshared({ all: (sql, params) => each.all(change(sql), params) }),
    ),
  }
}

/** Ends a point in time before the first Change with a later time. */
export function endingBeforeFutureTimes(db: Database): Database {
  const first = `select seq from ${LOG_TABLE} where seq < (select min(seq) from ${LOG_TABLE} where at_ms > ?)`
  return searching(db, (sql) =>
    sql
      .replace(/select seq from \w+ where at_ms <= \? order by at_ms desc limit \d+/, first)
      .replace(/ as "next" where at_ms <= \?/, ' as "next" where at_ms <= ? and 1 = 0'),
  )
}

/** Does not look further ahead in the Log than the nearest times. */
export function trustingNearestTimes(db: Database): Database {
  return searching(db, (sql) =>
    sql
      .replace(/order by at_ms desc limit \d+/, 'order by at_ms desc limit 1')
      .replace(/ as "next" where at_ms <= \?/, ' as "next" where at_ms <= ? and 1 = 0'),
  )
}

/** Removes every Change whose own time is old. */
export function compactingByTimes(db: Database): Database {
  return searching(db, (sql) => sql.replace('l.seq < ? and', '(l.seq < ? or 1 = 1) and'))
}

/** Believes a clock that has jumped. */
export function compactingByClock(db: Database): Database {
  return searching(db, (sql) =>
    sql.replace('select max(at_ms) as "at_ms"', 'select 9000000000000000 as "at_ms"'),
  )
}

/** Stores the times of a clock that was set back. */
export function goingBack(db: Database): Database {
  const { lockLog, clock } = db.dialect
  const dialect = {
    ...db.dialect,
    lockLog: { ...lockLog, raiseTime: (ms: string) => ms },
    clock: { ...clock, maxLeadMs: 0 },
  }
  return { ...faceOf(db), dialect }
}

/** Ignores the newest Change, so that times are not in commit order. */
export function withoutOrderOfTimes(db: Database): Database {
  return {
    ...faceOf(db),
    dialect: { ...db.dialect, lockLog: { ...db.dialect.lockLog, raiseTime: (ms) => ms } },
  }
}
