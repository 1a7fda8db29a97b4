import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { getFolder, startListening } from '../processes.mjs'
import { install, readPeerVersion } from './installing.mjs'

const PACKAGES = [
  ...['@feathersjs/feathers@5.0.50', '@feathersjs/koa@5.0.50', '@feathersjs/knex@5.0.50'],
  ...['knex@3.3.0', '@photostructure/sqlite@1.2.1'],
]
const PROGRAM = fileURLToPath(new URL('./feathers-server.mjs', import.meta.url))

/** SQLite with WAL and synchronous=NORMAL, no authentication, no hooks. */
export async function startFeathers(rows) {
  const place = await install('feathers', PACKAGES)
  const words = [PROGRAM, place, path.join(getFolder(), 'feathers.db'), String(rows)]
  const env = { ...process.env, NODE_ENV: 'production' }
  const { child, found } = await startListening(process.execPath, words, /^listening on (\S+)$/, { env })
  const version = readPeerVersion(place, '@feathersjs/feathers')
  return { child, pid: child.pid, url: found[1], headers: {}, api: { kind: 'feathers' }, version }
}
