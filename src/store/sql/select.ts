// Compiles a Selection to the columns of a select, and decodes rows to records. The database returns related records as JSON, so that one
// statement reads everything without a join for each relation.
import { VersoError } from '../../errors.js'
import { getStorage } from '../../model/values/field-types.js'
import { spansManyRelations, type Criteria, type PathStep } from '../../model/query/criteria.js'
import { isReference } from '../../model/definition/model.js'
import type { SelectionEntry, RelatedSelection, Selection } from '../../model/query/selection.js'
import type { Json, Value } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { parseStoredJson } from '../engine/write-health.js'
import { createDecoder, type ValueDecoder } from './column.js'
import { SqlScope } from './criteria.js'
import type { Dialect, Row, SqlValue } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { compileSortKeys, compileOrderBy } from './order.js'
import { compilePointRead, type DefaultPageSql, type PointRead } from './point-read.js'
import { compileJsonSelect, type JsonSelect } from './json-text.js'
import { getMaxMembers } from './relation.js'
import { computeMaxBytes, compileSizeSql, type RecordSizeSql } from './byte-size.js'

export interface Select extends PointRead {
  /** Columns of the table `t`. */
  readonly columns: string
  /** True if a condition that hides values reads related records. */
  readonly hasRelatedConditions: boolean
  toRecord(row: Row): WireRecord
  /** Selects the record as JSON text; undefined if the database cannot build it. */
  readonly json: JsonSelect | undefined
  /** The statements of its default page by limit, compiled on first use. */
  readonly defaultPages: Map<number, DefaultPageSql>
  /** The maximum size of a record. */
  readonly maxBytes: number
  /** The actual size of a record. */
  readonly sizeSql: RecordSizeSql
}

/** Stands for a hidden value, whose key is omitted from the record. */
const HIDDEN = Symbol('hidden')

interface SelectColumn {
  readonly key: string
  readonly sql: string
  readonly decode: (stored: SqlValue | Json) => Value | typeof HIDDEN
}

/** The position of a record in the nesting of the statement. */
interface SelectContext {
  readonly scope: SqlScope
  readonly depth: number
  /** The number of lists around the record. */
  readonly listDepth: number
  /** True inside JSON. */
  readonly isNested: boolean
}

export function compileSelection(dialect: Dialect, selection: Selection): Select {
  return new CompiledSelect(dialect, selection)
}

/** The SQL of the size is long and rarely needed, so it is compiled on first use. */
class CompiledSelect implements Select {
  readonly upToId: string
  readonly byId: string
  readonly params: readonly SqlValue[]
  readonly columns: string
  readonly hasRelatedConditions: boolean
  readonly maxBytes: number
  readonly json: JsonSelect | undefined
  readonly defaultPages = new Map<number, DefaultPageSql>()
  readonly #parts: readonly SelectColumn[]
  #sizeSql: RecordSizeSql | undefined

  constructor(
    readonly dialect: Dialect,
    private readonly selection: Selection,
  ) {
    const scope = new SqlScope(dialect)
    this.#parts = selection.entries.map((entry) =>
      compileEntry(entry, { scope, depth: 1, listDepth: 0, isNested: false }),
    )
    const valueColumns = this.#parts.map(({ sql }, index) => `, ${sql} as "c${index}"`).join('')
    const { sql, params } = scope.render(valueColumns)
    this.columns = `t."id" as "id", t."version" as "version"${sql}`
    const table = quoteIdentifier(toTableName(selection.model.name))
    const { upToId, byId } = compilePointRead(dialect, table, { sql: this.columns, params })
    this.upToId = upToId
    this.byId = byId
    this.params = params
    this.hasRelatedConditions = collectConditions(selection).some(spansManyRelations)
    this.maxBytes = computeMaxBytes(selection)
    this.json = compileJsonSelect(dialect, selection)
  }

  toRecord(row: Row): WireRecord {
    const record: Record<string, Value> & { id: number; version: number } = {
      id: Number(row['id']),
      version: Number(row['version']),
    }
    this.#parts.forEach(({ key, decode }, index) => {
      const value = decode(row[`c${index}`] ?? null)
      const isShown = value === true || !this.selection.entries[index]?.onlyIfTrue
      if (value !== HIDDEN && isShown) record[key] = value
    })
    return record
  }

  get sizeSql(): RecordSizeSql {
    return (this.#sizeSql ??= compileSizeSql(this.dialect, this.selection))
  }
}

/** All conditions that can hide values of the selection. */
function collectConditions({ entries }: Selection): Criteria[] {
  return entries.flatMap(({ steps, mask, related }) => {
    const order = related?.order ?? []
    const allSteps = [...steps, ...(related ? [related.step] : []), ...order.flatMap((key) => key.steps)]
    const masks = [mask, ...order.map((key) => key.mask)]
    const conditions = [...masks, ...allSteps.flatMap((step) => [step.mask, step.visible])]
    return [
      ...conditions.filter((each) => each !== undefined),
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
    // A hidden value at the end of a path is null, as if the path had no target.
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

/** Wraps the value in an array that is null if the value is hidden, to distinguish a hidden value from a null. */
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

/** A related record as a subselect that returns a JSON array. */
interface RelatedColumn {
  readonly key: string
  readonly sql: string
  readonly decode: (items: readonly Json[] | null) => Value
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
    if (step.visible || step.mask) return compileVisibleReference({ key, sql, decode }, step, context)
    return { key, sql: nest(sql), decode: (stored) => decode(parseArray(stored)) }
  }
  const name = `${step.from.name}.${step.field.name}`
  const maxMembers = getMaxMembers(step.field, listDepth)
  if (maxMembers === 0)
    throw new VersoError(
      'bad-request',
      `${name} is a list inside two other lists: search ${step.target.name} instead`,
    )
  const orderBy = compileOrderBy(compileSortKeys(inner.scope, order), `${id}."id"`)
  const joins = inner.scope.joins === '' ? '' : `${inner.scope.joins} `
  const end = `order by ${orderBy}${maxMembers === Infinity ? '' : ` limit ${maxMembers + 1}`}`
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

/**
 * Omits a reference to a record that the user may not read, like a hidden field, so that sending the record back does not clear it. An empty
 * reference is null.
 */
function compileVisibleReference(
  { key, sql: subselect, decode }: RelatedColumn,
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
      const [relatedRecord = null, isNull] = parseArray(stored) ?? []
      if (relatedRecord !== null) return decode(parseArray(relatedRecord))
      return Number(isNull) === 1 ? null : HIDDEN
    },
  }
}

function createRelatedDecoder(
  { versionKeys }: Selection,
  parts: readonly SelectColumn[],
): RelatedColumn['decode'] {
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

/** JSON of a column is text; inside other JSON it is parsed already. */
function parseArray(stored: SqlValue | Json): readonly Json[] | null {
  const value = typeof stored === 'string' ? (parseStoredJson(stored) as Json) : stored
  return Array.isArray(value) ? value : null
}
