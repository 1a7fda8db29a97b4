// `verso doctor` on healthy and on broken installations. Each fault is a real one.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { diagnoseNode } from '../../src/cli/doctor/file-checks.js'
import { diagnoseClock } from '../../src/store/diagnosis/diagnosis.js'
import { ROOT } from '../docs/page.js'
import { damagePages } from '../faults/damaged-file.js'
import { mountSmallDisk, removeSmallDisks } from '../faults/small-disk.js'
import { createDatabase, startPostgres, type Postgres } from '../postgres.js'
import { cleanUpAfterwards, PASSWORD, scratch, start, verso } from './program.js'

cleanUpAfterwards()
afterAll(removeSmallDisks)
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const CONTACTS = path.join(ROOT, 'examples/contacts')
/** Programs that see a clock two hours behind. */
const SLOW_CLOCK = 'data:text/javascript,globalThis.Date.now=(now=>()=>now()-7200000)(Date.now)'

interface Line {
  readonly check: string
  readonly level: string
  readonly message: string
  readonly advice?: string
}

/** Runs the program, and checks that its exit code fits its lines, and that it prints no stack. */
async function runDoctor(args: readonly string[], variables: Record<string, string> = {}): Promise<Line[]> {
  const flags = args.includes('--models') ? args : [...args, '--models', CONTACTS]
  const { code, stdout, stderr } = await verso(['doctor', '--json', ...flags], '', variables)
  expect(stdout + stderr).not.toMatch(/^ {2,}at /m)
  const { problems, checks } = JSON.parse(stdout) as {
    readonly problems: number
    readonly checks: readonly Line[]
  }
  expect(code).toBe(problems > 0 ? 1 : 0)
  const found = checks.filter(({ level }) => level === 'problem')
  expect(found).toHaveLength(problems)
  for (const line of found) expect(line.advice, line.message).toBeDefined()
  return [...checks]
}

/** The lines that are not as they should be, besides the age of Node and the room of the test machine. */
function listFaults(lines: readonly Line[]): string[] {
  return lines
    .filter(
      ({ check, level }) =>
        level !== 'ok' && !['node', 'disk', 'temporary files', 'backup disk'].includes(check),
    )
    .map(({ check, level, message }) => `${level} ${check}: ${message}`)
}

let original = ''
let databases = 0

/** A copy of a database that a service has made and closed. */
function copyDatabase(): string {
  const folder = mkdtempSync(path.join(scratch, `doctor-${++databases}-`))
  const file = path.join(folder, 'verso.db')
  copyFileSync(original, file)
  chmodSync(file, 0o600)
  return file
}

beforeAll(async () => {
  mkdirSync(scratch, { recursive: true })
  original = path.join(mkdtempSync(path.join(scratch, 'original-')), 'verso.db')
  const { code, stderr } = await verso(
    ['user', 'add', 'ada', '--admin', '--password-stdin', '--db', `sqlite:${original}`],
    PASSWORD,
  )
  expect(code, stderr).toBe(0)
})

