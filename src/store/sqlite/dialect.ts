import type { Json, Value } from '../../model/values/value.js'
import { parseStoredJson } from '../engine/database-condition.js'
import type { Column, Dialect, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { decodeDecimal, encodeDecimal } from './sortable-decimal.js'

const textColumn: Column = {
  type: 'text',
  encode: (value) => value as string | null,
  decode: (stored) => stored,
}
const integerColumn: Column = {
  type: 'integer',
  encode: (value) => value as number | null,
  decode: (stored) => stored,
}

const jsonQuote = (column: string) => `json_quote(${column})`

/** Tables are STRICT: SQLite refuses what a column does not hold. Text compares byte by byte, that is by code point. */
export const sqliteDialect: Dialect = {
  columns: {
    text: textColumn,
    date: textColumn,
    time: textColumn,
    datetime: textColumn,
    uuid: textColumn,
    integer: integerColumn,
    file: integerColumn,
    boolean: {
      type: 'integer',
      encode: (value) => (value === null ? null : Number(value)),
      decode: (stored) => (stored === null ? null : stored !== 0),
    },
    decimal: {
      type: 'text',
      encode: encodeUnlessNull((value) => encodeDecimal(value as string)),
      decode: decodeUnlessNull(decodeDecimal),
    },
    json: {
      type: 'text',
      encode: encodeUnlessNull((value) => JSON.stringify(value)),
      decode: decodeUnlessNull((stored) => parseStoredJson(stored) as Json),
    },
  },
  // A call into JavaScript costs ten times what `lower` does, and `lower` knows ASCII only.
  fold: (column) =>
    `case when length(${column}) < octet_length(${column}) then verso_fold(${column}) else lower(${column}) end`,
  identity: 'integer primary key autoincrement',
  startIdsAfter: (table, id) => `insert into sqlite_sequence (name, seq) values ('${table}', ${id})`,
  // A table has its row here from its first record on.
  advanceIds: (table, id) => [
    `update sqlite_sequence set seq = max(seq, ${id}) where name = '${table}'`,
    `insert into sqlite_sequence (name, seq) select '${table}', ${id}
      where not exists (select 1 from sqlite_sequence where name = '${table}')`,
  ],
  tableSuffix: ' strict',
  counterSuffix: ' strict, without rowid',
  // Every entry of an index has the id.
  indexSuffix: '',
  // BEGIN IMMEDIATE lets one process write at a time: nothing more is needed.
  lockSchema: [],
  lockTable: () => [],
  integrityChecks: [
    {
      // It stops at 100 faults by itself.
      name: 'integrity_check',
      sql: `select integrity_check as "fault" from pragma_integrity_check where integrity_check <> 'ok'`,
    },
    {
      name: 'foreign_key_check',
      sql:
        `select "table" || ' ' || coalesce(rowid, '') || ' refers to what is not there in ' || parent as "fault" ` +
        'from pragma_foreign_key_check limit 100',
    },
  ],
  startupChecks: [],
  setUp: [],
  blobTables: ['create table if not exists verso_file_gone (key text primary key) strict'],
  lockLog: { with: '', from: '' },
  findColumn: 'select 1 as "one" from pragma_table_info(?) where name = ?',
  findIndex: `select 1 as "one" from sqlite_master where type = 'index' and name = ?`,
  lockForUpdate: '',
  lockForReference: '',
  lockForShare: '',
  lockForRemoval: '',
  json: {
    array: (values) => `json_array(${values.join(', ')})`,
    aggregate: (value, from) => `(select json_group_array(json("x")) from (select ${value} as "x" ${from}))`,
    value: (column) => column,
    // What comes out of a subselect is text again until it is said to be JSON.
    asJson: (subselect) => `json(${subselect})`,
    unnest: (_storage, mark = '?') => `select "value" from json_each(${mark})`,
    recordset: (columns, mark = '?') => {
      const values = columns.map(
        ({ name }, index) => `json_extract("value", '$[${index}]') as ${quoteIdentifier(name)}`,
      )
      return `select ${values.join(', ')} from json_each(${mark})`
    },
  },
  needsLiteralLimit: false,
  prefersJsonText: true,
  // In the order of the select that it is made of: to sort them again would cost as much as to print them. As bytes they are only passed on.
  joinJson: (text) => `cast(group_concat(${text}, ',') as blob)`,
  toJson: {
    ...{ text: jsonQuote, date: jsonQuote, time: jsonQuote, datetime: jsonQuote, uuid: jsonQuote },
    integer: (column) => `ifnull(${column}, 'null')`,
    boolean: (column) =>
      `case when ${column} is null then 'null' when ${column} = 0 then 'false' else 'true' end`,
  },
}

function encodeUnlessNull(encode: (value: Value) => SqlValue): Column['encode'] {
  return (value) => (value === null ? null : encode(value))
}

function decodeUnlessNull(decode: (stored: string) => Value): Column['decode'] {
  return (stored) => (stored === null ? null : decode(String(stored)))
}
