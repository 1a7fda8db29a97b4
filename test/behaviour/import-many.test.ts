// An import of many records writes each row and each Change as a single import would, in line order.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../../src/service/context/app.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Database, SqlValue, Transaction } from '../../src/store/engine/database.js'
import { Tables } from '../../src/store/sql/table.js'
import { changesSince } from '../log.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { faceOf } from '../mutants/records.js'
import { unsharedTransaction } from '../queryables.js'

const MODEL = 'crm.Contact'
const COUNT = 2_345
const PORTION = 1_000
/** Texts that an array literal or an SQL statement could misread. */
const HARD = [
  ...[
    'NULL',
    'null',
    '',
    ' ',
    '{}',
    '{"a":[1,2]}',
    'a,b',
    '"',
    '""',
    '\\',
    '\\\\"',
    "'",
    "''; --",
    '?',
    '$1',
  ],
  ...['\n', 'a\r\nb', '\t', '\u0001\u001f', '\u007f\u0085', '\u2028', 'é👩', '\\n', '\\u0041', 'true', '1e3'],
]

interface Line {
  readonly id: number
  readonly version: number
  readonly firstName: string
  readonly notes: string | null
}

function linesFrom(first: number): Line[] {
  return Array.from({ length: COUNT }, (_, index) => {
    const text = HARD[index % HARD.length] ?? ''
    const notes = index % 7 === 0 ? null : `${text}${index}${text}`
    return { id: first + index, version: index % 3, firstName: text, notes }
  })
}

async function importLines(app: App, lines: readonly Line[]): Promise<void> {
  const source = { name: 'lines', model: app.catalog.get(MODEL), read: () => portionsOf(lines) }
  expect(await importRecords(app, [source])).toMatchObject({ created: lines.length, existing: 0 })
}

async function* portionsOf(lines: readonly Line[]) {
  for (let start = 0; start < lines.length; start += PORTION)
    yield lines.slice(start, start + PORTION).map((input, index) => ({ line: start + index + 1, input }))
}

/** The rows of the table and the entries of the change log, in log order. */
async function stored({ db }: App, first: number): Promise<{ rows: unknown[]; logged: unknown[] }> {
  const rows = await db.reader.all(
    `select "id", "version", "firstName", "notes" from "${MODEL}" where "id" >= ? order by "id"`,
    [first],
  )
  const changes = (await changesSince(db.reader, 0, 10_000)).filter(
    ({ model, id }) => model === MODEL && id >= first,
  )
  const after = ({ changes: made }: (typeof changes)[number], name: string) => made[name]?.after ?? null
  return {
    rows: rows.map((row) => ({ ...row })),
    logged: changes.map((change) => ({
      ...{ id: change.id, version: change.version },
      ...{ firstName: after(change, 'firstName'), notes: after(change, 'notes') },
    })),
  }
}

onEveryEngine((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  test('an import stores every text unchanged in row and change log, and logs in line order', async () => {
    const lines = linesFrom(1)
    await importLines(service.app, lines)
    expect(await stored(service.app, 1)).toEqual({ rows: lines, logged: lines })
  })

  test('mutants that write texts as JSON, or rows in any order, are caught', async () => {
    for (const [index, mutant] of [textsAsJson, inAnyOrder].entries()) {
      const db = mutant(service.app.db)
      const first = 100_000 * (index + 1)
      const lines = linesFrom(first)
      const app = { ...service.app, db, tables: new Tables(db.dialect, service.app.catalog) }
      await importLines(app, lines)
      const { rows, logged } = await stored(service.app, first)
      expect({ rows: rows.slice(0, COUNT), logged: logged.slice(0, COUNT) }).not.toEqual({
        rows: lines,
        logged: lines,
      })
    }
  })
})

/** Spells control characters as JSON does. */
function textsAsJson(db: Database): Database {
  const spelled = (value: SqlValue) =>
    typeof value === 'string'
      ? value.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))
      : value
  const mutant = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: (sql, params) => tx.run(sql, params?.map(spelled)),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(mutant(tx)), options) }
}

const LOG_WIDTH = 7

/** Reverses the Changes of each statement. */
function inAnyOrder(db: Database): Database {
  const turned = (sql: string, params: readonly SqlValue[] = []): readonly SqlValue[] => {
    // A statement with one array for each column states its order.
    if (sql.includes('"$row"') || !sql.startsWith('insert into verso_log')) return params
    const rows = params.flatMap((_, at) => (at % LOG_WIDTH === 0 ? [params.slice(at, at + LOG_WIDTH)] : []))
    return rows.reverse().flat()
  }
  const changed = (sql: string) => sql.replace('order by "$row"', 'order by "$row" desc')
  const mutant = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: (sql, params) => tx.run(changed(sql), turned(sql, params)),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(mutant(tx)), options) }
}
