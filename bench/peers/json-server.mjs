import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { buildFullContact } from '../contacts.mjs'
import { getFolder } from '../processes.mjs'
import { findFreePort, startAndWait } from './addresses.mjs'
import { install, createPeerRequire, readPeerVersion } from './installing.mjs'

/** Keeps all records in memory and writes the whole file with each write; no authentication. */
export async function startJsonServer(rows) {
  const place = await install('json-server', ['json-server@0.17.4'])
  const file = path.join(getFolder(), 'contacts.json')
  const contacts = Array.from({ length: rows }, (_, index) => ({ id: index + 1, ...buildFullContact(index) }))
  writeFileSync(file, JSON.stringify({ contacts }))
  const program = createPeerRequire(place).resolve('json-server/lib/cli/bin.js')
  const port = String(await findFreePort())
  const url = `http://127.0.0.1:${port}`
  const words = [program, '--host', '127.0.0.1', '--port', port, '--quiet', file]
  const env = { ...process.env, NODE_ENV: 'production' }
  const child = await startAndWait(`${url}/contacts/1`, process.execPath, words, { env })
  const version = readPeerVersion(place, 'json-server')
  return { child, pid: child.pid, url, headers: {}, api: { kind: 'jsonServer' }, version }
}
