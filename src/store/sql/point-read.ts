// The statements that a Select keeps. Reads the row of one record by its id; concurrent reads with the same statement are batched.
import type { Criteria } from '../../model/query/criteria.js'
import { compilePredicate } from './criteria.js'
import type { BatchWork, Dialect, Queryable, Row, SqlValue } from '../engine/database.js'
import type { SqlFragment } from './parameters.js'

/** A statement that reads records by id. Its rows contain the id. */
export interface PointRead {
  readonly dialect: Dialect
  /** The text up to the comparison with the id. */
  readonly upToId: string
  /** The whole statement for one id. */
  readonly byId: string
  /** The parameters before the id. */
  readonly params: readonly SqlValue[]
}

/** `columns` are those of the table `t`. */
export function compilePointRead(dialect: Dialect, table: string, columns: SqlFragment): PointRead {
  const upToId = `select ${columns.sql} from ${table} as t where t."id"`
  return { dialect, upToId, byId: `${upToId} = ?`, params: columns.params }
}

/** Permits records or pages up to a size. */
export interface ByteLimit {
  /** The size of a record `t`. */
  readonly size: SqlFragment
  readonly maxBytes: number
}

/** Excluded records are treated as if they did not exist. */
export interface ReadFilter {
  /** The records that the user may read. */
  readonly visible?: Criteria | undefined
  /** The records up to this size. */
  readonly within?: ByteLimit
}

export async function readRow(
  db: Queryable,
  id: number,
  read: PointRead,
  filter?: ReadFilter,
): Promise<Row | undefined> {
  return db.batch(new FilteredRead(read, filter), id)
}

/** Reads rows in the order of the ids; undefined for a row that does not exist or that the filter excludes. */
export async function readRows(
  db: Queryable,
  ids: readonly number[],
  read: PointRead,
  filter?: ReadFilter,
): Promise<(Row | undefined)[]> {
  return new FilteredRead(read, filter).runMany(db, ids)
}

/** A read with further conditions after the id. */
class FilteredRead implements BatchWork<Queryable, number, Row | undefined> {
  readonly #and: string
  readonly #after: readonly SqlValue[] | undefined

  constructor(
    private readonly read: PointRead,
    { visible, within }: ReadFilter = {},
  ) {
    let and = ''
    let after: SqlValue[] | undefined
    if (visible) {
      const { sql, params } = compilePredicate(read.dialect, visible)
      and += ` and ${sql}`
      after = [...params]
    }
    if (within) {
      const { size, maxBytes } = within
      and += ` and ${size.sql} <= ?`
      after = [...(after ?? []), ...size.params, maxBytes]
    }
    this.#and = and
    this.#after = after
  }

  get key(): string {
    const { byId, params } = this.read
    const after = this.#after ?? []
    return params.length + after.length === 0 ? byId : JSON.stringify([byId + this.#and, params, after])
  }

  async runOne(db: Queryable, id: number): Promise<Row | undefined> {
    const { byId, params } = this.read
    const [row] = this.#after
      ? await db.all(byId + this.#and, [...params, id, ...this.#after])
      : await db.all(byId, [...params, id])
    return row
  }

  async runMany(db: Queryable, ids: readonly number[]): Promise<(Row | undefined)[]> {
    const [first] = ids
    if (first !== undefined && ids.length === 1) return [await this.runOne(db, first)]
    const { dialect, upToId, params } = this.read
    const sql = `${upToId} in (${dialect.json.unnest('integer')})${this.#and}`
    const rows = await db.all(sql, [...params, JSON.stringify(ids), ...(this.#after ?? [])])
    const byId = new Map(rows.map((row) => [row['id'], row]))
    return ids.map((id) => byId.get(id))
  }
}

/** The ways to read a default page. See find/default-page.ts. */
export interface PageStatements {
  /** Parameters: those of the select, limit, offset. */
  readonly byOffset: string
  /** Starts at an id. Parameters: those of the select, id, limit, number of rows to skip from there. */
  readonly fromId: string
  /** Includes the offset lookup. Parameters: the offset for each level, those of the select, limit, offset. */
  readonly byOffsetLookup: string
  /** Starts after an id. Parameters: those of the select, id, limit. For rows the limit is one more than the page, to see if others follow. */
  readonly afterId: string
  /** Only the total and the sequence number; no parameters. */
  readonly count: string
}

/** All statements of the default page for one Select. */
export interface DefaultPageSql {
  readonly rows: PageStatements
  /**
   * One row with the JSON text of the page and its last id; undefined if the database cannot print the records. `afterId` also selects `$more`
   * if others follow, so its parameters start with the id and the limit.
   */
  readonly json: PageStatements | undefined
  /** Like `json` without records larger than a share, which `$heavy` counts. The share follows the parameters of the size. */
  readonly jsonWithinShare: PageStatements | undefined
  /** One row with the size of the page in bytes. */
  readonly size: PageStatements
}
