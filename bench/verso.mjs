// This service, as its users start it: the built command line, models from a file, a user who is no administrator.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { MODEL, writeLines } from './contacts.mjs'
import { folder, listen, postgresServer, run, stop } from './processes.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SERVICE = path.join(ROOT, 'dist/cli/main.js')
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
  await run(process.execPath, compiler, { cwd: ROOT })
}

export function verso(words, options) {
  return run(process.execPath, [SERVICE, ...words], options)
}

/** A database that nobody has used, on either engine: { db, pid of the PostgreSQL server }. */
export async function emptyDatabase(engine, name) {
  if (engine === 'sqlite') return { db: `sqlite:${path.join(folder(), name)}.db` }
  const server = await postgresServer()
  return { db: await server.database(), databasePid: server.pid }
}

/** With the contacts, through the public way, and somebody who may do everything with them and nothing else. */
export async function startVerso(engine, rows) {
  const { db, databasePid } = await emptyDatabase(engine, 'verso')
  const lines = path.join(folder(), `${MODEL}.ndjson`)
  if (!existsSync(lines)) await writeLines(lines, rows)
  await verso(['import', '--models', MODELS.contact, '--db', db, lines])
  await addUser(db, MODELS.contact, MODEL)
  const starts = []
  let served
  for (let start = 0; start < STARTS; start++) {
    if (served) await stop(served.child)
    served = await serve(db, MODELS.contact)
    starts.push(served.firstAnswerMs)
  }
  const firstAnswerMs = starts.sort((a, b) => a - b)[Math.floor(STARTS / 2)]
  return { ...served, ...(await logIn(served.url)), databasePid, firstAnswerMs, api: { kind: 'verso' } }
}

export async function addUser(db, models, model) {
  await verso(['role', 'add', 'clerk', '--db', db])
  await verso(['role', 'permit', 'clerk', model, ...EVERYTHING, '--models', models, '--db', db])
  await verso(['user', 'add', USER.username, '--role', 'clerk', '--password-stdin', '--db', db], {
    input: USER.password,
  })
}

/** One client must be able to ask as often as it can; all else is as it is by default. */
export async function serve(db, models, more = []) {
  const start = performance.now()
  const words = [SERVICE, 'serve', '--host', '127.0.0.1', '--port', '0', '--models', models, '--db', db]
  const open = ['--rate-limit', '0', '--max-late', '0s', '--log-level', 'info', ...more]
  const { child, found } = await listen(process.execPath, [...words, ...open], /^listening on (\S+)$/)
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
