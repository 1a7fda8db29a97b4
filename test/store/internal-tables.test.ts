// The internal tables have a version, which the database stores. If it is current, a start only reads and takes no lock.
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { createApp } from '../../src/service/create-app.js'
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { createInternalTables, INTERNAL_TABLES_VERSION } from '../../src/store/schema/internal-tables.js'
import { applySchema, previewSchema } from '../../src/store/schema/apply.js'
import { changedTransaction } from '../queryables.js'
import { CountingDatabase } from '../counting-database.js'
import { statementsHeldUp } from '../faults/table-locks.js'
import { models } from '../models.js'
import { blindToVersion, makesIndexesAtStart } from '../mutants/start.js'
import {
  newLocation,
  onEveryEngine,
  preparedLocation,
  catchError,
  type Engine,
  type DatabaseLocation,
} from '../targets.js'
import { withoutSecondAttempt } from '../mutants/records.js'

const OPTIONS = { poolSize: 3, statementTimeoutMs: 10_000 }
const STORED = `select value from verso_epoch where name = 'tables'`

/** Digests of the statements that create the internal tables, by version. A change needs a new version, or existing databases miss it. */
const DIGESTS: Readonly<Record<number, Record<Engine, string>>> = {
  1: { sqlite: 'c7f1fab433b0010f', postgres: '880eddaef8364af4' },
  2: { sqlite: '9b96dc57445bcc4c', postgres: '6fee0c98b250b2a3' },
  3: { sqlite: 'ae1516258f5506ce', postgres: 'de72590cddeae039' },
  4: { sqlite: '440a727685d4ee7b', postgres: 'fe736ea31bdf75e4' },
}

type Mutant = (db: Database) => Database

/** Each way in which the program opens a database. */
const OPENINGS: Readonly<Record<string, (database: Database) => Promise<unknown>>> = {
  'a node': async (database) => (await createApp({ models, database })).close(),
  'a command without models': async (database) => (await createApp({ models: [], database })).close(),
  'a dry run of the plan': async (database) =>
    previewSchema(database, Catalog.from(models), []).finally(() => database.close()),
  'a schema change': async (database) =>
    applySchema(database, Catalog.from(models)).finally(() => database.close()),
}

async function changed(location: DatabaseLocation, ...statements: string[]): Promise<void> {
  const db = await openDatabase(location.url, OPTIONS)
  await db.transaction(async (tx) => {
    for (const sql of statements) await tx.run(sql)
  })
  await db.close()
}

/** The statements of a start that are not reads. */
async function writtenBy(
  open: (database: Database) => Promise<unknown>,
  location: DatabaseLocation,
): Promise<string[]> {
  const database = new CountingDatabase(await openDatabase(location.url, OPTIONS))
  const statements = await database.statementsOf(() => open(database))
  expect(statements.length).toBeGreaterThan(0)
  return statements.filter((sql) => !/^(select|with)\b/.test(sql))
}

