// Mutants of the start: they lock tables that others write, or ignore the version of the internal tables.
import type { Database, Queryable, Reader, Transaction } from '../../src/store/engine/database.js'
import { unshared, unsharedTransaction } from '../queryables.js'

const INDEXES = [
  'create index if not exists verso_log_at on verso_log (at_ms)',
  'create index if not exists verso_session_user on verso_session (user_id)',
  'create index if not exists verso_webhook_delivery_of on verso_webhook_delivery (webhook, id)',
  'create index if not exists verso_idempotency_created on verso_idempotency (created_ms)',
]

/** Creates the indexes of the internal tables in one transaction before the first read. */
export function makesIndexesAtStart(db: Database): Database {
  let made: Promise<void> | undefined
  const make = async () =>
    db.transaction(
      async (tx) => {
        for (const create of INDEXES) await tx.run(create)
      },
      { isLong: true },
    )
  return {
    dialect: db.dialect,
    queryPool: db.queryPool,
    blobs: db.blobs,
    commits: db.commits,
    writability: () => db.writability(),
    gauges: () => db.gauges(),
    measure: () => db.measure(),
    reader: unshared({
      all: async (sql, params) => {
        await (made ??= make())
        return db.reader.all(sql, params)
      },
    }),
    transaction: (work, options) => db.transaction(work, options),
    close: () => db.close(),
  }
}

/** Ignores the version of the internal tables, like a program from before it existed. */
export function blindToVersion(db: Database): Database {
  const blind = (seeing: Queryable): Reader =>
    unshared({
      all: async (sql, params) => (params?.[0] === 'tables' ? [] : seeing.all(sql, params)),
    })
  const blindTransaction = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => blind(tx).all(sql, params),
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
    })
  return {
    dialect: db.dialect,
    queryPool: db.queryPool,
    blobs: db.blobs,
    commits: db.commits,
    writability: () => db.writability(),
    gauges: () => db.gauges(),
    measure: () => db.measure(),
    reader: blind(db.reader),
    transaction: (work, options) => db.transaction((tx) => work(blindTransaction(tx)), options),
    close: () => db.close(),
  }
}
