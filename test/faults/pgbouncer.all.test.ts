// PgBouncer in front of the database: session mode works, the other modes are rejected at the start.
import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { afterEach, expect, inject, test, vi } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { importMutantStore } from '../mutants/watchdog.js'
import { createDatabase, reachableTemp, unprivilegedOwner } from '../postgres.js'
import { PASSWORD, startService, USERNAME } from '../targets.js'

const OPTIONS = { poolSize: 6, statementTimeoutMs: 10_000 }
const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(existsSync)

let pooler: ChildProcess | undefined
let folder: string | undefined

afterEach(async () => {
  const ended = new Promise((resolve) => pooler?.once('exit', resolve))
  pooler?.kill('SIGKILL')
  if (pooler) await ended
  if (folder !== undefined) rmSync(folder, { recursive: true })
  pooler = folder = undefined
})

/** Returns the URL of a new database through PgBouncer. */
async function startPooler(mode: string, more = ''): Promise<string> {
  if (PROGRAM === undefined)
    throw new Error('PgBouncer is not installed (on Debian: apt-get install pgbouncer)')
  const direct = new URL(await createDatabase(inject('postgresUrl')))
  const port = await findPort()
  // PgBouncer does not run as root, either.
  const owner = unprivilegedOwner()
  folder = mkdtempSync(path.join(reachableTemp(owner), 'verso-pgbouncer-'))
  chmodSync(folder, 0o755)
  const file = path.join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=${direct.hostname} port=${direct.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 20
${more}`,
  )
  pooler = spawn(PROGRAM, [file], { ...owner, stdio: 'ignore' })
  await vi.waitFor(() => canConnect(port), 20_000)
  direct.port = String(port)
  return direct.href
}

async function findPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (await canConnect(port).catch(() => true)) return port
  }
}

async function canConnect(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve()
    })
    socket.on('error', reject)
  })
}

test('a service works through PgBouncer in session mode', async () => {
  const location = { url: await startPooler('session'), remove: () => undefined }
  const service = await startService('postgres', { location })
  const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  const { data } = await client.create('crm.Contact', { lastName: 'A' })
  await Promise.all(Array.from({ length: 30 }, () => client.create('test.Note', { title: 'n' })))
  const updated = await client.update('crm.Contact', data.id, { version: 0, lastName: 'B' })
  expect(updated.data.version).toBe(1)
  expect(await service.app.db.reader.all('show timezone')).toEqual([{ TimeZone: 'UTC' }])
  expect(await service.app.db.writability()).toBeUndefined()
  await service.close()
})

async function tryOpen(url: string, open: typeof openDatabase): Promise<unknown> {
  let db: Database | undefined
  try {
    db = await open(url, OPTIONS)
    return 'opened'
  } catch (error) {
    return error
  } finally {
    await db?.close()
  }
}

test.each([
  ['transaction', ''],
  ['transaction', 'server_round_robin = 1'],
  ['statement', ''],
])('PgBouncer in mode %s is rejected: %s', async (mode, more) => {
  const url = await startPooler(mode, more)
  const error = await tryOpen(url, openDatabase)
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message).toMatch(/connection pooler/)
  const { openDatabase: openMutant } = await importMutantStore(
    inject('runFolder'),
    'a pooler in transaction mode is accepted',
  )
  expect(await tryOpen(url, openMutant)).toBe('opened')
})
