// Reads the history of a record with many large changes in a process with little memory: history-memory.mjs <database> [whole]. With
// `whole`, it runs the mutant whose pages of the change log are limited by their number only.
import { createApp } from '../../dist/service/create-app.js'
import { addUser } from '../../dist/service/auth/accounts.js'
import { recordsFor, recordsForPrincipal } from '../../dist/service/records/records.js'
import { SERVICE_PRINCIPAL } from '../../dist/service/context/principal.js'
import { findCredentials } from '../../dist/store/auth/accounts.js'
import { FunctionQueryable } from '../../dist/store/engine/unshared.js'
import { openDatabase } from '../../dist/store/open.js'

const [url, how] = process.argv.slice(2)
const UPDATES = 60
const MODEL = 'mem.Note'
const fields = { title: { type: 'string' }, text: { type: 'text' } }

const database = await openDatabase(url, { poolSize: 2, statementTimeoutMs: 60_000 })
const unbound = (db) =>
  new FunctionQueryable((sql, params) =>
    db.all(sql.replace(/"before" < \d+/, '"before" < 1000000000'), params),
  )
const queryPool = Object.assign(unbound(database.queryPool), {
  snapshot: (work) => database.queryPool.snapshot((db) => work(unbound(db))),
})
const mutant = {
  ...{ dialect: database.dialect, reader: database.reader, queryPool, blobs: database.blobs },
  ...{ commits: database.commits, transaction: database.transaction.bind(database) },
  ...{ close: () => database.close(), writability: () => database.writability() },
  gauges: () => database.gauges(),
}
const app = await createApp({
  models: [{ file: 'note.json', definition: { name: MODEL, fields } }],
  database: how === 'whole' ? mutant : database,
})
const root = recordsForPrincipal(app, SERVICE_PRINCIPAL)
await root.create('verso.auth.Role', {
  name: 'notes of t',
  permissions: [{ model: MODEL, canRead: true, condition: "self.title = 't'" }],
})
await addUser(app, { username: 'reader', password: 'a long and unused one', roles: ['notes of t'] })
const { user } = await findCredentials(app.db.reader, 'reader')
const reader = recordsFor(app, user)

const { data } = await root.create(MODEL, { title: 't', text: 'x' })
for (let version = 0; version < UPDATES; version++) {
  const text = String.fromCharCode(97 + (version % 26)).repeat(1_000_000)
  await root.update(MODEL, data.id, { version, text })
}
process.stdout.write('written\n')

/** Reads all pages; counts changes and pages. */
async function walk(records) {
  let [changes, pages] = [0, 0]
  for (let offset = 0; offset !== undefined; pages++) {
    const page = await records.history(MODEL, data.id, { offset, limit: 1_000 })
    changes += page.data.length
    offset = page.next
  }
  return { changes, isInPages: pages > 10 }
}

const first = await root.readAt(MODEL, data.id, 0)
const { total, data: newest } = await reader.history(MODEL, data.id, { limit: 1 })
const { data: oldest } = await reader.changes({ since: 0, limit: 1, model: MODEL })
const answer = {
  text: first.text,
  ...(await walk(root)),
  total,
  newest: newest[0]?.version,
  oldest: oldest[0]?.version,
}
process.stdout.write(`${JSON.stringify(answer)}\n`)
await app.close()
