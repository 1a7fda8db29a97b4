// A Selection → the columns of a select, and rows → records. Neighbours come as JSON made by the database: one statement whatever
// is shown, of one moment, without a join for each relation.
import { VersoError } from '../../errors.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { spansManyRelations, type Criteria, type PathStep } from '../../model/query/criteria.js'
import { isReference } from '../../model/definition/model.js'
import type { SelectionEntry, RelatedSelection, Selection } from '../../model/query/selection.js'
import type { Json, Value } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { parseStoredJson } from '../engine/database-condition.js'
import { SqlScope } from './criteria.js'
import type { Dialect, Row, SqlValue } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { compileSortKeys, compileOrderBy } from './order.js'
import { compilePointRead, type PointRead } from './point-read.js'
import { compileJsonSelect, type JsonSelect } from './json-text.js'
import { getMaxMembers } from './relation.js'
import { computeMaxBytes, compileSizeSql, type RecordSizeSql } from './byte-size.js'

export interface Select extends PointRead {
  /** Of a table that is called `t`. */
  readonly columns: string
  /** Whether what is hidden in it is found out at neighbours. */
  readonly hasRelatedConditions: boolean
  toRecord(row: Row): WireRecord
  /** The record as the text of its JSON, where the database can print it. */
  readonly json: JsonSelect | undefined
  /** The most bytes that the values of a record can take. */
  readonly maxBytes: number
  /** How many they take. */
  readonly sizeSql: RecordSizeSql
}

type ValueDecoder = (stored: SqlValue | Json) => Value

/** What stands in the place of a value that is not shown: its key is left out. */
const HIDDEN = Symbol('hidden')

interface SelectColumn {
  readonly key: string
  readonly sql: string
  readonly decode: (stored: SqlValue | Json) => Value | typeof HIDDEN
}

/** What is the same wherever a record or a neighbour stands in a statement. */
interface SelectContext {
  readonly scope: SqlScope
  readonly depth: number
  /** In how many lists. */
  readonly listDepth: number
  /** Inside of JSON. */
  readonly isNested: boolean
}

export function compileSelection(dialect: Dialect, selection: Selection): Select {
  const scope = new SqlScope(dialect)
  const parts = selection.entries.map((entry) =>
    compileEntry(entry, { scope, depth: 1, listDepth: 0, isNested: false }),
  )
  const columns = parts.map((part, index) => `, ${part.sql} as "c${index}"`).join('')
  const { sql, params } = scope.render(columns)
  const allColumns = `t."id" as "id", t."version" as "version"${sql}`
  let printed: { readonly whole: JsonSelect | undefined } | undefined
  let weight: RecordSizeSql | undefined
  return {
    columns: allColumns,
    ...compilePointRead(allColumns, quoteIdentifier(toTableName(selection.model.name)), params),
    hasRelatedConditions: collectConditions(selection).some(spansManyRelations),
    toRecord: (row) => {
      const record: Record<string, Value> & { id: number; version: number } = {
        id: Number(row['id']),
        version: Number(row['version']),
      }
      parts.forEach(({ key, decode }, index) => {
        const value = decode(row[`c${index}`] ?? null)
        const isShown = value === true || !selection.entries[index]?.onlyIfTrue
        if (value !== HIDDEN && isShown) record[key] = value
      })
      return record
    },
    // Many are never printed.
    get json() {
      printed ??= { whole: compileJsonSelect(dialect, selection) }
      return printed.whole
    },
    maxBytes: computeMaxBytes(selection),
    get sizeSql() {
      return (weight ??= compileSizeSql(dialect, selection))
    },
  }
}

/** Those that decide what of it is shown. */
function collectConditions({ entries }: Selection): Criteria[] {
  return entries.flatMap(({ steps, mask, related }) => {
    const order = related?.order ?? []
    const taken = [...steps, ...(related ? [related.step] : []), ...order.flatMap((key) => key.steps)]
    const masks = [mask, ...order.map((key) => key.mask)]
    const own = [...masks, ...taken.flatMap((step) => [step.mask, step.seen])]
    return [
      ...own.filter((each) => each !== undefined),
      ...(related ? collectConditions(related.selection) : []),
    ]
  })
}

function compileEntry(
  { key, steps, field, related, mask }: SelectionEntry,
  context: SelectContext,
): SelectColumn {
  const { scope, isNested } = context
  const [step, ...rest] = steps
  if (step) {
    const { inner, from, where } = enterRelation(step, context)
    const part = compileEntry(
      { key, steps: rest, field, ...(related ? { related } : {}), ...(mask ? { mask } : {}) },
      inner,
    )
    // At the end of a path what is hidden is as if the path led nowhere.
    const decode: ValueDecoder = (stored) => {
      const value = stored === null ? null : part.decode(stored)
      return value === HIDDEN ? null : value
    }
    return { key, sql: `(select ${part.sql} from ${from} where ${where})`, decode }
  }
  if (related) return compileRelated(key, related, context)
  const column = `${scope.alias}.${quoteIdentifier(field.name)}`
  const { dialect } = scope
  const storage = getStorage(field)
  const part: SelectColumn = {
    key,
    sql: isNested || mask ? dialect.json.value(column, storage) : column,
    decode: createDecoder(dialect, field),
  }
  return mask ? maskColumn(part, scope.compilePermission(mask), context) : part
}

