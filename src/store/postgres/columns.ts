// How PostgreSQL stores values, and array parameters with the values of one column.
import type { Storage } from '../../model/values/field.js'
import type { Json } from '../../model/values/value.js'
import { parseStoredJson } from '../engine/write-health.js'
import type { Column, JsonColumn } from '../engine/columns.js'
import type { Dialect, SqlRows, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { encodeAsIs } from '../sql/column.js'

/** Values are sent as text in both directions; the time zone of the session is UTC. */
const passThrough: Omit<Column, 'type'> = {
  encode: encodeAsIs,
  decode: (stored) => stored,
}

export const postgresColumns: Dialect['columns'] = {
  // Code-point order, as in SQLite.
  text: { ...passThrough, type: 'text collate "C"' },
  integer: { ...passThrough, type: 'bigint' },
  file: { ...passThrough, type: 'bigint' },
  decimal: { ...passThrough, type: 'numeric' },
  date: { ...passThrough, type: 'date' },
  time: { ...passThrough, type: 'time(0)' },
  uuid: { ...passThrough, type: 'uuid' },
  boolean: {
    type: 'boolean',
    encode: (value) => (value === null ? null : value === true ? 'true' : 'false'),
    // `t` comes from a column, `true` from JSON.
    decode: (stored) => (stored === null ? null : stored === 't' || stored === 'true'),
  },
  datetime: {
    ...passThrough,
    type: 'timestamptz(3)',
    decode: (stored) => (stored === null ? null : toIsoDatetime(String(stored))),
  },
  json: {
    // Not jsonb, which reorders keys and reformats numbers.
    type: 'json',
    encode: (value) => (value === null ? null : JSON.stringify(value)),
    decode: (stored) => (stored === null ? null : (parseStoredJson(stored) as Json)),
  },
}

/** Rows from one array parameter for each column, numbered from 1 as `$row`. */
export function unnestColumns(columns: readonly JsonColumn[]): string {
  const arrays = columns.map(({ storage }) => `?::${toElementType(storage)}[]`)
  const names = [...columns.map(({ name }) => quoteIdentifier(name)), '"$row"']
  return `select * from unnest(${arrays.join(', ')}) with ordinality as "given" (${names.join(', ')})`
}

/** The parameters of `unnestColumns`. */
export function toColumnArrays(width: number, rows: SqlRows): string[] {
  return Array.from({ length: width }, (_, column) => toArrayLiteral(rows.map((row) => row[column] ?? null)))
}

function toArrayLiteral(values: readonly SqlValue[]): string {
  const elements = values.map((value) =>
    value === null ? 'NULL' : typeof value === 'number' ? value : quoteArrayElement(value),
  )
  return `{${elements.join()}}`
}

/** The element type of an array. Arrays of text accept no collation. */
function toElementType(storage: Exclude<Storage, 'none'>): string {
  return storage === 'text' ? 'text' : postgresColumns[storage].type
}

/** Escapes quotes and backslashes as JSON does, and `JSON.stringify` is faster. Only JSON also escapes control characters. */
function quoteArrayElement(text: string): string {
  if (!/\p{Cc}/u.test(text)) return JSON.stringify(text)
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** `2024-01-02 03:04:05.1+00` → `2024-01-02T03:04:05.100Z` */
function toIsoDatetime(stored: string): string {
  const [seconds = '', fraction = ''] = stored.replace(/\+00$/, '').split('.')
  return `${seconds.replace(' ', 'T')}.${fraction.padEnd(3, '0')}Z`
}
