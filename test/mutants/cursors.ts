// Mutants of paging with cursors. Each omits one thing, and the tests of cursors must catch it.
import type { Database } from '../../src/store/engine/database.js'
import type { Page, Records } from '../../src/wire.js'
import { searching } from './records.js'

const ID = 't."id" > ?'

/** Mutants that continue after the wrong record, by their defect. Only the SQL of a page after a cursor has parts. */
export const WRONG_CURSORS: Readonly<Record<string, (db: Database) => Database>> = {
  'that ignore the id': behind((sql) => sql.replaceAll(ID, `(${ID} and 1 = 0)`)),
  'that repeat the last record of the page before': behind((sql) => sql.replaceAll(ID, 't."id" >= ?')),
  'that lose records without a value': behind((sql) =>
    sql
      .replaceAll(' is null order by', ' is null and 1 = 0 order by')
      .replaceAll(' is null or (', ' is null and 1 = 0 or ('),
  ),
  'that lose records with later values': behind((sql) =>
    sql.replace(/"part1" as materialized \((.*?) order by/, '"part1" as materialized ($1 and 1 = 0 order by'),
  ),
  'that go in the opposite direction': behind((sql) =>
    sql.replace(
      /("part1" as materialized \(.*? )([<>]) \?( order by)/,
      (_, before, sign, after) => `${String(before)}${sign === '<' ? '>' : '<'} ?${String(after)}`,
    ),
  ),
}

function behind(change: (sql: string) => string): (db: Database) => Database {
  return searching((sql) => (sql.includes('"part0"') ? change(sql) : sql))
}

/** Continues by offset, which concurrent writes shift. */
export function byOffsetOnly(records: Records): Records {
  const find = async (...asked: Parameters<Records['find']>): Promise<Page> => {
    const { next, ...page } = await records.find(...asked)
    return { ...page, next: next && { offset: next.offset } }
  }
  return { ...records, find }
}
