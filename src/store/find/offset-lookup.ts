// Finds the record at an offset with the counters of blocks: from the largest blocks down to the smallest, each within the block above it.
// If no record has the offset, there is no block and no page.
import type { Model } from '../../model/definition/model.js'
import { parseStoredJson } from '../engine/write-health.js'
import { BLOCK_LEVELS, COUNT_TABLE } from '../counters/counted-fields.js'
import type { Dialect, Row, SqlValue } from '../engine/database.js'

const LEVELS_TOP_DOWN = [...BLOCK_LEVELS].reverse()
const [SMALLEST_LEVEL] = BLOCK_LEVELS
/** The number of ids in the smallest block. */
export const SMALLEST_BLOCK_IDS = 2 ** SMALLEST_LEVEL

/** The start of a page: the first id of a block, and the number of records to skip from there. */
export interface PageStart {
  readonly id: number
  readonly skip: number
}

type ReadAll = (sql: string, params: readonly SqlValue[]) => readonly Row[]

/** Runs one statement for each level, which must be cheap and read from one snapshot. */
export function findPageStart(all: ReadAll, { name }: Model, offset: number): PageStart | undefined {
  let [from, to, skip] = [0, Number.MAX_SAFE_INTEGER, offset]
  for (const [index, level] of LEVELS_TOP_DOWN.entries()) {
    const [row] = all(BLOCKS_SQL, [name, level, from, to])
    let block: number | undefined
    for (const [each, count] of parseStoredJson(row?.['blocks']) as [block: number, count: number][]) {
      if (count > skip) {
        block = each
        break
      }
      skip -= count
    }
    if (block === undefined) return undefined
    const factor = 2 ** (level - (LEVELS_TOP_DOWN[index + 1] ?? 0))
    from = block * factor
    to = from + factor
  }
  return { id: from, skip }
}

/** The blocks of a range with their counts, as one row, because rows are expensive. */
const BLOCKS_SQL =
  `select json_group_array(json_array(block, n)) as "blocks" from (select block, n from ${COUNT_TABLE} ` +
  `where model = ? and level = ? and block >= ? and block < ? order by block)`

/** The lookup as part of one statement. Its parameters are the offset, once for each level. */
export function compileOffsetLookup({ name }: Model, dialect: Dialect) {
  const integer = dialect.columns.integer.type
  const blocks = LEVELS_TOP_DOWN.map((level, index) => {
    const above = LEVELS_TOP_DOWN[index - 1]
    const selectAbove = (column: string) => `(select ${column} from "block${String(above)}")`
    const factor = 2 ** ((above ?? level) - level)
    // Scalar subselects instead of a join: if the statistics say that the table is small, the planner would join in the wrong order.
    const [before, among] =
      above === undefined
        ? ['0', '']
        : [
            selectAbove('"before"'),
            ` and c.block >= ${selectAbove('block')} * ${factor} and c.block < (${selectAbove('block')} + 1) * ${factor}`,
          ]
    const sums =
      `select c.block, c.n, ${before} + cast(sum(c.n) over (order by c.block) as ${integer}) as "upto" ` +
      `from ${COUNT_TABLE} as c where c.model = '${name}' and c.level = ${level}${among}`
    return `"block${level}" as materialized (select block, "upto" - n as "before" from (${sums}) as s where "upto" > ? order by block limit 1)`
  })
  return {
    with: `with ${blocks.join(', ')} `,
    id: `(select block * ${SMALLEST_BLOCK_IDS} from "block${SMALLEST_LEVEL}")`,
    before: `coalesce((select "before" from "block${SMALLEST_LEVEL}"), 0)`,
    params: (offset: number): SqlValue[] => LEVELS_TOP_DOWN.map(() => offset),
  }
}