/** The part as the only member of a list, which is missing where it is hidden: an empty value and none at all are not the same. */
function maskColumn(
  { key, sql, decode }: SelectColumn,
  condition: string,
  { scope, isNested }: SelectContext,
): SelectColumn {
  const { json } = scope.dialect
  const list = `case when ${condition} then ${json.array([sql])} end`
  return {
    key,
    sql: isNested ? json.asJson(list) : list,
    decode: (stored) => {
      const items = parseArray(stored)
      return items ? decode(items[0] ?? null) : HIDDEN
    },
  }
}

interface RelatedSource {
  readonly inner: SelectContext
  readonly from: string
  readonly where: string
}

function enterRelation(step: PathStep, context: SelectContext): RelatedSource {
  const { scope, depth } = context
  const inner = { ...context, scope: scope.withAlias(`r${depth}`), depth: depth + 1 }
  return { inner, ...scope.compileRelation(step, inner.scope.alias) }
}

function compileRelated(
  key: string,
  { step, selection, order = [] }: RelatedSelection,
  context: SelectContext,
): SelectColumn {
  const { listDepth, isNested, scope } = context
  const { dialect } = scope
  const isList = step.field.relation?.isList === true
  const { inner: stepped, from, where } = enterRelation(step, context)
  const inner = { ...stepped, listDepth: listDepth + (isList ? 1 : 0), isNested: true }
  const parts = selection.entries.map((entry) => compileEntry(entry, inner))
  const id = inner.scope.alias
  const keys = selection.versionKeys.length > 0 ? ['id', 'version'] : ['id']
  const array = dialect.json.array([...keys.map((key) => `${id}."${key}"`), ...parts.map((part) => part.sql)])
  const decode = createRelatedDecoder(selection, parts)
  const nest = (sql: string) => (isNested ? dialect.json.asJson(sql) : sql)
  if (!isList) {
    const sql = `(select ${array} from ${from} where ${where})`
    if (step.seen || step.mask) return compileVisibleReference(key, sql, decode, step, context)
    return { key, sql: nest(sql), decode: (stored) => decode(parseArray(stored)) }
  }
  const name = `${step.from.name}.${step.field.name}`
  const maxMembers = getMaxMembers(step.field, listDepth)
  if (maxMembers === 0)
    throw new VersoError(
      'bad-request',
      `${name} is a list in a list in a list: search ${step.target.name} instead`,
    )
  const by = compileOrderBy(compileSortKeys(inner.scope, order), `${id}."id"`)
  const joins = inner.scope.joins === '' ? '' : `${inner.scope.joins} `
  const end = `order by ${by}${maxMembers === Infinity ? '' : ` limit ${maxMembers + 1}`}`
  const list = dialect.json.aggregate(array, `from ${from} ${joins}where ${where} ${end}`)
  const part: SelectColumn = {
    key,
    sql: step.mask ? list : nest(list),
    decode: (stored) => {
      const items = parseArray(stored) ?? []
      if (items.length > maxMembers)
        throw new VersoError(
          'bad-request',
          `${name} has more than ${maxMembers} members: search ${step.target.name} instead`,
        )
      return items.map((item) => decode(item as Json[]))
    },
  }
  if (!step.mask) return part
  return maskColumn({ ...part, sql: dialect.json.asJson(list) }, scope.compilePermission(step.mask), context)
}

/** A reference to what may not be seen is left out, as a hidden field is: sent back without it, it stays. One to nothing is null. */
function compileVisibleReference(
  key: string,
  subselect: string,
  decode: ReturnType<typeof createRelatedDecoder>,
  { field, mask }: PathStep,
  { scope, isNested }: SelectContext,
): SelectColumn {
  const { json } = scope.dialect
  const isEmpty = isReference(field)
    ? `case when ${scope.alias}.${quoteIdentifier(field.name)} is null then 1 else 0 end`
    : '1'
  const pair = json.array([json.asJson(subselect), isEmpty])
  const sql = mask ? `case when ${scope.compilePermission(mask)} then ${pair} end` : pair
  return {
    key,
    sql: isNested ? json.asJson(sql) : sql,
    decode: (stored) => {
      const [neighbour = null, isNothing] = parseArray(stored) ?? []
      if (neighbour !== null) return decode(parseArray(neighbour))
      return Number(isNothing) === 1 ? null : HIDDEN
    },
  }
}

function createRelatedDecoder(
  { versionKeys }: Selection,
  parts: readonly SelectColumn[],
): (items: readonly Json[] | null) => Value {
  const first = versionKeys.length > 0 ? 2 : 1
  return (items) => {
    if (!items) return null
    const record: Record<string, Value> = { id: Number(items[0]) }
    for (const key of versionKeys) record[key] = Number(items[1])
    parts.forEach(({ key, decode }, index) => {
      const value = decode(items[first + index] ?? null)
      if (value !== HIDDEN) record[key] = value
    })
    return record
  }
}

/** At the top JSON comes as text; inside of JSON it is parsed already. */
function parseArray(stored: SqlValue | Json): readonly Json[] | null {
  const value = typeof stored === 'string' ? (parseStoredJson(stored) as Json) : stored
  return Array.isArray(value) ? value : null
}

function createDecoder(dialect: Dialect, field: Field): ValueDecoder {
  const storage = getStorage(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  const { decode } = dialect.columns[storage]
  if (field.type !== 'decimal') return (stored) => decode(stored as SqlValue)
  return (stored) => {
    const value = decode(stored as SqlValue)
    return value === null ? null : padScale(value as string, field.scale)
  }
}

function padScale(decimal: string, scale: number): string {
  const [integer = '', fraction = ''] = decimal.split('.')
  return scale === 0 ? integer : `${integer}.${fraction.padEnd(scale, '0')}`
}
