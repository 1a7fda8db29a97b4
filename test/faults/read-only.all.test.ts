// A database that is not writable: reads succeed, every write says why it is rejected, and no error prints a stack trace.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { cleanUpAfterwards, PASSWORD, scratch, start, verso } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { newLocation, PASSWORD as TEST_PASSWORD, startService, USERNAME } from '../targets.js'
import { exchange, type Session } from './load-client.js'
import { mountSmallDisk, removeSmallDisks } from './small-disk.js'

const MODELS = path.join(import.meta.dirname, '../../examples/contacts')
const CONTACTS = '/ws/rest/com.axelor.contact.db.Contact'
const STACK = /\n +at /

cleanUpAfterwards()
afterAll(removeSmallDisks)
const out = mkdtempSync(path.join(tmpdir(), 'verso-read-only-'))
afterAll(() => {
  rmSync(out, { recursive: true })
})

interface Folder {
  readonly folder: string
  setReadOnly(isReadOnly: boolean): void
}

/** A separate file system if mounting is possible, otherwise file modes, which root may ignore. */
function newFolder(): Folder | undefined {
  const disk = mountSmallDisk(32)
  if (disk) return disk
  if (process.getuid?.() === 0 || process.platform === 'win32') return undefined
  const setReadOnly = (isReadOnly: boolean) => {
    if (!isReadOnly) chmodSync(scratch, 0o700)
    for (const file of readdirSync(scratch)) chmodSync(path.join(scratch, file), isReadOnly ? 0o400 : 0o600)
    if (isReadOnly) chmodSync(scratch, 0o500)
  }
  return { folder: scratch, setReadOnly }
}

const canBeReadOnly = newFolder() !== undefined
if (!canBeReadOnly)
  console.warn('Nothing can be mounted here, and modes do not bind this user: a read-only file is not tested')

describe.runIf(canBeReadOnly).for(['was stopped', 'was killed'])(
  'a service on a read-only file, which %s before',
  (before) => {
    test('a service on a read-only file answers reads, rejects writes and logins with 503, and can be stopped', async () => {
      const disk = newFolder()
      if (!disk) throw new Error('a moment ago a folder could be made read-only')
      const flags = ['--models', MODELS, '--db', `sqlite:${disk.folder}/verso.db`]
      const serving = ['serve', ...flags, '--port', '0']
      const admin = { VERSO_ADMIN_PASSWORD: PASSWORD }
      const first = await start(serving, admin)
      const { cookie } = await HttpClient.login(first.url, 'admin', PASSWORD)
      const made = await exchange({ url: first.url, cookie }, 'PUT', CONTACTS, { data: { lastName: 'A' } })
      expect(made.status).toBe(200)
      first.child.kill(before === 'was killed' ? 'SIGKILL' : 'SIGTERM')
      await first.ended()
      disk.setReadOnly(true)

      const service = await start(serving, admin, ['busy'])
      const session = { url: service.url, cookie }
      expect(service.log()).toContain('the database is read-only: reads succeed')
      await expectReadOnly(session, { username: 'admin', password: PASSWORD })
      expect((await exchange(session, 'GET', `${CONTACTS}?limit=5`)).status).toBe(200)
      expect((await exchange(session, 'GET', `${CONTACTS}?fields=company`)).status).toBe(200)
      const commands = [
        ['verify', ...flags],
        ['export', ...flags, '--out', path.join(out, before)],
        ['user', 'list', '--db', flags[3] ?? ''],
      ]
      const outcomes = await Promise.all(commands.map((command) => verso(command)))
      for (const { code, stderr } of outcomes)
        expect([code, stderr]).toEqual([0, expect.not.stringMatching(STACK)])
      const rejected = await verso(
        ['user', 'add', 'eve', '--db', flags[3] ?? '', '--password-stdin'],
        PASSWORD,
      )
      expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringMatching(/read-?only/)])
      expect(rejected.stderr).not.toMatch(STACK)

      disk.setReadOnly(false)
      if (before === 'was stopped') {
        await vi.waitFor(async () => expect(await readiness(session)).toEqual({ writable: true }), 60_000)
        expect((await exchange(session, 'PUT', CONTACTS, { data: { lastName: 'B' } })).status).toBe(200)
        expect(
          (await exchange(session, 'GET', `${CONTACTS}?fields=lastName&sortBy=lastName`)).body.data,
        ).toHaveLength(2)
      } else {
        const restart = {
          ...{ writable: false, problem: 'read-only' },
          reason: expect.stringContaining('Restart the service') as string,
        }
        await vi.waitFor(async () => expect(await readiness(session)).toEqual(restart), 60_000)
        const said = () =>
          ['no restart is needed', 'Restart the service'].map(
            (words) => service.log().split(words).length - 1,
          )
        await vi.waitFor(() => {
          expect(said()).toEqual([1, 1])
        }, 60_000)
      }
      service.child.kill('SIGTERM')
      expect(await service.ended()).toBe(0)
      expect(service.log()).not.toContain('"kind":"internal"')
    })
  },
)

