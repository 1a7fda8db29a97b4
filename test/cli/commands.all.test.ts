import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createApp } from '../../src/service/create-app.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecord } from '../../src/service/records/save.js'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start, verso } from './program.js'
import { createContext } from '../../src/service/context/context.js'

cleanUpAfterwards()

test('user commands add, list, disable and enable users', async () => {
  const db = ['--db', newDatabase()]
  expect((await verso(['user', 'list', ...db])).stderr).toContain('the file does not exist; check --db')
  const added = await verso(
    ['user', 'add', 'Ada', '--name', 'Ada L', '--admin', '--password-stdin', ...db],
    `${PASSWORD}\n`,
  )
  expect(added).toEqual({ code: 0, stdout: 'added Ada, an administrator\n', stderr: '' })
  await verso(['user', 'add', 'bob', '--password-stdin', ...db], PASSWORD)
  await verso(['user', 'disable', 'bob', ...db])
  expect((await verso(['user', 'list', ...db])).stdout).toBe(
    'id  user  name   roles          state     last login\n' +
      '1   ada   Ada L  administrator  enabled   never\n' +
      '2   bob   bob    none           disabled  never\n',
  )
  await verso(['user', 'enable', 'bob', ...db])
  expect((await verso(['user', 'list', ...db])).stdout).toContain('bob   bob    none           enabled')
  const nobody = await verso(['user', 'disable', 'nobody', ...db])
  expect(nobody).toEqual({ code: 1, stdout: '', stderr: 'User "nobody" does not exist\n' })
  const again = await verso(['user', 'add', 'ADA', '--password-stdin', ...db], PASSWORD)
  expect(again).toEqual({ code: 1, stdout: '', stderr: 'User "ada" already exists; nothing was changed\n' })
})

test.each([
  [['add', 'ada', '--password-stdin'], 'short', 'The password must have at least 12 characters\n'],
  [['add', 'ada', '--password-stdin'], '1qaz2wsx3edc', 'The password must not be a common password\n'],
  [
    ['add', 'ada', '--name', 'ada ada ada ada', '--password-stdin'],
    'Ada Ada Ada Ada',
    "The password must not repeat the same few characters and must not be the same as the user's name\n",
  ],
  [['add', 'a b', '--password-stdin'], PASSWORD, 'The user name must be'],
  [['add', 'ada'], '', 'There is no terminal to ask for the password:\n  - send it with: --password-stdin'],
  [['add', 'ada', '--password-stdin'], '', 'Nothing was changed:\n  - no password came on standard input'],
  [['disable', 'nobody'], '', 'The database cannot be opened:\n  - sqlite:'],
])('user %o with input "%s" is rejected in one line', async (args, input, message) => {
  const { code, stderr } = await verso(['user', ...args, '--db', newDatabase()], input)
  expect([code, stderr.startsWith(message), stderr.includes('\n    at ')]).toEqual([1, true, false])
})

test('an unreachable database is reported without its password', async () => {
  const { code, stderr } = await verso(['user', 'list', '--db', 'postgres://ada:hunter2@127.0.0.1:1/verso'])
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^The database cannot be opened:\n {2}- postgres:\/\/127\.0\.0\.1:1\/verso: .*ECONNREFUSED/,
  )
})

