// What a page needs to know and no record tells: how many there are in all, and where the page begins. Where the counters know it,
// nothing has to be counted or walked over.
import type { Comparison, Criteria } from '../model/criteria.js'
import type { Field } from '../model/field.js'
import { isReference, type Model } from '../model/model.js'
import { ID } from '../model/path.js'
import type { Search } from '../model/search.js'
import {
  BLOCK_LEVELS,
  COUNT_TABLE,
  countedFields,
  counterKey,
  VALUE_COUNT_TABLE,
  visibleSql,
  WHOLE_LEVEL,
} from './counted-fields.js'
import type { Dialect, SqlValue } from './database.js'
import { LAST_SEQ } from './feed.js'
import type { Rendered } from './parameters.js'
import type { Select } from './select.js'
import type { Table } from './table.js'

/** Walking over so many rows is quicker than looking for the block, or for the ids first. */
export const WALKED = 256

/** A page by id of all that a find shows. Each text is made once for what it shows. */
interface Listing {
  /** Its parameters, behind those of what is shown: limit, offset. */
  readonly near: string
  /** The same: limit, offset, once for each time that the offset is needed. */
  readonly far: string
  /** Behind an id: that id, limit. */
  readonly behind: string
  readonly count: string
  /** The same pages as one text, where the database can print them. `behind` begins with its parameters once more. */
  readonly printed: Pick<Listing, 'near' | 'far' | 'behind'> | undefined
}

const LISTINGS = new WeakMap<Select, Listing>()

/** Whether a search is for all records of the model that are shown when nothing is asked. */
function isListing({ model, instead }: Table, { where, seen, sort, archived }: Search): boolean {
  return !where && !seen && sort.length === 0 && !instead && !(archived && model.archived)
}

/** The page and its count, where counters know all about them. */
export function listingOf(
  table: Table,
  select: Select,
  search: Search,
): { readonly page: Rendered; readonly count: Rendered } | undefined {
  if (!isListing(table, search)) return undefined
  const listing = textsOf(table, select)
  return {
    page: pageFrom(table, listing, select.params, search),
    count: { sql: listing.count, params: [] },
  }
}

/** The same page as one text, in one row that is there always. */
export function printedListingOf(table: Table, select: Select, search: Search): Rendered | undefined {
  if (!isListing(table, search) || !select.printed) return undefined
  const { printed } = textsOf(table, select)
  const { after, limit } = search
  if (!printed || !after) return printed && pageFrom(table, printed, select.printed.params, search)
  return { sql: printed.behind, params: [after.id, limit, ...select.printed.params, after.id, limit] }
}

function textsOf(table: Table, select: Select): Listing {
  const listing = LISTINGS.get(select) ?? makeListing(table, select)
  LISTINGS.set(select, listing)
  return listing
}

function pageFrom(
  { model }: Table,
  { near, far, behind }: Pick<Listing, 'near' | 'far' | 'behind'>,
  shown: readonly SqlValue[],
  { limit, offset, after }: Search,
): Rendered {
  // One more than is shown tells whether others follow.
  if (after) return { sql: behind, params: [...shown, after.id, limit + 1] }
  // Before the first visible record there may be any number of archived ones.
  if (offset < WALKED && !model.archived) return { sql: near, params: [...shown, limit, offset] }
  return { sql: far, params: [...BLOCK_LEVELS.map(() => offset), ...shown, limit, offset] }
}

function makeListing(table: Table, select: Select): Listing {
  const { name, model, dialect } = table
  const known = `${wholeOf(model)} as "$total", ${LAST_SEQ} as "$seq"`
  const [start] = BLOCK_LEVELS
  const first = `(select block * ${2 ** start} from "block${start}")`
  const blocks = `with ${blocksBefore(table)} `
  const near = `from ${name} as t order by t."id" limit ? offset ?`
  const far =
    `from ${name} as t where t."id" >= ${first} and ${visibleSql(model)} ` +
    `order by t."id" limit ? offset ? - coalesce((select "before" from "block${start}"), 0)`
  const behind = `from ${name} as t where t."id" > ? and ${visibleSql(model)} order by t."id" limit ?`
  const more = `(select 1 ${behind.replace('limit ?', 'limit 1 offset ?')}) as "$more"`
  const rows = (from: string) => `select ${known}, ${select.columns} ${from}`
  const printed = select.printed?.text.sql
  const text = (from: string, also = '') =>
    `select ${known}${also}, "whole"."text" as "$page", "whole"."last" as "$last" ` +
    `from (select ${dialect.joined('"text"', '"id"')} as "text", max("id") as "last" ` +
    `from (select t."id" as "id", ${printed} as "text" ${from}) as "page") as "whole"`
  return {
    ...{ near: rows(near), far: blocks + rows(far), behind: rows(behind), count: `select ${known}` },
    printed:
      printed === undefined
        ? undefined
        : { near: text(near), far: blocks + text(far), behind: text(behind, `, ${more}`) },
  }
}