describe('SQLite', () => {
  test('finds no fault in a healthy database, and changes no file', async () => {
    const file = copyDatabase()
    const folder = path.dirname(file)
    const list = () => readdirSync(folder).map((name) => [name, statSync(path.join(folder, name)).mtimeMs])
    const before = list()
    const lines = await runDoctor(['--db', `sqlite:${file}`])
    expect(listFaults(lines)).toEqual([])
    expect(lines.map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        'settings',
        'models',
        'database',
        'tables',
        'stored time',
        'integrity',
        'wal',
        'processes',
        'last stop',
        'disk reserve',
      ]),
    )
    expect(list()).toEqual(before)
  })

  test('finds no fault beside a running service, and names its process', async () => {
    const file = copyDatabase()
    const service = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', `sqlite:${file}`])
    const lines = await runDoctor(['--db', `sqlite:${file}`])
    expect(listFaults(lines)).toEqual([])
    const processes = lines.find(({ check }) => check === 'processes')
    expect(processes?.message).toContain(`used by process ${String(service.child.pid)} (`)
  })

  test('prints lines for people, with what to do', async () => {
    const file = copyDatabase()
    chmodSync(file, 0o644)
    const { code, stdout } = await verso(['doctor', '--db', `sqlite:${file}`, '--models', CONTACTS])
    expect(code).toBe(1)
    expect(stdout).toContain(
      `problem  file modes: other users can open ${file}\n         → Run: chmod go= ${file}\n`,
    )
    expect(stdout).toMatch(/^problems: 1, warnings: \d+\n$/m)
  })

  const faults: readonly (readonly [string, (file: string) => unknown, RegExp])[] = [
    [
      'a damaged page',
      (file) => damagePages(file, (page) => page === 9),
      /^problem (integrity|database): .*(damaged|malformed)/,
    ],
    [
      'a damaged header',
      (file) => damagePages(file, (page) => page === 1),
      /^problem database: .*not a database/,
    ],
    [
      'a newer release',
      (file) => change(file, "update verso_epoch set value = 99 where name = 'tables'"),
      /^problem tables: a newer release/,
    ],
    [
      'an unfinished restore',
      (file) => change(file, "insert into verso_epoch (name, value) values ('restore', 1)"),
      /^problem tables: a restore into this database/,
    ],
    [
      'an unclean stop',
      (file) => {
        leaveMarker(file, false)
      },
      /^warning last stop: the last process has ended without a clean stop/,
    ],
    [
      'a WAL that is lost',
      (file) => {
        leaveMarker(file, true)
      },
      /^problem last stop: the service refuses this database: its -wal file with the last commits is missing/,
    ],
    [
      'a stored time in the future',
      (file) => change(file, 'update verso_log set at_ms = at_ms + 7200000'),
      /^warning stored time: .* is (1\d\d min|[12] h) later/,
    ],
    ['a file of another user', makeForeign, /^problem (owner|writable): /],
    ['a large WAL', (file) => makeLargeWal(file), /^warning wal: .* 300\.0 MB/],
    ['a lock of another program', (file) => lock(file), /^problem database: another program has locked/],
    [
      'tables of another program',
      (file) => change(file, 'drop table verso_epoch'),
      /^warning tables: .*no tables of Verso/,
    ],
  ]

  test.for(faults)('reports %s', async ([, damage, expected]) => {
    const file = copyDatabase()
    damage(file)
    const found = listFaults(await runDoctor(['--db', `sqlite:${file}`]))
    expect(
      found.filter((line) => expected.test(line)),
      found.join('\n'),
    ).toHaveLength(1)
  })

  test('reports a missing file, and creates nothing', async () => {
    const folder = mkdtempSync(path.join(scratch, 'missing-'))
    const found = listFaults(await runDoctor(['--db', `sqlite:${folder}/data/verso.db`]))
    expect(found).toEqual([`problem database: ${folder}/data/verso.db does not exist`])
    expect(readdirSync(folder)).toEqual([])
  })

  test('reports a database that is gone while its marker is there, and changes no file', async () => {
    const folder = mkdtempSync(path.join(scratch, 'gone-'))
    const file = path.join(folder, 'verso.db')
    leaveMarker(file, true)
    const found = listFaults(await runDoctor(['--db', `sqlite:${file}`]))
    expect(found).toContainEqual(expect.stringMatching(/^problem last stop: .*had content/))
    expect(readdirSync(folder)).toEqual(['verso.db.open'])
  })

  test('reports the reserve of a full disk, and a disk without room for one', async () => {
    const disk = mountSmallDisk(96)
    if (!disk) throw new Error('this test mounts a small disk, which needs root')
    const file = path.join(disk.folder, 'verso.db')
    copyFileSync(original, file)
    chmodSync(file, 0o600)
    const findReserve = async (size = '8mb') => {
      const lines = await runDoctor(['--db', `sqlite:${file}`, '--disk-reserve', size])
      return lines.find(({ check }) => check === 'disk reserve')
    }
    expect(await findReserve()).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/^none yet/) as string,
    })
    writeFileSync(`${file}.reserve`, randomBytes(8 * 1024 ** 2))
    expect(await findReserve()).toMatchObject({ level: 'ok', message: '8 MB are kept for a full disk' })
    rmSync(`${file}.reserve`)
    const fill = (mb: number) => {
      writeFileSync(path.join(disk.folder, 'ballast'), randomBytes(mb * 1024 ** 2))
    }
    fill(85)
    expect(await findReserve()).toMatchObject({
      level: 'warning',
      advice: expect.stringContaining('14 MB') as string,
    })
    fill(92)
    expect(await findReserve()).toMatchObject({ level: 'problem' })
    expect(await findReserve('0')).toMatchObject({ level: 'ok' })
    disk.remove()
  })

  test('reports a clock that is two hours behind', async () => {
    const variables = { NODE_OPTIONS: `--import=${SLOW_CLOCK}` }
    const found = listFaults(await runDoctor(['--db', `sqlite:${copyDatabase()}`], variables))
    expect(found).toEqual([
      expect.stringMatching(/^warning stored time: the newest change is (1\d\d min|[12] h) later/),
    ])
  })

  test('reports a full disk', async () => {
    const disk = mountSmallDisk(8)
    if (!disk) throw new Error('this test mounts a small disk, which needs root')
    const file = path.join(disk.folder, 'verso.db')
    copyFileSync(original, file)
    chmodSync(file, 0o600)
    const lines = await runDoctor(['--db', `sqlite:${file}`])
    expect(lines.find(({ check }) => check === 'disk')).toMatchObject({ level: 'problem' })
    expect(lines.find(({ check }) => check === 'integrity')).toMatchObject({ level: 'ok' })
  })
})

