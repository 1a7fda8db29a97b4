// The statements of a default page, which a Select keeps. See find/default-page.ts.

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
