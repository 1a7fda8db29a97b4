// Mutants of the hooks after the commit: databases that change the statements of their bookkeeping.
import type { Database, Reader, Row, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { searchingBy } from '../query-pool.js'
import { changedReader, changedTransaction, unshared } from '../queryables.js'
import { faceOf } from './records.js'

type Run = Transaction['run']

/** A database whose statements are replaced. `all` gets the queries of requests, of the query pool and of transactions. */
export function withStatements(
  db: Database,
  {
    all = (_, __, next) => next(),
    run,
  }: {
    readonly all?: (
      sql: string,
      params: readonly SqlValue[] | undefined,
      next: () => Promise<Row[]>,
    ) => Promise<Row[]>
    readonly run?: (tx: Transaction) => Run
  },
): Database {
  const reader: Reader = changedReader(db.reader, (sql, params) =>
    all(sql, params, () => db.reader.all(sql, params)),
  )
  return {
    ...faceOf(db),
    reader,
    queryPool: searchingBy(db.queryPool, (queryable) =>
      unshared({ all: (sql, params) => all(sql, params, () => queryable.all(sql, params)) }),
    ),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work(
            changedTransaction(tx, {
              all: (sql, params) => all(sql, params, () => tx.all(sql, params)),
              ...(run ? { run: run(tx) } : {}),
            }),
          ),
        options,
      ),
  }
}

const READS_WAITING_RECORDS = 'select distinct record from verso_hook_job'

/** Moves the position of a hook to the end of the Log before the hook runs. */
export function movesBeforeRun(db: Database): Database {
  return withStatements(db, {
    all: async (sql, _, next) => {
      if (sql.startsWith(READS_WAITING_RECORDS))
        await db.transaction((tx) =>
          tx.run('update verso_hook set position = (select max(seq) from verso_log)'),
        )
      return next()
    },
  })
}

/** Runs hooks although another node has the lease, and stores the results. */
export function ignoresLease(db: Database): Database {
  const FREE = ' and (lease is null or leased_until_ms <= ?)'
  let own: SqlValue = null
  return withStatements(db, {
    all: async (sql, params, next) => {
      if (sql.startsWith('select name from verso_hook where name = ? and lease = ?'))
        return [{ name: params?.[0] ?? null }]
      const rows = await next()
      const isState = sql.startsWith('select h.name, h.position, h.lease')
      return isState ? rows.map((row) => ({ ...row, lease: own })) : rows
    },
    run:
      (tx) =>
      async (sql, params = []) => {
        if (!sql.endsWith(FREE)) return tx.run(sql, params)
        own = params[0] ?? null
        return tx.run(sql.replace(FREE, ''), params.slice(0, -1))
      },
  })
}

/** Does not let later Changes of a record wait behind a failed one. */
export function forgetsOrder(db: Database): Database {
  return withStatements(db, {
    all: async (sql, _, next) => (sql.startsWith(READS_WAITING_RECORDS) ? [] : next()),
  })
}

/** Stores no failed Change, so the position stays before it. */
export function stopsAtFailure(db: Database): Database {
  return withStatements(db, {
    run: (tx) => async (sql, params) => {
      if (sql.startsWith('insert into verso_hook_job')) throw new Error('the mutant stores no job')
      return tx.run(sql, params)
    },
  })
}

/** Runs a schedule although another node runs it, or has run it. */
export function ignoresScheduleLease(db: Database): Database {
  const CONDITION = ' and next_ms = ? and (lease is null or leased_until_ms <= ?)'
  return withStatements(db, {
    all: async (sql, _, next) => {
      const rows = await next()
      return sql.includes('from verso_schedule') ? rows.map((row) => ({ ...row, lease: null })) : rows
    },
    run:
      (tx) =>
      async (sql, params = []) =>
        sql.endsWith(CONDITION)
          ? tx.run(sql.replace(CONDITION, ''), params.slice(0, 3))
          : tx.run(sql, params),
  })
}

/** Makes up for each missed run of a schedule. */
export function makesUpEachRun(db: Database): Database {
  const NEXT = 'set next_ms = ?, last_ms'
  return withStatements(db, {
    run:
      (tx) =>
      async (sql, params = []) =>
        sql.includes(NEXT)
          ? tx.run(sql.replace(NEXT, 'set next_ms = next_ms + interval_ms, last_ms'), params.slice(1))
          : tx.run(sql, params),
  })
}

/** Renews all leases of a node, also those that it has no work for. */
export function renewsAllLeases(db: Database): Database {
  const NAMES = / and name in \(.*\)$/s
  return withStatements(db, {
    run:
      (tx) =>
      async (sql, params = []) =>
        sql.startsWith('update verso_hook set leased_until_ms')
          ? tx.run(sql.replace(NAMES, ''), params.slice(0, 2))
          : tx.run(sql, params),
  })
}