test('schema shows the plan, refuses to drop a column with data, and drops a column named by --drop', async () => {
  const file = path.join(scratch, 'thing.json')
  const db = newDatabase()
  const args = ['schema', '--models', file, '--db', db]
  const declare = (fields: object) => {
    const definition = { name: 't.Thing', fields }
    writeFileSync(file, JSON.stringify(definition))
    return { file, definition }
  }
  const first = declare({ a: { type: 'string' }, b: { type: 'string' } })
  const mistyped = await verso(args)
  expect([mistyped.code, mistyped.stderr]).toEqual([
    1,
    expect.stringContaining('the file does not exist; check --db'),
  ])
  expect(existsSync(db.slice('sqlite:'.length))).toBe(false)
  await (await createApp({ settings: { db }, models: [] })).close()
  expect((await verso(args)).stdout).toMatch(/^Planned for .*\+ t\.Thing: new table\n.*--apply\.\n$/s)
  const plan = JSON.parse((await verso([...args, '--json'])).stdout) as object
  expect(plan).toEqual({ database: db, applied: false, notes: [], errors: [], steps: expect.any(Array) })
  expect(plan).toHaveProperty(
    'steps',
    expect.arrayContaining([{ kind: 'create-table', model: 't.Thing', description: '+ t.Thing: new table' }]),
  )
  expect((await verso([...args, '--apply'])).stdout).toMatch(/^Applied to .*\+ t\.Thing: new table\n/s)
  expect((await verso(args)).stdout).toMatch(/^No changes are needed in /)
  const applied = await verso([...args, '--apply', '--json'])
  expect(JSON.parse(applied.stdout)).toMatchObject({ applied: true, steps: [] })

  const app = await createApp({ settings: { db }, models: [first] })
  await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get('t.Thing'), {
    a: 'kept',
    b: 'kept',
  })
  await app.close()
  declare({ a: { type: 'string' } })
  for (const rejected of [args, [...args, '--apply']]) {
    const { code, stderr } = await verso(rejected)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('t.Thing.b is no longer declared, but 1 record has'),
    ])
  }
  const wrong = await verso([...args, '--drop', 't.Thing.z'])
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringContaining('nothing to drop has the name "t.Thing.z"'),
  ])
  const dropped = await verso([...args, '--apply', '--drop', 't.Thing.b'])
  expect([dropped.code, dropped.stdout]).toEqual([0, expect.stringContaining('- t.Thing.b: column dropped')])
})

test('init writes a starter that serve accepts', async () => {
  const { stdout } = await verso(['init', 'mine'])
  expect(stdout).toContain('verso dev --models mine')
  const { url } = await start(['serve', '--models', 'mine', '--port', '0', '--db', newDatabase()])
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
})

const UNWRITABLE = 'afile/x'
test.each([
  [
    ['init', UNWRITABLE],
    `Nothing was written:\n  - ${UNWRITABLE}: part of this path is a file, not a folder\n`,
  ],
  [['init', 'afile'], 'Nothing was written:\n  - afile is a file; name a folder\n'],
  [['init', '/proc/verso'], 'Nothing was written:\n  - /proc/verso: the file or folder does not exist\n'],
  [['init', 'x'.repeat(300)], /^Nothing was written:\n {2}- x+: the name is too long\n$/],
  [['schema', '--models', UNWRITABLE], /^The models are invalid:\n {2}- .*afile\/x: part of this path/],
  [['export', '--models', 'afile.json', '--out', UNWRITABLE], /^Nothing was exported:\n {2}- afile\/x: part/],
  [
    ['export', '--models', 'afile.json', '--out', '/proc/x'],
    /^The export failed; .*:\n {2}- \/proc\/x: the file or folder does not exist/,
  ],
  [['import', '--models', 'afile.json', UNWRITABLE], /^Nothing was imported:\n {2}- afile\/x: part/],
  [
    ['import', '--models', 'afile.json', 'lines'],
    /^The import failed; .*:\n {2}- .*: this is a folder, not a file/,
  ],
  [
    ['prove', '--adapter', 'broken.mjs'],
    /^The adapter cannot be used:\n {2}- broken.mjs cannot be loaded: SyntaxError/,
  ],
  [
    ['prove', '--journal', UNWRITABLE],
    /^The service was not tested:\n {2}- the file of --journal cannot be written/,
  ],
])('verso %o reports an error of the file system in one sentence', async (args, words) => {
  const db = newDatabase()
  writeFileSync(path.join(scratch, 'afile'), '')
  writeFileSync(
    path.join(scratch, 'afile.json'),
    JSON.stringify({ name: 't.Thing', fields: { a: { type: 'string' } } }),
  )
  writeFileSync(path.join(scratch, 'broken.mjs'), 'x(')
  mkdirSync(path.join(scratch, 'lines', 't.Thing.ndjson'), { recursive: true })
  const isAboutRecords = ['export', 'import'].includes(args[0] ?? '')
  if (isAboutRecords) await verso(['schema', '--apply', '--models', 'afile.json', '--db', db])
  const { code, stdout, stderr } = await verso([...args, ...(isAboutRecords ? ['--db', db] : [])])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toEqual(expect.stringMatching(words))
  expect(stderr).not.toContain('\n    at ')
})

test('wrong usage exits with 2, help and version exit with 0', async () => {
  expect((await verso(['serve', '--modles', 'x'])).code).toBe(2)
  expect((await verso(['sevre'])).code).toBe(2)
  expect((await verso([])).code).toBe(2)
  expect((await verso(['serve', '--help'])).code).toBe(0)
  const { version } = JSON.parse(
    readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
  ) as { version: string }
  expect(await verso(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
})