onEveryEngine((engine) => {
  test('a damaged stored schema stops the start with a clear message', async () => {
    const location = await preparedLocation(engine)
    await changed(location, `update verso_schema set shape = '{"columns' where model = 'test.Note'`)
    const database = await openDatabase(location.url, OPTIONS)
    expect(await catchError(createApp({ models, database }))).toMatchObject({
      message: expect.stringMatching(/^The database is damaged/) as string,
    })
    location.remove()
  })

  test('every start and command on current tables only reads', async () => {
    const location = await preparedLocation(engine)
    for (const [name, open] of Object.entries(OPENINGS))
      expect([name, await writtenBy(open, location)]).toEqual([name, []])
    location.remove()
  })

  test('a mutant that creates indexes at every start is caught', async () => {
    const location = await preparedLocation(engine)
    const database = new CountingDatabase(await openDatabase(location.url, OPTIONS))
    const start = async () => (await createApp({ models, database: makesIndexesAtStart(database) })).close()
    const statements = await database.statementsOf(start)
    expect(statements).toContain('create index if not exists verso_log_at on verso_log (at_ms)')
    location.remove()
  })

  test('a database without a version is upgraded, also by two nodes that start concurrently', async () => {
    const location = await preparedLocation(engine)
    await changed(
      location,
      `delete from verso_epoch where name = 'tables'`,
      'drop index verso_idempotency_created',
      'alter table verso_session drop column agent',
      'drop table verso_login_failure',
    )
    const start = () => createApp({ models, settings: { db: location.url, poolSize: 3 } })
    const nodes = await Promise.all([start(), start()])
    const [{ db }] = nodes
    expect(await db.reader.all(STORED)).toEqual([{ value: INTERNAL_TABLES_VERSION }])
    expect(await db.reader.all(db.dialect.findIndex, ['verso_idempotency_created'])).toHaveLength(1)
    expect(await db.reader.all('select agent from verso_session')).toEqual([])
    expect(await db.reader.all('select key from verso_login_failure')).toEqual([])
    await Promise.all(nodes.map((node) => node.close()))
    location.remove()
  })

  test('a preview of the schema changes nothing in a database of another program', async () => {
    const location = await newLocation(engine)
    await changed(location, 'create table other (a integer)')
    const db = await openDatabase(location.url, OPTIONS)
    const { steps } = await previewSchema(db, Catalog.from(models), [])
    expect(steps).not.toEqual([])
    const tables = await db.reader.all(db.dialect.listTables)
    expect(tables.map(({ name }) => name)).toEqual(['other'])
    await db.close()
    location.remove()
  })

  test('a database of version 1 gets the index for deleted records', async () => {
    const location = await preparedLocation(engine)
    await changed(
      location,
      `update verso_epoch set value = 1 where name = 'tables'`,
      'drop index verso_log_deleted',
    )
    const app = await createApp({ models, settings: { db: location.url, poolSize: 3 } })
    expect(await app.db.reader.all(STORED)).toEqual([{ value: INTERNAL_TABLES_VERSION }])
    expect(await app.db.reader.all(app.db.dialect.findIndex, ['verso_log_deleted'])).toHaveLength(1)
    await app.close()
    location.remove()
  })

  test('a database of version 2 gets the tables of hooks and schedules', async () => {
    const location = await preparedLocation(engine)
    await changed(
      location,
      `update verso_epoch set value = 2 where name = 'tables'`,
      ...['verso_hook', 'verso_hook_job', 'verso_schedule'].map((table) => `drop table ${table}`),
    )
    const app = await createApp({ models, settings: { db: location.url, poolSize: 3 } })
    expect(await app.db.reader.all(STORED)).toEqual([{ value: INTERNAL_TABLES_VERSION }])
    for (const table of ['verso_hook', 'verso_hook_job', 'verso_schedule'])
      expect(await app.db.reader.all(`select * from ${table}`)).toEqual([])
    expect(await app.db.reader.all(app.db.dialect.findIndex, ['verso_hook_job_due'])).toHaveLength(1)
    await app.close()
    location.remove()
  })

  test('every start and command rejects a database of a newer release, and changes nothing', async () => {
    const location = await preparedLocation(engine)
    // An older program would create the index again.
    await changed(
      location,
      `update verso_epoch set value = 7 where name = 'tables'`,
      'drop index verso_log_at',
    )
    for (const open of Object.values(OPENINGS)) {
      const rejected: unknown = await open(await openDatabase(location.url, OPTIONS)).catch(
        (error: unknown) => error,
      )
      expect(rejected).toBeInstanceOf(ConfigError)
      expect((rejected as ConfigError).message).toBe(
        'The database cannot be used:\n  - a newer release of Verso has used it: its internal tables have version 7, but this ' +
          `release supports versions up to ${INTERNAL_TABLES_VERSION}. Install that release or a later one, or use another database with --db; ` +
          'nothing was changed',
      )
    }
    const db = await openDatabase(location.url, OPTIONS)
    expect(await db.reader.all(STORED)).toEqual([{ value: 7 }])
    expect(await db.reader.all(db.dialect.findIndex, ['verso_log_at'])).toEqual([])
    await db.close()
    location.remove()
  })

  test('a mutant that ignores the version takes over a newer database and is caught', async () => {
    const location = await preparedLocation(engine)
    await changed(
      location,
      `update verso_epoch set value = 7 where name = 'tables'`,
      'drop index verso_log_at',
    )
    const database = blindToVersion(await openDatabase(location.url, OPTIONS))
    const app = await createApp({ models, database })
    expect(await app.db.reader.all(STORED)).toEqual([{ value: INTERNAL_TABLES_VERSION }])
    expect(await app.db.reader.all(app.db.dialect.findIndex, ['verso_log_at'])).toHaveLength(1)
    await app.close()
    location.remove()
  })

  test('a change of the internal tables needs a new version', async () => {
    const location = await newLocation(engine)
    const db = await openDatabase(location.url, OPTIONS)
    const made: string[] = []
    const noting = (tx: Transaction): Transaction =>
      changedTransaction(tx, {
        run: (sql, params) => {
          made.push(sql)
          return tx.run(sql, params)
        },
      })
    await db.transaction((tx) => createInternalTables(noting(tx), db.dialect))
    await db.close()
    location.remove()
    const digest = createHash('sha256').update(made.join('\n')).digest('hex').slice(0, 16)
    expect(digest).toBe(DIGESTS[INTERNAL_TABLES_VERSION]?.[engine])
  })
})