function change(file: string, sql: string): void {
  const connection = new DatabaseSync(file)
  connection.exec(sql)
  connection.exec('pragma wal_checkpoint(truncate)')
  connection.close()
}

/** Left behind by a command of root; without root, a file that this user may not write. */
function makeForeign(file: string): void {
  if (process.getuid?.() === 0) chownSync(file, 65_534, 65_534)
  else chmodSync(file, 0o400)
}

/** The marker of a process that has ended. */
function leaveMarker(file: string, hasWal: boolean): void {
  writeFileSync(`${file}.open`, JSON.stringify({ pid: 2 ** 22 + 1, token: 'ended', hasWal }), { mode: 0o600 })
}

function makeLargeWal(file: string): void {
  writeFileSync(`${file}-wal`, '', { mode: 0o600 })
  truncateSync(`${file}-wal`, 300 * 1024 ** 2)
}

function lock(file: string): void {
  const connection = new DatabaseSync(file)
  connection.exec('pragma locking_mode = exclusive')
  connection.exec('begin exclusive')
  onTestFinished(() => {
    connection.close()
  })
}

describe('PostgreSQL', () => {
  let server: Postgres
  let database = ''
  beforeAll(async () => {
    server = await startPostgres({ extraArgs: ['-c', 'max_connections=40'] })
    database = await createDatabase(server.url)
    const service = await start(['serve', '--models', CONTACTS, '--port', '0'], {
      VERSO_DB: database,
      VERSO_ADMIN_PASSWORD: PASSWORD,
    })
    service.child.kill('SIGTERM')
    await service.ended()
    return async () => server.stop()
  })

  const query = async (sql: string) => {
    const client = new pg.Client({ connectionString: database })
    await client.connect()
    await client.query(sql)
    await client.end()
  }

  test('finds the database in order, and warns of a server that does not sync', async () => {
    const lines = await runDoctor([], { VERSO_DB: database })
    // The server of the tests does not wait for its disk.
    expect(listFaults(lines)).toEqual([expect.stringContaining('warning durability: fsync')])
    const checks = [
      'database',
      'writable',
      'connections',
      'processes',
      'clock',
      'tables',
      'stored time',
      'integrity',
    ]
    expect(lines.map(({ check }) => check)).toEqual(expect.arrayContaining(checks))
  })

  test('reports a server that is not there', async () => {
    const found = listFaults(await runDoctor([], { VERSO_DB: 'postgres://a:b@127.0.0.1:1/c' }))
    expect(found).toEqual([expect.stringMatching(/^problem database: .*ECONNREFUSED/)])
  })

  test('reports a server that does not respond', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    onTestFinished(() => {
      silent.close()
    })
    await once(silent, 'listening')
    const url = `postgres://a:b@127.0.0.1:${(silent.address() as AddressInfo).port}/c`
    const lines = await runDoctor([], { VERSO_DB: url })
    expect(lines.find(({ check }) => check === 'database')).toMatchObject({
      level: 'problem',
      advice: expect.stringContaining('does not respond') as unknown,
    })
  })

  test('reports a missing database, and creates none', async () => {
    const found = listFaults(await runDoctor([], { VERSO_DB: new URL('/missing', server.url).href }))
    expect(found).toEqual([
      expect.stringContaining('problem database: the server cannot be used: database "missing"'),
    ])
  })

  test('reports a wrong password without printing it', async () => {
    await query("create role locked login password 'right'")
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const { rows } = await client.query<{ hba_file: string }>('show hba_file')
    await client.end()
    const file = rows[0]?.hba_file ?? ''
    writeFileSync(file, 'host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n')
    await server.restart()
    const url = new URL(database)
    url.username = 'locked'
    url.password = 'wrong-secret'
    const lines = await runDoctor([], { VERSO_DB: url.href })
    expect(listFaults(lines)).toEqual([expect.stringContaining('password authentication failed')])
    expect(JSON.stringify(lines)).not.toContain('wrong-secret')
  })

  test('reports a role that may not create tables', async () => {
    await query('create role reader login')
    const url = new URL(database)
    url.username = 'reader'
    const found = listFaults(await runDoctor([], { VERSO_DB: url.href }))
    expect(found).toContainEqual('problem writable: the role reader may not create tables')
  })

  test('reports too few connections', async () => {
    const found = listFaults(await runDoctor(['--pool-size', '100'], { VERSO_DB: database }))
    expect(found).toContainEqual(
      expect.stringMatching(/^warning connections: \d+ of 37 are used, so a node cannot open its 102$/),
    )
  })

  test('reports a clock that is two hours behind', async () => {
    const variables = { VERSO_DB: database, NODE_OPTIONS: `--import=${SLOW_CLOCK}` }
    const found = listFaults(await runDoctor([], variables))
    expect(found).toContainEqual(
      expect.stringMatching(
        /^warning clock: the clock of this computer is (1\d\d min|2 h) behind the clock of the database$/,
      ),
    )
  })

  test('reports a newer release', async () => {
    const copy = await createDatabase(server.url, database)
    const client = new pg.Client({ connectionString: copy })
    await client.connect()
    await client.query("update verso_epoch set value = 99 where name = 'tables'")
    await client.end()
    const found = listFaults(await runDoctor([], { VERSO_DB: copy }))
    expect(found).toContainEqual('problem tables: a newer release of Verso has used this database')
  })
})