test('a read-only PostgreSQL is reported with 503, and writes resume when it is writable again', async () => {
  const location = await newLocation('postgres')
  const service = await startService('postgres', { location, expects: ['busy'] })
  const { cookie } = await HttpClient.login(service.url, USERNAME, TEST_PASSWORD)
  const session = { url: service.url, cookie }
  const data = { firstName: 'A' }
  const operator = new pg.Client(location.url)
  await operator.connect()
  const setReadOnly = async (value: 'on' | 'off') => {
    const name = new URL(location.url).pathname.slice(1)
    await operator.query(`alter database "${name}" set default_transaction_read_only = ${value}`)
    // Existing connections keep their old setting.
    const others = 'datname = current_database() and pid <> pg_backend_pid()'
    await operator.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`)
  }
  expect(await readiness(session)).toEqual({ writable: true })
  await setReadOnly('on')
  const rejected = await exchange(session, 'PUT', '/ws/rest/crm.Contact', { data })
  expect([rejected.status, rejected.body.data]).toMatchObject([
    503,
    { message: expect.stringMatching(/is read-only/) as string },
  ])
  await vi.waitFor(() => expectReadOnly(session, { username: USERNAME, password: TEST_PASSWORD }), 60_000)
  await operator.query('set default_transaction_read_only = off')
  await setReadOnly('off')
  await vi.waitFor(async () => expect(await readiness(session)).toEqual({ writable: true }), 60_000)
  expect((await exchange(session, 'PUT', '/ws/rest/crm.Contact', { data })).status).toBe(200)
  await operator.end()
  await service.close()
})

test('a node that met damage in PostgreSQL rejects further writes', async () => {
  const service = await startService('postgres', { expects: ['busy'] })
  const { cookie } = await HttpClient.login(service.url, USERNAME, TEST_PASSWORD)
  const session = { url: service.url, cookie }
  await service.app.db.transaction(async (tx) => {
    await tx.run(`create function damage() returns trigger language plpgsql as $$ begin
      raise exception 'invalid page in block 0 of relation' using errcode = 'XX001'; end $$`)
    await tx.run('create trigger meets before insert on "crm.Contact" for each row execute function damage()')
  })
  const write = async (model: string, data: object) => exchange(session, 'PUT', `/ws/rest/${model}`, { data })
  expect(await write('crm.Contact', { firstName: 'A' })).toMatchObject({ status: 503 })
  const other = await write('test.Limited', { code: 'TAKE' })
  expect([other.status, other.body.data]).toMatchObject([
    503,
    { message: expect.stringMatching(/is damaged/) as string },
  ])
  const damaged = {
    writable: false,
    problem: 'damaged',
    reason: expect.stringMatching(/is damaged/) as string,
  }
  await vi.waitFor(async () => expect(await readiness(session)).toEqual(damaged), 60_000)
  expect((await exchange(session, 'GET', '/ws/rest/crm.Contact')).status).toBe(200)
  await service.close()
})

async function readiness(session: Session): Promise<unknown> {
  const { status, body } = await exchange(session, 'GET', '/readyz')
  expect(status).toBe(200)
  return (body.data as unknown[])[0]
}

async function expectReadOnly(session: Session, credentials: object): Promise<void> {
  const reason = expect.stringMatching(/is read-only/) as string
  expect(await readiness(session)).toEqual({ writable: false, problem: 'read-only', reason })
  const write = await exchange(session, 'GET', '/readyz?write')
  expect([write.status, write.body.data]).toMatchObject([
    503,
    { writable: false, problem: 'read-only', reason },
  ])
  const login = await exchange({ ...session, cookie: '' }, 'POST', '/callback', credentials)
  expect([login.status, login.body.data]).toMatchObject([503, { kind: 'busy', message: reason }])
  expect(login.headers['retry-after']).toBeDefined()
}
