// Starts Verso as its users do: the built command line, models from a file, a user who is not an administrator.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MODEL, writeLines } from './contacts.mjs'
import { getFolder, startListening, startPostgresServer, runProgram, stopChild } from './processes.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = 'dist/cli/main.js'
const SERVICE = path.join(ROOT, PROGRAM)
export const MODELS = {
  contact: path.join(ROOT, 'bench/models/contact.json'),
  resident: path.join(ROOT, 'bench/models/resident.json'),
}
const USER = { username: 'ada', password: 'a long and unused one' }
const STARTS = 3
const EVERYTHING = ['--read', '--create', '--update', '--remove', '--export']

export async function buildIfMissing() {
  if (existsSync(SERVICE)) return
  console.log('building dist …')
  const compiler = ['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.build.json']
  await runProgram(process.execPath, compiler, { cwd: ROOT })
}

export function runVerso(words, options) {
  return runProgram(process.execPath, [SERVICE, ...words], options)
}

/** Returns the program of another checkout, which must have been built. */
export function findProgram(checkout) {
  const program = path.resolve(checkout, PROGRAM)
  if (!existsSync(program)) throw new Error(`${program} does not exist: build that checkout first`)
  return program
}

/** Creates an empty database on either engine: { db, databasePid }; the pid is that of the PostgreSQL server. */
export async function createEmptyDatabase(engine, name) {
  if (engine === 'sqlite') return { db: `sqlite:${path.join(getFolder(), name)}.db` }
  const server = await startPostgresServer()
  return { db: await server.database(), databasePid: server.pid }
}

/** Starts Verso with imported contacts and a user who may do everything with contacts and nothing else. */
export async function startVerso(engine, { rows, client }, program = SERVICE) {
  const { db, databasePid } = await createEmptyDatabase(engine, program === SERVICE ? 'verso' : 'before')
  const lines = path.join(getFolder(), `${MODEL}.ndjson`)
  if (!existsSync(lines)) await writeLines(lines, rows)
  await runProgram(process.execPath, [program, 'import', '--models', MODELS.contact, '--db', db, lines])
  await addUser(db, MODELS.contact, MODEL, program)
  const starts = []
  let served
  for (let start = 0; start < STARTS; start++) {
    if (served) await stopChild(served.child)
    served = await serve(db, MODELS.contact, [], program)
    starts.push(served.firstAnswerMs)
  }
  const firstAnswerMs = starts.sort((a, b) => a - b)[Math.floor(STARTS / 2)]
  const headers = await CLIENTS[client]({ url: served.url, db, program })
  const restart = async () => {
    await stopChild(served.child)
    served = await serve(db, MODELS.contact, [], program)
    return describe()
  }
  const describe = () => ({ ...served, headers, databasePid, firstAnswerMs, api: { kind: 'verso' }, restart })
  return describe()
}

/** Headers of each kind of client. */
export const CLIENTS = {
  cookie: async ({ url }) => (await logIn(url)).headers,
  browser: async ({ url }) => ({
    ...(await logIn(url)).headers,
    'user-agent':
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
    accept: 'application/json',
    'accept-encoding': 'gzip, deflate, br, zstd',
    'accept-language': 'en-GB,en;q=0.9',
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
  }),
  key: async ({ db, program }) => {
    const key = await runProgram(process.execPath, [
      program,
      'key',
      'add',
      USER.username,
      '--name',
      'bench',
      '--db',
      db,
    ])
    return { 'api-key': key.trim() }
  },
}

export async function addUser(db, models, model, program = SERVICE) {
  const command = (words, options) => runProgram(process.execPath, [program, ...words], options)
  await command(['role', 'add', 'clerk', '--db', db])
  await command(['role', 'permit', 'clerk', model, ...EVERYTHING, '--models', models, '--db', db])
  await command(['user', 'add', USER.username, '--role', 'clerk', '--password-stdin', '--db', db], {
    input: USER.password,
  })
}

/** Starts the service with its defaults, except that rate limit and load shedding are off. */
export async function serve(db, models, more = [], program = SERVICE) {
  const start = performance.now()
  const words = [program, 'serve', '--host', '127.0.0.1', '--port', '0', '--models', models, '--db', db]
  const open = ['--rate-limit', '0', '--max-late', '0s', '--log-level', 'info', ...more]
  const { child, found } = await startListening(process.execPath, [...words, ...open], /^listening on (\S+)$/)
  const response = await fetch(`${found[1]}/healthz`)
  await response.arrayBuffer()
  return { child, pid: child.pid, url: found[1], firstAnswerMs: performance.now() - start }
}

export async function logIn(url, credentials = USER) {
  const response = await fetch(`${url}/callback`, { method: 'POST', body: JSON.stringify(credentials) })
  if (!response.ok) throw new Error(`the login was answered with ${response.status}`)
  const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
  return { headers: { cookie: cookies.join('; ') } }
}
