// A node of the service in its own process, to be raced against and killed: serve.mjs <database> <user> <password>.
// MUTANT=answersBeforeCommit, or another name of test/mutants/records.ts, replaces the database with that mutant after set-up; FIRST_MUTANT
// replaces it from the beginning. MODELS is a file with other models than test/models.ts. A message sets the point at which it kills
// itself: see failpoints.ts. SHIFT shifts its clock: see shift-clock.mjs.
import './shift-clock.mjs'
import { subscribe } from 'node:diagnostics_channel'
import { createJiti } from 'jiti'
import { createServer } from '../../dist/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../dist/http/settings.js'
import { createApp } from '../../dist/service/create-app.js'
import { ensureFirstAdmin } from '../../dist/service/auth/accounts.js'
import { openDatabase } from '../../dist/store/open.js'

const [db, username, password] = process.argv.slice(2)
const jiti = createJiti(import.meta.url)
const { models } = await jiti.import(process.env['MODELS'] ?? '../models.ts')

// Ends when its parent is gone, because nobody else would end it.
process.on('disconnect', () => process.exit())

// Prints failures as log lines: see watchLog in test/server-failures.ts.
subscribe('http.server.response.finish', ({ request: { method, url }, response: { statusCode: status } }) => {
  if (status >= 500) process.stderr.write(`${JSON.stringify({ method, url, status })}\n`)
})

const first = process.env['FIRST_MUTANT']
const options = { poolSize: 10, statementTimeoutMs: 10_000 }
const database = first ? { database: await createMutant(first, await openDatabase(db, options)) } : {}
// With WEBHOOKS it delivers webhooks, also to this machine, with this user agent.
const agent = process.env['WEBHOOKS']
const calling = agent ? { runsBackgroundWork: true, outgoing: { userAgent: agent, timeoutMs: 2_000 } } : {}
// With BACKGROUND it runs hooks after the commit.
const background = process.env['BACKGROUND'] ? { runsBackgroundWork: true } : {}
const settings = { db, webhookAllow: ['127.0.0.1'] }
// With OWN_CLOCK it is a mutant that goes by the clock of its machine.
const clock = process.env['OWN_CLOCK'] ? { clock: Date } : {}
const app = await createApp({ models, settings, ...database, ...calling, ...background, ...clock })
await ensureFirstAdmin(app, username, password)
const { withFailpoints } = await jiti.import('./failpoints.ts')
const mutant = process.env['MUTANT']
const served = { ...app, db: withFailpoints(mutant ? await createMutant(mutant, app.db) : app.db) }
const server = await createServer(served, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
const [url] = await server.listen()
process.stdout.write(`listening on ${url}\n`)

async function createMutant(name, db) {
  const mutants = await jiti.import('../mutants/records.ts')
  return mutants[name](db)
}