function wholeOf({ name }: Model): string {
  return `coalesce((select n from ${COUNT_TABLE} where model = '${name}' and level = ${WHOLE_LEVEL} and block = 0), 0)`
}

/**
 * On each level the block in which the record at the offset stands, with the number of records before that block: from the largest
 * blocks to the smallest, each among those of the one above. Without such a record there is no block, and no page. Each is asked for once: joined,
 * PostgreSQL would look for the block above again and again as long as it does not know how many there are.
 */
function blocksBefore({ model: { name }, dialect }: Table): string {
  const integer = dialect.columns.integer.type
  const levels = [...BLOCK_LEVELS].reverse()
  const parts = levels.flatMap((level, index) => {
    const above = levels[index - 1]
    const factor = above === undefined ? 1 : 2 ** (above - level)
    const up = (what: string) => `(select ${what} from "block${above}")`
    const among =
      above === undefined
        ? { before: '0', where: '' }
        : {
            before: up('"before"'),
            where: ` and c.block >= ${up(`block * ${factor}`)} and c.block < ${up(`(block + 1) * ${factor}`)}`,
          }
    return [
      `"level${level}" as (select c.block, c.n, ${among.before} + cast(sum(c.n) over (order by c.block) as ${integer}) as "upto" ` +
        `from ${COUNT_TABLE} as c where c.model = '${name}' and c.level = ${level}${among.where})`,
      `"block${level}" as materialized (select block, "upto" - n as "before" from "level${level}" where "upto" > ? order by block limit 1)`,
    ]
  })
  return parts.join(', ')
}

/** How many records a search finds, as a select of one value, where counters know it. */
export function knownTotal(table: Table, search: Search): Rendered | undefined {
  const { model, dialect, instead } = table
  if (search.seen || instead || (search.archived && model.archived)) return undefined
  if (!search.where) return { sql: `select ${wholeOf(model)}`, params: [] }
  const asked = equalityIn(model, dialect, search.where)
  if (!asked) return undefined
  const of = `model = '${model.name}' and field = '${asked.field.name}' and value = ?`
  const sql = `select coalesce((select n from ${VALUE_COUNT_TABLE} where ${of}), 0)`
  return { sql, params: [asked.key] }
}

/** Whether a page looks at few records more than it shows, wherever it is in however large a table. */
export function isBounded(table: Table, search: Search): boolean {
  // Behind a position there may be any number of archived records.
  if (isListing(table, search)) return !search.after || !table.model.archived
  const isNear = search.after !== undefined || search.offset < WALKED
  if (search.sort.length > 0 || !isNear || table.model.archived) return false
  return search.where !== undefined && knownTotal(table, search) !== undefined
}

interface Equality {
  readonly field: Field
  readonly key: SqlValue
}

/** The one question whose answer counters know: which value a counted field of the record itself has. */
function equalityIn(model: Model, dialect: Dialect, where: Criteria): Equality | undefined {
  const comparison = soleComparison(where)
  const field = comparison && fieldAsked(comparison)
  if (!comparison || !field || !countedFields(model).includes(field)) return undefined
  if (comparison.operator === 'isNull') return { field, key: counterKey(dialect, field, null) }
  const [value = null] = comparison.values
  // Nothing equals null.
  if (comparison.operator !== '=' || value === null) return undefined
  return { field, key: counterKey(dialect, field, field.relation ? { id: value } : value) }
}

function soleComparison(criteria: Criteria): Comparison | undefined {
  if (criteria.kind === 'comparison') return criteria
  const [only, ...others] = criteria.kind === 'not' ? [] : criteria.criteria
  return only && others.length === 0 ? soleComparison(only) : undefined
}

/** The field of the record itself. A reference is compared as the id of its neighbour, which stands in the record. */
export function fieldAsked({
  steps,
  field,
  mask,
}: Pick<Comparison, 'steps' | 'field' | 'mask'>): Field | undefined {
  const [step, ...further] = steps
  if (mask || further.length > 0) return undefined
  if (!step) return field
  return field === ID && isReference(step.field) && !step.mask && !step.seen ? step.field : undefined
}
