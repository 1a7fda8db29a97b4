import type { Json, Value } from '../../model/values/value.js'
import { parseStoredJson } from '../engine/write-health.js'
import type { Column } from '../engine/columns.js'
import type { Dialect, SqlValue } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { SEARCH_LIMIT_SQL } from './connection.js'
import { encodeAsIs } from '../sql/column.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { createValuesInsert, SqliteRowListWriter } from './row-lists.js'
import { decodeDecimal, encodeDecimal } from './sortable-decimal.js'

const textColumn: Column = {
  type: 'text',
  encode: encodeAsIs,
  decode: (stored) => stored,
}
const integerColumn: Column = {
  type: 'integer',
  encode: encodeAsIs,
  decode: (stored) => stored,
}

const jsonQuote = (column: string) => `json_quote(${column})`

/** Tables are STRICT: SQLite rejects values of another type. Text is compared byte by byte, which is code-point order. */
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
  // `lower` handles only ASCII; a call into JavaScript is ten times slower.
  fold: (column) =>
    `case when length(${column}) < octet_length(${column}) then verso_fold(${column}) else lower(${column}) end`,
  identity: 'integer primary key autoincrement',
  startIdsAfter: (table, id) => `insert into sqlite_sequence (name, seq) values ('${table}', ${id})`,
  // SQLite adds the row of a table to `sqlite_sequence` with the first record.
  advanceIds: (table, id) => [
    `update sqlite_sequence set seq = max(seq, ${id}) where name = '${table}'`,
    `insert into sqlite_sequence (name, seq) select '${table}', ${id}
      where not exists (select 1 from sqlite_sequence where name = '${table}')`,
  ],
  lastId: (table) => `select seq as "last" from sqlite_sequence where name = '${table}'`,
  tableSuffix: ' strict',
  counterSuffix: ' strict, without rowid',
  // Every index entry contains the id already.
  indexSuffix: '',
  // BEGIN IMMEDIATE permits one writer at a time, so no further locks are needed.
  lockSchema: [],
  lockTable: () => [],
  integrityChecks: [
    {
      // The pragma stops after 100 problems.
      name: 'integrity_check',
      sql: `select integrity_check as "fault" from pragma_integrity_check where integrity_check <> 'ok'`,
    },
    {
      name: 'foreign_key_check',
      sql:
        `select "table" || ' ' || coalesce(rowid, '') || ' refers to a missing row of ' || parent as "fault" ` +
        'from pragma_foreign_key_check limit 100',
    },
  ],
  startupChecks: [],
  setUp: [],
  blobTables: {
    verso_file_gone: 'create table if not exists verso_file_gone (key text primary key) strict',
  },
  // Processes share one machine, but each has its own way to catch up with a clock that was set back.
  lockLog: {
    with: '',
    from: '',
    raiseTime: (ms) => `max(${ms}, coalesce((select at_ms from ${LOG_TABLE} order by seq desc limit 1), 0))`,
  },
  // If the clock of the machine goes back, nobody knows if it was wrong before or is wrong now. So stored times never go back.
  clock: { nowMs: `unixepoch('subsec') * 1000`, maxLeadMs: Infinity },
  findColumn: 'select 1 as "one" from pragma_table_info(?) where name = ?',
  listColumns: 'select name from pragma_table_info(?) order by cid',
  listTables: `select name from sqlite_master where type = 'table' and name not like 'sqlite!_%' escape '!' order by name`,
  findIndex: `select 1 as "one" from sqlite_master where type = 'index' and name = ?`,
  lockForUpdate: '',
  lockForReference: '',
  lockForShare: '',
  lockForRemoval: '',
  json: {
    array: (values) => `json_array(${values.join(', ')})`,
    aggregate: (value, from) => `(select json_group_array(json("x")) from (select ${value} as "x" ${from}))`,
    value: (column) => column,
    // SQLite treats the result of a subselect as text unless `json()` marks it as JSON.
    asJson: (subselect) => `json(${subselect})`,
    unnest: (_storage, placeholder = '?') => `select "value" from json_each(${placeholder})`,
    recordset: (columns, placeholder = '?') => {
      const values = columns.map(
        ({ name }, index) => `json_extract("value", '$[${index}]') as ${quoteIdentifier(name)}`,
      )
      return `select ${values.join(', ')} from json_each(${placeholder})`
    },
  },
  createRowListWriter: (table) => new SqliteRowListWriter(table),
  createBulkInsert: createValuesInsert,
  needsLiteralLimit: false,
  prefersJsonText: true,
  readsBlockEventLoop: true,
  waitsForRowLocks: false,
  timeLimitCondition: SEARCH_LIMIT_SQL,
  // Keeps the order of the inner select: sorting again would cost as much as building the JSON text. The bytes go to the client without decoding.
  joinJson: (text) => `cast(group_concat(${text}, ',') as blob)`,
  decimalText: (column, scale) => `verso_decimal(${column}, ${scale})`,
  afterLoad: [],
  toJson: {
    text: jsonQuote,
    date: jsonQuote,
    time: jsonQuote,
    datetime: jsonQuote,
    uuid: jsonQuote,
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
