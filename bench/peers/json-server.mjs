import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { fullContact } from '../contacts.mjs'
import { folder } from '../processes.mjs'
import { freePort, startAt } from './addresses.mjs'
import { install, requireIn, versionIn } from './installing.mjs'

/** Keeps all records in memory and writes the whole file with each write; no authentication. */
export async function startJsonServer(rows) {
  const place = await install('json-server', ['json-server@0.17.4'])
  const file = path.join(folder(), 'contacts.json')
  const contacts = Array.from({ length: rows }, (_, index) => ({ id: index + 1, ...fullContact(index) }))
  writeFileSync(file, JSON.stringify({ contacts }))
  const program = requireIn(place).resolve('json-server/lib/cli/bin.js')
  const port = String(await freePort())
  const url = `http://127.0.0.1:${port}`
  const words = [program, '--host', '127.0.0.1', '--port', port, '--quiet', file]
  const env = { ...process.env, NODE_ENV: 'production' }
  const child = await startAt(`${url}/contacts/1`, process.execPath, words, { env })
  const version = versionIn(place, 'json-server')
  return { child, pid: child.pid, url, headers: {}, api: { kind: 'jsonServer' }, version }
}