describe('locks and retries on postgres', () => {
  test('no start or command takes a lock that blocks writes, and a mutant that creates indexes does', async () => {
    const { url } = await preparedLocation('postgres')
    const heldUpBy = async (open: (database: Database) => Promise<unknown>, mutant: Mutant = (db) => db) =>
      statementsHeldUp(url, async () => open(mutant(await openDatabase(url, OPTIONS))))
    for (const [name, open] of Object.entries(OPENINGS))
      expect([name, await heldUpBy(open)]).toEqual([name, []])
    const start = async (database: Database) => (await createApp({ models, database })).close()
    expect(await heldUpBy(start, makesIndexesAtStart)).toContain(
      'create index if not exists verso_log_at on verso_log (at_ms)',
    )
  })

  /** Fails the first attempts of each transaction with this error code, such as that of a deadlock. */
  const deadlocked =
    (times: number, code: string): Mutant =>
    (db) => ({
      ...{ dialect: db.dialect, reader: db.reader, queryPool: db.queryPool },
      ...{ blobs: db.blobs, commits: db.commits, close: () => db.close() },
      writability: () => db.writability(),
      gauges: () => db.gauges(),
      measure: () => db.measure(),
      transaction: (work, options) => {
        let attempts = 0
        return db.transaction(async (tx) => {
          if (++attempts <= times)
            await tx.run(`do $$ begin raise exception using errcode = '${code}'; end $$`)
          return work(tx)
        }, options)
      },
    })

  const start = async (mutant: Mutant) => {
    const location = await newLocation('postgres')
    const database = mutant(await openDatabase(location.url, OPTIONS))
    await applySchema(database, Catalog.from([])).finally(() => database.close())
  }

  test.for(['40P01', '40001'])('a start that fails with %s is retried', async (code) => {
    await start(deadlocked(4, code))
  })

  test('a start that always fails with a deadlock ends as busy', async () => {
    const error = await catchError(start(deadlocked(1_000, '40P01')))
    expect(error.kind).toBe('busy')
  })

  test('a mutant without retries is caught', async () => {
    const error = await catchError(start((db) => deadlocked(1, '40P01')(withoutSecondAttempt(db))))
    expect(error.kind).toBe('busy')
  })
})
