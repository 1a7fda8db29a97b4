// Mutants of damage detection: they report a damaged database as busy, failing or full.
import { VersoError } from '../../src/errors.js'
import type { Database, Queryable, Reader } from '../../src/store/engine/database.js'
import { findUnwritable } from '../../src/store/engine/write-health.js'
import { searchingBy } from '../query-pool.js'
import { faceOf } from './records.js'
import { unshared } from '../queryables.js'

/** Passes SQLITE_CORRUPT on without a kind and does not remember it. Writes use their own connection. */
export function withoutCorrupt(db: Database, writer: Database): Database {
  const bare = (inner: Queryable): Reader =>
    unshared({
      all: (sql, params) => inner.all(sql, params).catch(unclassified),
    })
  return {
    ...faceOf(db),
    reader: bare(db.reader),
    queryPool: searchingBy(db.queryPool, bare),
    transaction: (work, options) => writer.transaction(work, options).catch(unclassified),
    writability: async () => Promise.resolve(undefined),
    close: async () => {
      await writer.close()
      await db.close()
    },
  }
}

function unclassified(error: unknown): never {
  throw error instanceof VersoError && findUnwritable(error) !== undefined ? error.cause : error
}
