// Baseline for `verso import`: reads the same lines and inserts the same rows into the same two tables, and nothing
// else.
// Usage: node bench/bare-import.mjs <url of the database> <file>
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { FIELDS, formatFullName, MODEL } from './contacts.mjs'

const PORTION = 1_000
const COLUMNS = ['id', 'version', ...FIELDS, 'createdOn']
const LOG_COLUMNS = ['model', 'record', 'version', 'action', 'at_ms', 'changes']
const [db, file] = process.argv.slice(2)
const now = new Date()

const into = `insert into "${MODEL}" (${COLUMNS.map((name) => `"${name}"`).join(', ')})`
const intoLog = `insert into verso_log (${LOG_COLUMNS.join(', ')})`

function buildRow({ id, version, ...line }) {
  const values = { ...line, fullName: formatFullName(line) }
  return [id, version, ...FIELDS.map((field) => values[field] ?? null), now.toISOString()]
}

function buildLogRow([id, version, ...values]) {
  const changes = {}
  for (const [index, field] of FIELDS.entries())
    if (values[index] !== null) changes[field] = { before: null, after: values[index] }
  return [MODEL, id, version, 'create', now.getTime(), JSON.stringify(changes)]
}

function openSqlite(name) {
  const connection = new DatabaseSync(name)
  connection.exec('pragma journal_mode = wal; pragma synchronous = full')
  const marks = (columns) => `values (${columns.map(() => '?').join(', ')})`
  const insert = connection.prepare(`${into} ${marks(COLUMNS)}`)
  const log = connection.prepare(`${intoLog} ${marks(LOG_COLUMNS)}`)
  return {
    async write(rows) {
      connection.exec('begin immediate')
      for (const row of rows) insert.run(...row)
      for (const row of rows) log.run(...buildLogRow(row))
      connection.exec('commit')
    },
    close: async () => connection.close(),
  }
}

/** Uses one statement for each table, whatever the number of rows. */
async function openPostgres(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const numbers = new Set(['id', 'version', 'record', 'at_ms'])
  const from = (columns) =>
    `from unnest(${columns.map((name, index) => `$${index + 1}::${numbers.has(name) ? 'bigint' : 'text'}[]`).join(', ')}) ` +
    `as new (${columns.map((name) => `"${name}"`).join(', ')})`
  const types = { dateOfBirth: '::date', createdOn: '::timestamptz' }
  const shown = COLUMNS.map((name) => `"${name}"${types[name] ?? ''}`).join(', ')
  const insert = `${into} select ${shown} ${from(COLUMNS)}`
  const log = `${intoLog} select ${LOG_COLUMNS.join(', ')} ${from(LOG_COLUMNS)}`
  const transpose = (rows, columns) => columns.map((_, column) => rows.map((row) => row[column]))
  return {
    async write(rows) {
      await client.query('begin')
      await client.query({ name: 'insert', text: insert, values: transpose(rows, COLUMNS) })
      await client.query({ name: 'log', text: log, values: transpose(rows.map(buildLogRow), LOG_COLUMNS) })
      await client.query('commit')
    },
    close: () => client.end(),
  }
}

const table = db.startsWith('sqlite:') ? openSqlite(db.slice('sqlite:'.length)) : await openPostgres(db)
let rows = []
for await (const line of createInterface({ input: createReadStream(file) })) {
  rows.push(buildRow(JSON.parse(line)))
  if (rows.length < PORTION) continue
  await table.write(rows)
  rows = []
}
if (rows.length > 0) await table.write(rows)
await table.close()
