// Mutants of the size limit of answers.
import type { Model } from '../../src/model/definition/model.js'
import type { App } from '../../src/service/context/app.js'
import type { Database, Queryable, Reader } from '../../src/store/engine/database.js'
import { Tables, type Table } from '../../src/store/sql/table.js'
import { searchingBy, withoutSnapshots } from '../query-pool.js'
import { faceOf } from './records.js'
import { changedReader, unshared, unsharedTransaction } from '../queryables.js'

/** Writes of others between the measurement of a large page and its read. */
export const betweenStatements: { run: (() => Promise<void>) | undefined } = { run: undefined }

const PART = /^select .* in \(select "value"/

/** Runs writes while a large page is read. The mutant reads the parts without a snapshot. */
export function withoutPageSnapshots(isBroken: boolean): (db: Database) => Database {
  return (db) => {
    const interrupted = (queryable: Queryable): Reader =>
      unshared({
        all: async (sql, params) => {
          if (PART.test(sql)) await betweenStatements.run?.()
          return queryable.all(sql, params)
        },
      })
    const queryPool = isBroken ? withoutSnapshots(db.queryPool) : db.queryPool
    return { ...faceOf(db), queryPool: searchingBy(queryPool, interrupted) }
  }
}

/** Changes the statements of reads. */
function rewriting(db: Database, rewrite: (sql: string) => string): Database {
  const rewritten =
    (queryable: Queryable): Queryable['all'] =>
    (sql, params) =>
      queryable.all(rewrite(sql), params)
  return {
    ...faceOf(db),
    reader: changedReader(db.reader, rewritten(db.reader)),
    queryPool: searchingBy(db.queryPool, (each) => unshared({ all: rewritten(each) })),
  }
}

/** Measures every value as 0 bytes. */
export function unweighed(db: Database): Database {
  return rewriting(db, weightless)
}

function weightless(sql: string): string {
  return sql.replaceAll('octet_length(', '0 * octet_length(')
}

/** Hides that a page omitted a record while `isBroken` returns true. */
export function withoutHeavy(db: Database, isBroken: () => boolean): Database {
  return rewriting(db, (sql) => (isBroken() ? sql.replaceAll('count(*) - count("text")', '0') : sql))
}

/** Measures all members of a list, without a limit, while `isBroken` returns true. */
export function membersWithoutEnd(db: Database, isBroken: () => boolean): Database {
  return rewriting(db, (sql) => (isBroken() ? sql.replaceAll(' limit 1001) as w', ') as w') : sql))
}

/** Measures the values that a write reads for its answer as 0 bytes. */
export function unweighedWrites(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work(
            unsharedTransaction({
              all: (sql, params) => tx.all(weightless(sql), params),
              run: (sql, params) => tx.run(sql, params),
              insert: (sql, params) => tx.insert(sql, params),
            }),
          ),
        options,
      ),
  }
}

/** Reads a written record with the names of its list members. */
export function withMemberNames(app: App): App {
  class NamingTables extends Tables {
    override of(model: Model): Table {
      const table = super.of(model)
      return { ...table, own: table.full }
    }
  }
  const { dialect, catalog, formerFields } = app.tables
  return { ...app, tables: new NamingTables(dialect, catalog, formerFields) }
}
