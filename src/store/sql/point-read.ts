// The statements that a Select keeps.
import type { Criteria } from '../../model/query/criteria.js'
import type { Dialect, SqlValue } from '../engine/database.js'
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
   * One row with the JSON text of the page and its last id; undefined if the database cannot build it. `afterId` also selects `$more`
   * if others follow, so its parameters start with the id and the limit.
   */
  readonly json: PageStatements | undefined
  /** Like `json` without records larger than a share, which `$heavy` counts. The share follows the parameters of the size. */
  readonly jsonWithinShare: PageStatements | undefined
  /** One row with the size of the page in bytes. */
  readonly size: PageStatements
}
