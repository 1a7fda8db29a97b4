// The first minutes with the program: the start text, .env, the end, and a Node that is too old.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import {
  createMutantProgram,
  REPEATING_PASSWORDS,
  WITH_FILE_FIRST,
  type Mistake,
} from '../mutants/program.js'
import { cleanUpAfterwards, MAIN, newDatabase, PASSWORD, scratch, start } from './program.js'

cleanUpAfterwards()

const CONTACTS = fileURLToPath(new URL('../../examples/contacts', import.meta.url))
const TIMEOUT_MS = 60_000
/** The form of the printed commands: a cookie jar that is written or read, a body, and a URL. */
const CURL = /^curl (-c|-b) cookies\.txt(?: -d '([^']*)')? +'([^']+)'$/

test('serve prints its address, models, data and the next commands; Ctrl-C says that it stopped', async () => {
  const server = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()])
  await expect.poll(() => server.output()).toContain('Stop it with Ctrl-C.')
  const text = server.output()
  expect(text).toContain(`Open     ${server.url} in a browser`)
  expect(text).toMatch(/Models {3}com\.axelor\.contact\.db\.\w+, /)
  expect(text).toMatch(/Create one here:\n +http\S+\/setup\?token=/)
  expect(text).toContain(`curl -b cookies.txt '${server.url}/ws/rest/com.axelor.contact.db.`)
  server.child.kill('SIGINT')
  expect(await server.ended()).toBe(0)
  // The process may exit before its last output is read.
  await expect.poll(() => server.output()).toMatch(/\nstopped\n$/)
})

test('the login and list commands of the start text log in and list records', async () => {
  const server = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()], {
    VERSO_ADMIN_PASSWORD: PASSWORD,
  })
  await expect.poll(() => server.output()).toContain('Stop it with Ctrl-C.')
  const commands = server
    .output()
    .replaceAll('\\\n', '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('curl'))
    .map((line) => line.replace('<name>', 'admin').replace('<password>', PASSWORD))
  expect(commands).toHaveLength(2)
  const [login = '', list = ''] = commands
  const session = await sendLikeCurl(login)
  expect(await session.json()).toMatchObject({ status: 0, data: [{ username: 'admin' }] })
  const cookies = session.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  const listed = await sendLikeCurl(list, cookies.join('; '))
  expect(await listed.json()).toMatchObject({ status: 0, total: 0 })
})

/** Sends the request of a printed command, without curl, which `npm test` does not need. */
async function sendLikeCurl(command: string, cookie = ''): Promise<Response> {
  expect(command).toMatch(CURL)
  const [, jar, body, url = ''] = CURL.exec(command) ?? []
  const headers = jar === '-b' ? { cookie } : {}
  if (body === undefined) return fetch(url, { headers })
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  return fetch(url, { method: 'POST', headers: { ...headers, ...type }, body })
}

const createMutant = (mistake: Mistake) => path.join(createMutantProgram(scratch, mistake), 'cli/main.js')

function runDemo(cwd: string, env: NodeJS.ProcessEnv = {}, main = MAIN) {
  return spawnSync(process.execPath, [main, 'demo'], {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  })
}

test('.env of the working directory is read; a variable that is set already wins', () => {
  const cwd = mkdtempSync(path.join(scratch, 'env-'))
  writeFileSync(path.join(cwd, '.env'), 'VERSO_PORT=eighty\nVERSO_LOG_LEVEL=loud\n')
  expect(runDemo(cwd).stderr).toMatch(/VERSO_PORT must be .*"eighty"[^]*VERSO_LOG_LEVEL must be .*"loud"/)
  const set = runDemo(cwd, { VERSO_LOG_LEVEL: 'info' })
  expect(set.stderr).toContain('"eighty"')
  expect(set.stderr).not.toContain('loud')
  const mutant = runDemo(cwd, { VERSO_LOG_LEVEL: 'info' }, createMutant(WITH_FILE_FIRST))
  expect(mutant.stderr).toContain('loud')
})

test.runIf(process.platform === 'linux')('a .env that cannot be read is reported, and nothing starts', () => {
  const cwd = mkdtempSync(path.join(scratch, 'env-'))
  // Reading this file fails, also for root.
  symlinkSync('/proc/self/mem', path.join(cwd, '.env'))
  const { status, stdout, stderr } = runDemo(cwd)
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(/^The file \.env cannot be read: EIO.*\n$/)
})

test('variables of .env whose names do not begin with VERSO_ are ignored', () => {
  const cwd = mkdtempSync(path.join(scratch, 'env-'))
  writeFileSync(path.join(cwd, '.env'), 'PORT=ninety\nVERSO_LOG_LEVEL=loud\n')
  const { status, stderr } = runDemo(cwd)
  expect(status).toBe(1)
  expect(stderr).toContain('"loud"')
  expect(stderr).not.toContain('ninety')
})

test('a folder named .env is ignored', () => {
  const cwd = mkdtempSync(path.join(scratch, 'env-'))
  mkdirSync(path.join(cwd, '.env'))
  const { status, stderr } = runDemo(cwd, { VERSO_PORT: 'eighty' })
  expect(status).toBe(1)
  expect(stderr).toContain('"eighty"')
  expect(stderr).not.toContain('.env')
})

/** Submits a form that is rejected behind the printed link; returns the page. */
async function submitShortPassword(password: string, main = MAIN): Promise<string> {
  const server = await start(
    ['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()],
    {},
    [],
    main,
  )
  await expect.poll(() => server.output()).toContain('Stop it with Ctrl-C.')
  const answer = await fetch(/http\S+\/setup\?token=\S+/.exec(server.output())?.[0] ?? '', {
    method: 'POST',
    headers: { accept: 'text/html', 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ username: 'ada', password }),
  })
  expect(answer.status).toBe(422)
  return answer.text()
}

test('a rejected form repeats the typed name and not the password; the mutant that repeats both is caught', async () => {
  const page = await submitShortPassword('hush7')
  expect(page).toContain('value="ada"')
  expect(page).not.toContain('hush7')
  expect(await submitShortPassword('hush7', createMutant(REPEATING_PASSWORDS))).toContain('hush7')
})

test('a Node that is too old is told which version is needed', () => {
  const preload = path.join(scratch, 'old-node.cjs')
  writeFileSync(
    preload,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.18.3' } })`,
  )
  const { status, stderr } = spawnSync(process.execPath, ['--require', preload, MAIN, '--version'], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  })
  expect(status).toBe(1)
  expect(stderr).toBe(
    'Verso needs Node 20.19 or later; this is Node 20.18.3. Install a newer version from https://nodejs.org\n',
  )
  const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    engines: { node: string }
  }
  expect(engines.node).toBe('>=20.19')
})

test('demo on sqlite::memory: leaves no file behind', async () => {
  const TMPDIR = mkdtempSync(path.join(scratch, 'memory-'))
  const server = await start(['demo', '--port', '0', '--db', 'sqlite::memory:'], { TMPDIR })
  expect(readdirSync(TMPDIR)).toHaveLength(1)
  server.child.kill('SIGTERM')
  expect(await server.ended()).toBe(0)
  expect(readdirSync(TMPDIR)).toEqual([])
})
