// A service that takes Basic credentials, in a process whose heap holds nothing of the tests: heap-process.mjs <database> <snapshot>.
// The word "keeping" behind them makes a twin of it, which keeps the headers that it was sent.
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { getHeapSnapshot } from 'node:v8'
import { createJiti } from 'jiti'
import { createApp, createServer, DEFAULT_HTTP_SETTINGS } from '../../dist/index.js'

const [db, file, twin] = process.argv.slice(2)
const { models } = await createJiti(import.meta.url).import('../models.ts')

// Whoever started this is gone: nobody else would end it.
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
if (twin === 'keeping') server.fastify.server.on('request', ({ headers }) => kept.push(headers.authorization))

process.on('message', async () => {
  await pipeline(getHeapSnapshot(), createWriteStream(file))
  process.send('done')
})
process.send(url)
