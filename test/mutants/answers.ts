// Mutants of the size limit of answers.
import type { Model } from '../../src/model/definition/model.js'
import type { App } from '../../src/service/context/app.js'
import type { Database, Queryable } from '../../src/store/engine/database.js'
import { Tables, type Table } from '../../src/store/sql/table.js'
import { searchingBy, withoutSnapshots } from '../query-pool.js'
import { faceOf } from './records.js'

/** What others do after a large page was measured, and before it is read. */
export const betweenStatements: { run: (() => Promise<void>) | undefined } = { run: undefined }

const PART = /^select .* in \(select "value"/

/** Others write while a large page is read. The broken one reads its parts one by one, each as it is by then. */
export function withoutPageSnapshots(isBroken: boolean): (db: Database) => Database {
  return (db) => {
    const interrupted = (queryable: Queryable): Queryable => ({
      all: async (sql, params) => {
        if (PART.test(sql)) await betweenStatements.run?.()
        return queryable.all(sql, params)
      },
    })
    const queryPool = isBroken ? withoutSnapshots(db.queryPool) : db.queryPool
    return { ...faceOf(db), queryPool: searchingBy(queryPool, interrupted) }
  }
}

/** Reads run other statements. */
function rewriting(db: Database, rewrite: (sql: string) => string): Database {
  const rewritten = (queryable: Queryable): Queryable => ({
    ...queryable,
    all: (sql, params) => queryable.all(rewrite(sql), params),
  })
  return { ...faceOf(db), reader: rewritten(db.reader), queryPool: searchingBy(db.queryPool, rewritten) }
}

/** No value weighs anything. */
export function unweighed(db: Database): Database {
  return rewriting(db, weightless)
}

function weightless(sql: string): string {
  return sql.replaceAll('octet_length(', '0 * octet_length(')
}

/** No page says that it left out a record, as long as `isBroken` says so. */
export function withoutHeavy(db: Database, isBroken: () => boolean): Database {
  return rewriting(db, (sql) => (isBroken() ? sql.replaceAll('count(*) - count("text")', '0') : sql))
}

/** All members of a list are weighed, however many there are, as long as `isBroken` says so. */
export function membersWithoutEnd(db: Database, isBroken: () => boolean): Database {
  return rewriting(db, (sql) => (isBroken() ? sql.replaceAll(' limit 1001) as w', ') as w') : sql))
}

/** No value that a write reads for its answer weighs anything. */
export function unweighedWrites(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work({
            all: (sql, params) => tx.all(weightless(sql), params),
            run: (sql, params) => tx.run(sql, params),
            insert: (sql, params) => tx.insert(sql, params),
          }),
        options,
      ),
  }
}

/** A write reads its record as an answer shows it, with the names of the members of its lists. */
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
