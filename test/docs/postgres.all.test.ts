// The PostgreSQL commands of the pages, with the client programs of an installed PostgreSQL and a server of the same installation.
import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { beforeAll, expect, test, vi } from 'vitest'
import { cleanUpAfterwards, start } from '../cli/program.js'
import { findInstalledClients } from '../postgres-binaries.js'
import { startPostgres, type Postgres } from '../postgres.js'
import { listPages, listShellBlocks, readSteps, ROOT } from './page.js'
import { followPage } from './reader.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const BACKUP = 'docs/operations/backup.md'
const DEPLOY = 'docs/guides/deploy.md'
const CONTACTS = path.join(ROOT, 'examples/contacts')
/** The superuser of the test needs no password. Every other role does, as on a real server. */
const ACCESS = 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n'

let server: Postgres

beforeAll(async () => {
  server = await startPostgres({ installed: true })
  const [{ hba_file: file } = { hba_file: '' }] = await query<{ hba_file: string }>(
    server.url,
    'show hba_file',
  )
  writeFileSync(file, ACCESS)
  await server.restart()
  return async () => server.stop()
})

async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}

/** The reader has a server on localhost, with another port and user than the defaults. */
async function followWithServer(page: string) {
  const { port, username } = new URL(server.url)
  return followPage(page, {
    runs: ['postgres'],
    programs: findInstalledClients(),
    variables: { PGHOST: '127.0.0.1', PGPORT: port, PGUSER: username },
  })
}

test('these tests follow every page with commands for PostgreSQL', () => {
  const pages = listPages().filter((page) => listShellBlocks(page).some(({ word }) => word === 'postgres'))
  expect(pages).toEqual([DEPLOY, BACKUP])
})

test('the PostgreSQL commands of the backup page back up and dump a running service, and restore both without errors', async () => {
  const { outputs, folder } = await followWithServer(BACKUP)
  expect(outputs).toHaveLength(3)
  expect(statSync(path.join(folder, 'verso.dump')).mode & 0o777).toBe(0o600)
  const lines = outputs.at(-1)?.trim().split('\n') ?? []
  expect(lines.pop()).toMatch(/^not found by any check: /)
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) expect(line).toMatch(/: .*\bno errors$/)
  const contacts = 'select * from "com.axelor.contact.db.Contact" order by id'
  const [original, moved, restored] = await Promise.all(
    ['verso_demo', 'verso_moved', 'verso_restored'].map((name) =>
      query(new URL(name, server.url).href, contacts),
    ),
  )
  expect(original).toHaveLength(12)
  expect(moved).toEqual(original)
  expect(restored).toEqual(original)
})

test('the PostgreSQL commands of the deploy guide create a role that logs in with its password, and Verso starts with it', async () => {
  await followWithServer(DEPLOY)
  const settings = readSteps(DEPLOY).find((step) => step.path === 'env.postgres')?.text ?? ''
  const [, setting = ''] = /^VERSO_DB=(.*)$/m.exec(settings) ?? []
  const url = setting.replace('db.example.org', new URL(server.url).host)
  await expect(query(url.replace(':password@', ':another@'), 'select 1')).rejects.toThrow(
    'password authentication failed for user "verso"',
  )
  const owner = await query(
    url,
    'select current_user, pg_get_userbyid(datdba) as owner from pg_database where datname = current_database()',
  )
  expect(owner).toEqual([{ current_user: 'verso', owner: 'verso' }])
  const service = await start(['serve', '--models', CONTACTS, '--port', '0'], { VERSO_DB: url })
  const response = await fetch(`${service.url}/readyz`)
  expect(await response.json()).toEqual({ status: 0, data: [{ writable: true }] })
})
