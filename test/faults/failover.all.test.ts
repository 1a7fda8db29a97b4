// The address of the database leads to another server: the node leaves the read-only one, without a restart.
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { importMutantStore } from '../mutants/watchdog.js'
import { createDatabase, startPostgres, type Postgres } from '../postgres.js'
import { startProxy } from './proxy.js'

const OPTIONS = { poolSize: 6, statementTimeoutMs: 10_000 }
/** The bar: how long after a failover connections to the former server may be used. */
const LIMIT_MS = 5_000

type Open = typeof openDatabase

let first: Postgres
let second: Postgres

beforeAll(async () => {
  first = await startPostgres({ durable: true })
  second = await startPostgres({ durable: true })
})
afterAll(async () => {
  await first.stop()
  await second.stop()
})

async function onServer(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<object>(sql)).rows
  } finally {
    await client.end()
  }
}

async function setReadOnly(server: Postgres, value: 'on' | 'off'): Promise<void> {
  await onServer(server.url, `alter system set default_transaction_read_only = ${value}`)
  await onServer(server.url, 'select pg_reload_conf()')
}

const END_WATCHDOG = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and query like '%pg_postmaster_start_time%' and pid <> pg_backend_pid()`

/** True if within the limit the node writes to the second server, and has no connection to the first one. */
async function survivesFailover(open: Open, former: 'is read-only' | 'accepts writes'): Promise<boolean> {
  const url = await createDatabase(first.url)
  const name = new URL(url).pathname.slice(1)
  const other = new URL(second.url)
  other.pathname = `/${name}`
  await onServer(second.url, `create database "${name}"`)
  for (const each of [url, other.href]) await onServer(each, 'create table entry (id int)')
  const proxy = await startProxy(url)
  const db = await open(proxy.url, OPTIONS)
  const write = () => db.transaction((tx) => tx.run('insert into entry values (1)'))
  try {
    await Promise.all([write(), db.reader.all('select 1 as one'), db.queryPool.all('select 1 as one')])
    proxy.moveTo(other.href)
    if (former === 'is read-only') await setReadOnly(first, 'on')
    // One connection is lost, that of the watchdog.
    else await onServer(url, END_WATCHDOG)
    await vi.waitFor(
      async () => {
        // Reads keep the connections in use.
        await db.reader.all('select 1 as one')
        await write()
        const sessions = `select 1 from pg_stat_activity where datname = '${name}' and application_name = 'verso'`
        expect(await onServer(first.url, sessions)).toEqual([])
        expect(await db.reader.all('select count(*) as count from entry')).not.toEqual([{ count: 1 }])
      },
      { timeout: LIMIT_MS, interval: 100 },
    )
    expect(await db.writability()).toBeUndefined()
    return true
  } catch {
    return false
  } finally {
    await setReadOnly(first, 'off')
    await db.close()
    await proxy.close()
  }
}

test.each([
  ['is read-only', 'a read-only server is asked on its old connection'],
  ['accepts writes', 'connections to a former server stay'],
] as const)('the node leaves a server that was replaced and %s within 5 s', async (former, mistake) => {
  expect(await survivesFailover(openDatabase, former)).toBe(true)
  const { openDatabase: openMutant } = await importMutantStore(inject('runFolder'), mistake)
  expect(await survivesFailover(openMutant, former)).toBe(false)
})

/** True if a session that was read-only at its start is replaced when new sessions can write. */
async function survivesPromotion(open: Open): Promise<boolean> {
  const url = await createDatabase(first.url)
  const name = new URL(url).pathname.slice(1)
  await onServer(url, 'create table entry (id int)')
  await onServer(url, `alter database "${name}" set default_transaction_read_only = on`)
  const db = await open(url, OPTIONS)
  const write = () => db.transaction((tx) => tx.run('insert into entry values (1)'))
  const readMode = async () => {
    const [row] = await db.reader.all('show transaction_read_only')
    return row?.['transaction_read_only']
  }
  try {
    await expect(write()).rejects.toMatchObject({
      kind: 'busy',
      message: expect.stringMatching(/read-only/) as string,
    })
    expect(await db.writability()).toMatchObject({ kind: 'read-only' })
    expect(await readMode()).toBe('on')
    // Existing sessions keep their setting.
    await onServer(first.url, `alter database "${name}" set default_transaction_read_only = off`)
    const end = performance.now() + LIMIT_MS
    while ((await readMode()) === 'on' && performance.now() < end) await vi.waitFor(() => undefined)
    if ((await readMode()) === 'on') return false
    await write()
    return (await db.writability()) === undefined
  } finally {
    await db.close()
  }
}

test('read-only sessions are replaced within 5 s when new ones can write', async () => {
  expect(await survivesPromotion(openDatabase)).toBe(true)
  const { openDatabase: openMutant } = await importMutantStore(
    inject('runFolder'),
    'connections that are read-only stay',
  )
  expect(await survivesPromotion(openMutant)).toBe(false)
})

test('a server without free connections is reported, and the report ends when a connection is free', async () => {
  const url = await createDatabase(first.url)
  const name = new URL(url).pathname.slice(1)
  const db = await openDatabase(url, OPTIONS)
  // A limit of the role: the superuser has none.
  await onServer(url, `create role "${name}" login connection limit 3`)
  const limited = new URL(url)
  limited.username = name
  const others = [new pg.Client(limited.href), new pg.Client(limited.href)]
  await Promise.all(others.map((client) => client.connect()))
  const narrow = await openDatabase(limited.href, OPTIONS)
  await expect(narrow.reader.all('select 1 as one')).rejects.toMatchObject({
    kind: 'busy',
    message: 'The database accepts no more connections; nothing was changed',
  })
  expect(await narrow.writability()).toMatchObject({ kind: 'no-connections' })
  await Promise.all(others.map((client) => client.end()))
  await vi.waitFor(async () => expect(await narrow.writability()).toBeUndefined(), LIMIT_MS)
  expect(await narrow.reader.all('select 1 as one')).toEqual([{ one: 1 }])
  await narrow.close()
  await db.close()
})

test('a URL with several hosts is rejected with advice', async () => {
  for (const hosts of ['a.example,b.example', 'ada:pass,word@a.example:5432,b.example:5432'])
    await expect(openDatabase(`postgres://${hosts}/verso`, OPTIONS)).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringMatching(/several hosts/) as string,
    })
})
