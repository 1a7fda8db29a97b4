// Starts Verso as its users do: the built command line, models from a file, a user who is not an administrator.
import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { CLIENTS, USER } from './client-kinds.mjs'
import { MODEL, writeLines } from './contacts.mjs'
import { OFFICE_MODEL, writeOffices } from './offices.mjs'
import { getFolder, startListening, startPostgresServer, runProgram, stopChild } from './processes.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAM = 'dist/cli/main.js'
export const SERVICE = path.join(ROOT, PROGRAM)
export const ALL_MODELS = path.join(ROOT, 'bench/models')
export const MODELS = {
  contact: path.join(ROOT, 'bench/models/contact.json'),
  resident: path.join(ROOT, 'bench/models/resident.json'),
}
const TIMED_STARTS = 3
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

/**
 * Starts Verso with imported contacts and offices, and a user who may do everything with them and nothing else. `run` is
 * { rows, clients, rounds, timedStarts, flags, shedsLoad }: `clients` are the kinds of clients that will send requests. A server for
 * proxied clients trusts the loopback. `flags` are added to the flags of `serve`.
 */
export async function startVerso(engine, run, program = SERVICE) {
  const { rows, clients, rounds = TIMED_STARTS, timedStarts = Math.min(TIMED_STARTS, rounds) } = run
  const isProxied = clients.some((kind) => CLIENTS[kind].isProxied)
  const name = [program === SERVICE ? 'verso' : 'before', ...clients].join('-')
  const { db, databasePid } = await createEmptyDatabase(engine, name)
  await importRecords(db, rows, program)
  await addUser(db, ALL_MODELS, [MODEL, OFFICE_MODEL], program)
  const flags = [
    ...(isProxied ? ['--trust-proxy', 'loopback'] : []),
    ...(run.shedsLoad ? [] : ['--max-event-loop-delay', '0s']),
    ...(run.flags ?? []),
  ]
  const starts = []
  let served
  for (let start = 0; start < timedStarts; start++) {
    if (served) await stopChild(served.child)
    served = await serve(db, ALL_MODELS, flags, program)
    starts.push(served.firstAnswerMs)
  }
  const firstAnswerMs = starts.sort((a, b) => a - b)[Math.floor(timedStarts / 2)]
  const restart = async () => {
    await stopChild(served.child)
    served = await serve(db, ALL_MODELS, flags, program)
    return describe()
  }
  const describe = async () => ({
    ...served,
    opened: await openClients(clients, { url: served.url, db, program }),
    ...{ db, databasePid, firstAnswerMs, api: { kind: 'verso' }, restart },
  })
  return describe()
}

async function importRecords(db, rows, program) {
  const folder = path.join(getFolder(), `records-${rows}`)
  mkdirSync(folder, { recursive: true })
  const contacts = path.join(folder, `${MODEL}.ndjson`)
  const offices = path.join(folder, `${OFFICE_MODEL}.ndjson`)
  if (!existsSync(contacts)) await writeLines(contacts, rows)
  writeOffices(offices)
  await runProgram(process.execPath, [
    ...[program, 'import', '--models', ALL_MODELS, '--db', db],
    ...[contacts, offices],
  ])
}

/** Returns kind → { headers, writeHeaders }. */
async function openClients(clients, server) {
  const opened = {}
  for (const kind of clients) opened[kind] = await CLIENTS[kind].open(server)
  return opened
}

/** Adds a user whose role permits everything on the models with these names. */
export async function addUser(db, models, names, program = SERVICE) {
  const command = (words, options) => runProgram(process.execPath, [program, ...words], options)
  await command(['role', 'add', 'clerk', '--db', db])
  for (const name of names)
    await command(['role', 'permit', 'clerk', name, ...EVERYTHING, '--models', models, '--db', db])
  await command(['user', 'add', USER.username, '--role', 'clerk', '--password-stdin', '--db', db], {
    input: USER.password,
  })
}

/** Starts the service with its defaults, except that the rate limit is off. */
export async function serve(db, models, more = [], program = SERVICE) {
  const start = performance.now()
  const words = [program, 'serve', '--host', '127.0.0.1', '--port', '0', '--models', models, '--db', db]
  const open = ['--rate-limit', '0', '--log-level', 'info', ...more]
  const { child, found } = await startListening(process.execPath, [...words, ...open], /^listening on (\S+)$/)
  const response = await fetch(`${found[1]}/healthz`)
  await response.arrayBuffer()
  return { child, pid: child.pid, url: found[1], firstAnswerMs: performance.now() - start }
}
