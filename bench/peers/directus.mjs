import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { FIELDS, buildFullContact } from '../contacts.mjs'
import { startPostgresServer, runProgram } from '../processes.mjs'
import { findFreePort, startAndWait } from './addresses.mjs'
import { install, readPeerVersion } from './installing.mjs'

const TOKEN = 'a-token-of-the-administrator'
const FILL_AT_ONCE = 10_000

/** PostgreSQL, an administrator's token, no cache, no rate limit; its load shedding is off, like that of Verso. */
export async function startDirectus(rows) {
  const place = await install('directus', ['directus@11.3.5'])
  stubSandbox(place)
  const server = await startPostgresServer()
  const db = await server.database()
  const port = String(await findFreePort())
  const url = `http://127.0.0.1:${port}`
  const env = { ...process.env, ...buildSettings(db, port, url) }
  const program = path.join(place, 'node_modules/directus/cli.js')
  await runProgram(process.execPath, [program, 'bootstrap'], { env, timeoutMs: 180_000 })
  const child = await startAndWait(`${url}/server/ping`, process.execPath, [program, 'start'], { env })
  const headers = { authorization: `Bearer ${TOKEN}` }
  await addCollection(url, headers)
  await fill(db, rows)
  const version = readPeerVersion(place, 'directus')
  return { child, pid: child.pid, databasePid: server.pid, url, headers, api: { kind: 'directus' }, version }
}

function buildSettings(db, port, url) {
  return {
    ...{
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: port,
      PUBLIC_URL: url,
      SECRET: 'a secret of this run',
    },
    ...{
      DB_CLIENT: 'pg',
      DB_CONNECTION_STRING: db,
      ADMIN_EMAIL: 'ada@example.org',
      ADMIN_PASSWORD: 'a long one',
    },
    ...{ ADMIN_TOKEN: TOKEN, TELEMETRY: 'false', SERVE_APP: 'false', PRESSURE_LIMITER_ENABLED: 'false' },
  }
}

/** The sandbox needs a compiler and is used by extensions only, of which there are none. */
function stubSandbox(place) {
  const built = path.join(place, 'node_modules/isolated-vm/out')
  if (existsSync(built)) return
  mkdirSync(built, { recursive: true })
  writeFileSync(path.join(built, 'isolated_vm.js'), 'module.exports = { ivm: {} }\n')
}

async function addCollection(url, headers) {
  const fields = FIELDS.map((field) => ({ field, type: field === 'dateOfBirth' ? 'date' : 'text' }))
  const id = { field: 'id', type: 'integer', schema: { is_primary_key: true, has_auto_increment: true } }
  const response = await fetch(`${url}/collections`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ collection: 'contacts', schema: {}, meta: {}, fields: [id, ...fields] }),
  })
  if (!response.ok) throw new Error(`its collection was refused: ${response.status} ${await response.text()}`)
}

async function fill(db, rows) {
  const client = new pg.Client({ connectionString: db })
  await client.connect()
  const names = FIELDS.map((field) => `"${field}"`).join(', ')
  for (let start = 0; start < rows; start += FILL_AT_ONCE) {
    const length = Math.min(FILL_AT_ONCE, rows - start)
    const some = Array.from({ length }, (_, index) => buildFullContact(start + index))
    await client.query(
      `insert into contacts (${names}) select ${names} from json_populate_recordset(null::contacts, $1)`,
      [JSON.stringify(some)],
    )
  }
  await client.query('analyze contacts')
  await client.end()
}
