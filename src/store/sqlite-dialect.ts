import type { Json, Value } from '../model/value.js'
import type { Column, Dialect, SqlValue } from './database.js'
import { decodeDecimal, encodeDecimal } from './sortable-decimal.js'

const text: Column = { type: 'text', encode: (value) => value as string | null, decode: (stored) => stored }

/** Tables are STRICT: SQLite refuses what a column does not hold. Text compares byte by byte, that is by code point. */
export const sqliteDialect: Dialect = {
  columns: {
    text,
    date: text,
    time: text,
    datetime: text,
    uuid: text,
    integer: { type: 'integer', encode: (value) => value as number | null, decode: (stored) => stored },
    boolean: {
      type: 'integer',
      encode: (value) => (value === null ? null : Number(value)),
      decode: (stored) => (stored === null ? null : stored !== 0),
    },
    decimal: {
      type: 'text',
      encode: ifSet((value) => encodeDecimal(value as string)),
      decode: ifStored(decodeDecimal),
    },
    json: {
      type: 'text',
      encode: ifSet((value) => JSON.stringify(value)),
      decode: ifStored((stored) => JSON.parse(stored) as Json),
    },
  },
  identity: 'integer primary key autoincrement',
  startIdsAfter: (table, id) => `insert into sqlite_sequence (name, seq) values ('${table}', ${id})`,
  tableSuffix: ' strict',
  // BEGIN IMMEDIATE lets one process write at a time: nothing more is needed.
  lockSchema: [],
  lockLog: [],
  lockRows: '',
}

function ifSet(encode: (value: Value) => SqlValue): Column['encode'] {
  return (value) => (value === null ? null : encode(value))
}

function ifStored(decode: (stored: string) => Value): Column['decode'] {
  return (stored) => (stored === null ? null : decode(String(stored)))
}
