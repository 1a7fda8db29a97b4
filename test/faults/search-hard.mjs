// Sends the most expensive searches to a service in its own process and prints the measured delays: search-hard.mjs <database> <number of
// searches> [kind]. MUTANT=searchingOnReader, or another name of test/mutants/records.ts, replaces the database with that mutant.
import { createJiti } from 'jiti'
import { createApp } from '../../dist/service/create-app.js'
import { recordsFor } from '../../dist/service/records/records.js'
import { addUser } from '../../dist/service/auth/accounts.js'
import { rebuildCounters } from '../../dist/service/maintenance/counters.js'
import { openDatabase } from '../../dist/store/open.js'

/** Bounds the time of each search. */
const STATEMENT_MS = 300
const POOL_SIZE = 10

const [url, count, kind] = process.argv.slice(2)
const jiti = createJiti(import.meta.url)
const { models } = await jiti.import('../models.ts')
const { fill, KINDS, measure, worstSearches } = await jiti.import('./worst-searches.ts')
const mutants = await jiti.import('../mutants/records.ts')

// Ends when its parent is gone, because nobody else would end it.
process.on('disconnect', () => process.exit())

const mutant = mutants[process.env['MUTANT'] ?? ''] ?? ((db) => db)
const setUp = await createApp({ models, settings: { db: url, statementTimeoutMs: 60_000 } })
const id = await addUser(setUp, {
  username: 'ada',
  name: 'Ada',
  password: 'correct horse battery staple',
  roles: ['administrator'],
})
await fill(setUp.db)
for (const model of setUp.catalog.models) await rebuildCounters(setUp, model)
await setUp.close()

const database = mutant(await openDatabase(url, { poolSize: POOL_SIZE, statementTimeoutMs: STATEMENT_MS }))
const app = await createApp({ models, settings: { db: url }, database })
const records = recordsFor(app, { id, version: 0, username: 'ada', name: 'Ada' })
const searches = kind
  ? Array.from({ length: Number(count) }, (_, number) => KINDS[kind](number))
  : worstSearches(Number(count))
process.send(await measure(records, searches))
await app.close()
process.disconnect()