describe('settings', () => {
  const db = () => ['--db', `sqlite:${copyDatabase()}`]

  test('reports wrong settings, and checks the database nevertheless', async () => {
    const lines = await runDoctor([...db(), '--session-idle-timeout', '60'], { VERSO_PROT: '80' })
    expect(listFaults(lines)).toEqual([
      expect.stringContaining('problem settings: VERSO_PROT is not a setting'),
      expect.stringContaining('problem settings: --session-idle-timeout must be'),
    ])
    expect(lines.find(({ check }) => check === 'integrity')).toMatchObject({ level: 'ok' })
  })

  test('reports models that cannot be loaded', async () => {
    const folder = mkdtempSync(path.join(scratch, 'models-'))
    writeFileSync(path.join(folder, 'broken.json'), '{')
    const found = listFaults(await runDoctor([...db(), '--models', folder]))
    expect(found).toEqual([expect.stringMatching(/^problem models: .*broken\.json/)])
  })

  test('reports models that other users can change', async () => {
    const folder = mkdtempSync(path.join(scratch, 'models-'))
    await verso(['init', `${folder}/models`])
    chmodSync(`${folder}/models/tag.json`, 0o666)
    const found = listFaults(await runDoctor([...db(), '--models', `${folder}/models`]))
    expect(found).toEqual([`warning model modes: other users can change ${folder}/models/tag.json`])
  })

  test.for([
    [['--public-url', 'https://records.example.org'], 'it trusts no proxy'],
    [['--trust-proxy', 'loopback'], 'does not know the URL that users see'],
    [['--host', '0.0.0.0'], 'without https'],
  ] as const)('reports that %s does not suffice', async ([flags, expected]) => {
    const found = listFaults(await runDoctor([...db(), ...flags]))
    expect(found).toEqual([expect.stringContaining(expected)])
  })

  test('reports a folder of backups that other users can read', async () => {
    const folder = mkdtempSync(path.join(scratch, 'backups-'))
    chmodSync(folder, 0o755)
    const flags = ['--backup-every', '6h', '--backup-folder', folder]
    const lines = await runDoctor([...db(), ...flags])
    expect(listFaults(lines)).toEqual([`problem file modes: other users can open ${folder}`])
    expect(lines.map(({ check }) => check)).toContain('backup disk')
  })

  test('reports a file in place of the folder of backups', async () => {
    const file = path.join(mkdtempSync(path.join(scratch, 'backups-')), 'file')
    writeFileSync(file, '', { mode: 0o600 })
    const lines = await runDoctor([...db(), '--backup-every', '6h', '--backup-folder', file])
    const found = lines.find(({ check }) => check === 'backup disk')
    expect([found?.level, found?.message]).toEqual(['problem', `${file} is a file, not a folder`])
  })

  test('reports a Node without security fixes', () => {
    expect(diagnoseNode('22.1.0', new Date('2027-01-01')).level).toBe('ok')
    expect(diagnoseNode('22.1.0', new Date('2027-06-01')).level).toBe('warning')
  })

  test('a slow answer of the server is no wrong clock', () => {
    expect([1_000, 3_000].map((errorMs) => diagnoseClock(4_000, errorMs).level)).toEqual(['warning', 'ok'])
  })

  test('a clock may differ by two seconds', () => {
    expect([1_999, -1_999, 2_001, -2_001].map((ms) => diagnoseClock(ms).level)).toEqual([
      'ok',
      'ok',
      'warning',
      'warning',
    ])
  })
})
