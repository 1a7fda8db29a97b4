// A Selection → the columns of a select, and rows → records. Neighbours come as JSON made by the database: one statement whatever
// is shown, of one moment, without a join for each relation.
import { Refusal } from '../errors.js'
import { storageOf, type Field } from '../model/field.js'
import { isOwnedList } from '../model/model.js'
import type { Entry, Selection } from '../model/selection.js'
import type { Json, Value } from '../model/value.js'
import type { WireRecord } from '../wire.js'
import type { Dialect, Row, SqlValue } from './database.js'
import { quote } from './names.js'
import { neighbours } from './relation-sql.js'

/** How many neighbours a view shows; and a list inside of a list. */
const MAX_SHOWN = [1_000, 100] as const

export interface Select {
  /** Of a table that is called `t`. */
  readonly columns: string
  read(row: Row): WireRecord
}

type Decode = (stored: SqlValue | Json) => Value

interface Part {
  readonly key: string
  readonly sql: string
  readonly decode: Decode
}

export function compileSelection(dialect: Dialect, selection: Selection): Select {
  const parts = selection.entries.map((entry) => compileEntry(dialect, entry, 't', 1, 0, false))
  const columns = parts.map((part, index) => `, ${part.sql} as "c${index}"`).join('')
  return {
    columns: `t."id" as "id", t."version" as "version"${columns}`,
    read: (row) => {
      const record: Record<string, Value> & { id: number; version: number } = {
        id: Number(row['id']),
        version: Number(row['version']),
      }
      parts.forEach(({ key, decode }, index) => {
        const value = decode(row[`c${index}`] ?? null)
        if (value === true || !selection.entries[index]?.onlyIfTrue) record[key] = value
      })
      return record
    },
  }
}

function compileEntry(
  dialect: Dialect,
  { key, steps, field, neighbour }: Entry,
  outer: string,
  depth: number,
  lists: number,
  isNested: boolean,
): Part {
  const [step, ...rest] = steps
  if (step) {
    const inner = `r${depth}`
    const { from, where } = neighbours(step, outer, inner)
    const entry = { key, steps: rest, field, ...(neighbour ? { neighbour } : {}) }
    const part = compileEntry(dialect, entry, inner, depth + 1, lists, isNested)
    return { ...part, sql: `(select ${part.sql} from ${from} where ${where})` }
  }
  if (neighbour) return compileNeighbour(dialect, key, neighbour, outer, depth, lists, isNested)
  const column = `${outer}.${quote(field.name)}`
  return {
    key,
    sql: isNested ? dialect.json.value(column, storageOf(field)) : column,
    decode: decoderOf(dialect, field),
  }
}

function compileNeighbour(
  dialect: Dialect,
  key: string,
  { step, shown }: NonNullable<Entry['neighbour']>,
  outer: string,
  depth: number,
  lists: number,
  isNested: boolean,
): Part {
  const isList = step.field.relation?.isList === true
  const inner = `r${depth}`
  const { from, where } = neighbours(step, outer, inner)
  const level = lists + (isList ? 1 : 0)
  const parts = shown.entries.map((entry) => compileEntry(dialect, entry, inner, depth + 1, level, true))
  const array = dialect.json.array([`${inner}."id"`, `${inner}."version"`, ...parts.map((part) => part.sql)])
  const decode = decodeNeighbour(shown, parts)
  const nest = (sql: string) => (isNested ? dialect.json.nested(sql) : sql)
  if (!isList) {
    const sql = `(select ${array} from ${from} where ${where})`
    return { key, sql: nest(sql), decode: (stored) => decode(arrayFrom(stored)) }
  }
  const name = `${step.from.name}.${step.field.name}`
  const most = mostShown(step.field, lists)
  if (most === 0)
    throw new Refusal(
      'bad-request',
      `${name} is a list in a list in a list: search ${step.target.name} instead`,
    )
  const order = `order by ${inner}."id"${most === Infinity ? '' : ` limit ${most + 1}`}`
  return {
    key,
    sql: nest(dialect.json.list(array, `from ${from} where ${where} ${order}`)),
    decode: (stored) => {
      const items = arrayFrom(stored) ?? []
      if (items.length > most)
        throw new Refusal(
          'bad-request',
          `${name} has more than ${most} members: search ${step.target.name} instead`,
        )
      return items.map((item) => decode(item as Json[]))
    },
  }
}

/** What is part of a record is shown with it, all of it: writes see to it that it does not grow without end. */
function mostShown(field: Field, lists: number): number {
  return lists === 0 && isOwnedList(field) ? Infinity : (MAX_SHOWN[lists] ?? 0)
}

function decodeNeighbour(
  { versionKeys }: Selection,
  parts: readonly Part[],
): (items: readonly Json[] | null) => Value {
  return (items) => {
    if (!items) return null
    const record: Record<string, Value> = { id: Number(items[0]) }
    for (const key of versionKeys) record[key] = Number(items[1])
    parts.forEach(({ key, decode }, index) => (record[key] = decode(items[index + 2] ?? null)))
    return record
  }
}

/** At the top JSON comes as text; inside of JSON it is parsed already. */
function arrayFrom(stored: SqlValue | Json): readonly Json[] | null {
  const value = typeof stored === 'string' ? (JSON.parse(stored) as Json) : stored
  return Array.isArray(value) ? value : null
}

function decoderOf(dialect: Dialect, field: Field): Decode {
  const storage = storageOf(field)
  if (storage === 'none') throw new Error(`${field.name} has no column`)
  const { decode } = dialect.columns[storage]
  if (field.type !== 'decimal') return (stored) => decode(stored as SqlValue)
  return (stored) => {
    const value = decode(stored as SqlValue)
    return value === null ? null : withScale(value as string, field.scale)
  }
}

function withScale(decimal: string, scale: number): string {
  const [integer = '', fraction = ''] = decimal.split('.')
  return scale === 0 ? integer : `${integer}.${fraction.padEnd(scale, '0')}`
}
