// The servers to compare: their titles, and how each starts with the same contacts.
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { startDirectus } from './peers/directus.mjs'
import { startFeathers } from './peers/feathers.mjs'
import { startJsonServer } from './peers/json-server.mjs'
import { startPocketBase } from './peers/pocketbase.mjs'
import { getFolder, startListening, startPostgresServer } from './processes.mjs'
import { findProgram, startVerso } from './verso.mjs'

const REFERENCE = fileURLToPath(new URL('./reference/server.mjs', import.meta.url))
const STATIC = fileURLToPath(new URL('./reference/static.mjs', import.meta.url))
const LISTENING = /^listening on (\S+)$/

/** `engine` decides which Verso a server is compared with. */
export const SERVERS = {
  verso: { title: 'Verso, SQLite', engine: 'sqlite', start: (run) => startVerso('sqlite', run) },
  versoPostgres: {
    title: 'Verso, PostgreSQL',
    engine: 'postgres',
    start: (run) => startVerso('postgres', run),
  },
  before: {
    title: 'Verso before, SQLite',
    engine: 'sqlite',
    isBefore: true,
    start: (run) => startVerso('sqlite', run, findProgram(run.before)),
  },
  beforePostgres: {
    title: 'Verso before, PostgreSQL',
    engine: 'postgres',
    isBefore: true,
    start: (run) => startVerso('postgres', run, findProgram(run.before)),
  },
  static: {
    title: 'node:http, static',
    engine: 'sqlite',
    start: ({ rows }) => startReference([STATIC, rows]),
  },
  full: {
    title: 'hand-written, SQLite FULL',
    engine: 'sqlite',
    start: ({ rows }) => startSqliteReference('full', rows),
  },
  normal: {
    title: 'hand-written, SQLite NORMAL',
    engine: 'sqlite',
    start: ({ rows }) => startSqliteReference('normal', rows),
  },
  postgres: {
    title: 'hand-written, PostgreSQL',
    engine: 'postgres',
    start: ({ rows }) => startPostgresReference(rows),
  },
  pocketbase: {
    title: 'PocketBase',
    engine: 'sqlite',
    isPeer: true,
    start: ({ rows }) => startPocketBase(rows),
  },
  feathers: {
    title: 'Feathers, SQLite',
    engine: 'sqlite',
    isPeer: true,
    start: ({ rows }) => startFeathers(rows),
  },
  jsonServer: {
    title: 'json-server',
    engine: 'sqlite',
    isPeer: true,
    start: ({ rows }) => startJsonServer(rows),
  },
  directus: {
    title: 'Directus, PostgreSQL',
    engine: 'postgres',
    isPeer: true,
    start: ({ rows }) => startDirectus(rows),
  },
}

export const PEERS = Object.keys(SERVERS).filter((name) => SERVERS[name].isPeer)
/** Earlier builds of Verso, from another checkout. */
export const BEFORE = Object.keys(SERVERS).filter((name) => SERVERS[name].isBefore)

function startSqliteReference(synchronous, rows) {
  return startReference([REFERENCE, 'sqlite', path.join(getFolder(), `${synchronous}.db`), synchronous, rows])
}

async function startPostgresReference(rows) {
  const server = await startPostgresServer()
  const started = await startReference([REFERENCE, 'postgres', await server.database(), rows])
  return { ...started, databasePid: server.pid }
}

async function startReference(words) {
  const { child, found } = await startListening(process.execPath, words.map(String), LISTENING)
  return { child, pid: child.pid, url: found[1], headers: {}, api: { kind: 'verso' } }
}

/**
 * Starts the named servers. Lists each peer that does not start as missing, with the reason. `run` is { rows,
 * clients, before }.
 */
export async function startServers(names, run) {
  const [started, missing] = [{}, []]
  for (const name of names) {
    const { title, start, isPeer } = SERVERS[name]
    process.stderr.write(`starting ${title}\n`)
    try {
      started[name] = await start(run)
    } catch (error) {
      if (!isPeer) throw new Error(`${title} did not start`, { cause: error })
      missing.push(`MISSING: ${title}: ${error.message.split('\n').slice(0, 3).join(' ')}`)
    }
  }
  return { started, missing }
}
