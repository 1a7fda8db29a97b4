// The statements of the default page, compiled once for each Select and limit.
import type { Model } from '../../model/definition/model.js'
import type { Search } from '../../model/query/search.js'
import { COUNT_TABLE, buildNotArchivedSql, TOTAL_LEVEL } from '../counters/counted-fields.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { compileLimit } from '../sql/parameters.js'
import { compileOffsetLookup, SMALLEST_BLOCK_IDS } from './offset-lookup.js'
import type { DefaultPageSql, PageStatements } from '../sql/point-read.js'
import type { Select } from '../sql/select.js'
import type { Table } from '../sql/table.js'

/** Scanning this many rows is faster than an offset lookup. */
export const MAX_SCANNED_ROWS = 256

const LIMIT = compileLimit()
const OVERSIZE_COUNT = ', count(*) - count("text") as "$heavy"'

/** True if the search finds all records of the model that are not archived, in the default order. */
export function isDefaultPage(
  { model, historicalRows }: Table,
  { where, visible, sort, archived }: Search,
): boolean {
  return !where && !visible && sort.length === 0 && !historicalRows && !(archived && model.archived)
}

export function getDefaultPageSql(table: Table, select: Select, limit: number): DefaultPageSql {
  const bound = table.dialect.needsLiteralLimit ? roundUpLimit(limit) : Infinity
  const cached = select.defaultPages.get(bound)
  if (cached) return cached
  const compiled = compileDefaultPage(table, select, bound)
  select.defaultPages.set(bound, compiled)
  return compiled
}

/** Few different limits, so that few statements are prepared. */
function roundUpLimit(limit: number): number {
  return 50 * 10 ** Math.max(0, Math.ceil(Math.log10(limit / 50)))
}

function compileDefaultPage({ name, model, dialect }: Table, select: Select, bound: number): DefaultPageSql {
  const totals = `${compileTotal(model)} as "$total", ${LAST_SEQ_SQL} as "$seq"`
  const offsetLookup = compileOffsetLookup(model, dialect)
  const page = `order by t."id" ${LIMIT}`
  const from = (where: string, extraRows: number) =>
    bound === Infinity
      ? `from ${name} as t${where}`
      : `from (select * from ${name} as t${where} order by t."id" limit ${bound + extraRows}) as t`
  const unarchived = buildNotArchivedSql(model)
  const afterId = `${from(` where t."id" > ? and ${unarchived}`, 1)} ${page}`
  const compile = (
    compileSelect: (from: string, extraColumn?: string) => string,
    afterIdColumn?: string,
  ): PageStatements => ({
    byOffset: compileSelect(`${from('', MAX_SCANNED_ROWS)} ${page} offset ?`),
    fromId: compileSelect(
      `${from(` where t."id" >= ? and ${unarchived}`, SMALLEST_BLOCK_IDS)} ${page} offset ?`,
    ),
    byOffsetLookup:
      offsetLookup.with +
      compileSelect(
        `${from(` where t."id" >= ${offsetLookup.id} and ${unarchived}`, SMALLEST_BLOCK_IDS)} ${page} offset ? - ${offsetLookup.before}`,
      ),
    afterId: compileSelect(afterId, afterIdColumn),
    count: `select ${totals}`,
  })
  const text = select.json?.text.sql
  const selectJson =
    (recordJson: string, aggregates: string) =>
    (from: string, extraColumn = '') =>
      `select ${totals}${extraColumn}, "whole".* from (` +
      `select ${dialect.joinJson('"text"', '"id"')} as "$page", max("id") as "$last"${aggregates} ` +
      `from (select t."id" as "id", ${recordJson} as "text" ${from}) as "page") as "whole"`
  const more = `, (select 1 ${afterId.replace(LIMIT, 'limit 1 offset ?')}) as "$more"`
  const selectSize = (from: string) =>
    `select sum("bytes") as "$bytes" from (select ${select.sizeSql.storedBytes.sql} as "bytes" ${from}) as "page"`
  const selectJsonWithinShare = () =>
    selectJson(`case when ${select.sizeSql.estimatedBytes.sql} <= ? then ${String(text)} end`, OVERSIZE_COUNT)
  let size: PageStatements | undefined
  let jsonWithinShare: PageStatements | undefined
  return {
    rows: compile((from) => `select ${totals}, ${select.columns} ${from}`),
    json: text === undefined ? undefined : compile(selectJson(text, ''), more),
    get jsonWithinShare() {
      return text === undefined ? undefined : (jsonWithinShare ??= compile(selectJsonWithinShare(), more))
    },
    get size() {
      return (size ??= compile(selectSize))
    },
  }
}

/** The number of records of the model that are not archived, as an expression. */
export function compileTotal({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${TOTAL_LEVEL} and block = 0), 0)`
}
