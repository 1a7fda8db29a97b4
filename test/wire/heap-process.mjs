// A service with Basic credentials in a process whose heap contains nothing of the tests: heap-process.mjs <database> <snapshot>. The third
// argument "keeping" runs the mutant that keeps the received headers.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { getHeapSnapshot } from 'node:v8'
import { createJiti } from 'jiti'
import { createApp } from '../../dist/service/create-app.js'
import { createServer } from '../../dist/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../dist/http/settings.js'

const [db, file, mutant] = process.argv.slice(2)
const { models } = await createJiti(import.meta.url).import('../models.ts')

// Ends when its parent is gone, because nobody else would end it.
process.on('disconnect', () => process.exit())

const app = await createApp({ models, settings: { db } })
const settings = {
  ...DEFAULT_HTTP_SETTINGS,
  host: '127.0.0.1',
  port: 0,
  basicAuth: true,
  trustProxy: ['127.0.0.1'],
}
const server = await createServer(app, settings)
const [url] = await server.listen()

const kept = []
if (mutant === 'keeping')
  server.fastify.server.on('request', ({ headers }) => kept.push(headers.authorization))

process.on('message', async () => {
  await pipeline(getHeapSnapshot(), createWriteStream(file))
  process.send('done')
})
process.send(url)
