// A store whose start takes locks on tables that others write.
import type { Database } from '../src/store/database.js'

const INDEXES = [
  'create index if not exists verso_log_at on verso_log (at_ms)',
  'create index if not exists verso_session_user on verso_session (user_id)',
  'create index if not exists verso_webhook_delivery_of on verso_webhook_delivery (webhook, id)',
  'create index if not exists verso_idempotency_created on verso_idempotency (created_ms)',
]

/** Before its first read it makes sure of the indexes of the internal tables, in one transaction. */
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
    searcher: db.searcher,
    contents: db.contents,
    commits: db.commits,
    writability: () => db.writability(),
    reader: {
      all: async (sql, params) => {
        await (made ??= make())
        return db.reader.all(sql, params)
      },
    },
    transaction: (work, options) => db.transaction(work, options),
    close: () => db.close(),
  }
}
