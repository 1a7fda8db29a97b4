// npm run bench:log: measures the cost of the change log and the idempotency table. It alternates between the service
// as it is and one whose database drops statements on these tables.
import path from 'node:path'
import { createApp } from '../dist/service/create-app.js'
import { createServer } from '../dist/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../dist/http/settings.js'
import { loadCatalog } from '../dist/cli/models/models.js'
import { buildSampleContact } from '../dist/cli/serve/sample.js'
import { addUser } from '../dist/service/auth/accounts.js'
import { recordsForPrincipal } from '../dist/service/records/records.js'
import { SERVICE_PRINCIPAL } from '../dist/service/context/principal.js'
import { LAST_SEQ_SQL } from '../dist/store/log/feed.js'
import { FunctionQueryable, UnsharedTransaction } from '../dist/store/engine/unshared.js'
import { openDatabase } from '../dist/store/open.js'
import { logIn } from './client-kinds.mjs'
import { formatSpread } from './numbers.mjs'
import { runBenchmark, getFolder, startLoadGenerator, startPostgresServer } from './processes.mjs'

const MODEL = 'com.axelor.contact.db.Contact'
const USER = { username: 'ada', password: 'a long and unused one' }
const CONNECTIONS = 32
const ROWS = 1_000
const SECONDS = 1
const ROUNDS = 5
const OPTIONS = { poolSize: 10, statementTimeoutMs: 10_000 }

const OPERATIONS = {
  read: 'read one record',
  list0: 'find, with X-Commit-Seq',
  create: 'create',
  update: 'update',
  keyedCreate: 'create, with an Idempotency-Key',
  keyedUpdate: 'update, with an Idempotency-Key',
}

async function measureOn(engine, [withBoth, withNeither]) {
  const both = await startService(withBoth, (db) => db)
  const neither = await startService(withNeither, withoutLog)
  const load = startLoadGenerator()
  try {
    const lines = []
    for (const [operation, title] of Object.entries(OPERATIONS)) {
      const ratios = await measureRatios(load, operation, both, neither)
      lines.push(`  ${`${engine}: ${title}`.padEnd(52)} ${formatSpread(ratios)}`)
    }
    return lines
  } finally {
    await load.end()
    for (const { app, server } of [both, neither]) {
      await server.close()
      await app.close()
    }
  }
}

async function startService(url, change) {
  const models = await loadCatalog(new URL('../examples/contacts', import.meta.url).pathname)
  const database = change(await openDatabase(url, OPTIONS))
  const app = await createApp({ settings: { db: url }, models, database })
  await addUser(app, { ...USER, roles: ['administrator'] })
  const records = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  await Promise.all(
    Array.from({ length: ROWS }, (_, index) => records.create(MODEL, buildSampleContact(index))),
  )
  const http = {
    ...DEFAULT_HTTP_SETTINGS,
    host: '127.0.0.1',
    port: 0,
    rateLimitPerMinute: 0,
    maxEventLoopDelayMs: 0,
  }
  const server = await createServer(app, http)
  const [address] = await server.listen()
  const api = { kind: 'verso', model: MODEL }
  return { app, server, about: { pid: process.pid, url: address, api, ...(await logIn(address, USER)) } }
}

/** Wraps a database so that no statement reaches the change log or the idempotency table. */
function withoutLog(db) {
  const isDropped = (sql) => /\bverso_(log|idempotency)\b/.test(sql) && !/^(create|alter)/.test(sql)
  const dropping = (tx) =>
    Object.assign(new UnsharedTransaction(), {
      all: async (sql, params) => (isDropped(sql) ? [] : tx.all(sql, params)),
      // One row, as for an idempotency key that is not in use.
      run: async (sql, params) => (isDropped(sql) ? 1 : tx.run(sql, params)),
      insert: (sql, params) => tx.insert(sql, params),
    })
  const withoutLastSeq = (inner) =>
    new FunctionQueryable((sql, params) => inner.all(sql.replaceAll(LAST_SEQ_SQL, '0'), params))
  return {
    dialect: db.dialect,
    blobs: db.blobs,
    commits: db.commits,
    reader: withoutLastSeq(db.reader),
    queryPool: Object.assign(withoutLastSeq(db.queryPool), {
      snapshot: (work) => db.queryPool.snapshot((inner) => work(withoutLastSeq(inner))),
    }),
    writability: () => db.writability(),
    gauges: () => db.gauges(),
    transaction: (work, options) => db.transaction((tx) => work(dropping(tx)), options),
    close: () => db.close(),
  }
}

async function measureRatios(load, operation, both, neither) {
  const ratios = []
  for (let round = -1; round < ROUNDS; round++) {
    // The order alternates, so that neither always runs first.
    const order = round % 2 === 0 ? [both, neither] : [neither, both]
    const perSecond = new Map()
    for (const service of order) perSecond.set(service, await runLoad(load, operation, service))
    if (round >= 0) ratios.push(perSecond.get(both) / perSecond.get(neither))
  }
  return ratios
}

async function runLoad(load, operation, { about }) {
  const result = await load.run({
    ...{ operation, server: about, connections: CONNECTIONS, rows: ROWS, seconds: SECONDS },
  })
  // Requests in flight at the end of the previous run cause a few conflicts.
  const faults = result.faults.reduce((sum, [, count]) => sum + count, 0)
  if (faults > CONNECTIONS) throw new Error(`${operation}: ${JSON.stringify(result.faults)}`)
  return result.perSecond
}

await runBenchmark(async () => {
  const files = ['both', 'neither'].map((name) => `sqlite:${path.join(getFolder(), name)}.db`)
  const { database } = await startPostgresServer()
  console.log(
    `the Log and idempotency keys ÷ the same service without them, requests/s, ${CONNECTIONS} connections; middle (lowest–highest) of ${ROUNDS} rounds`,
  )
  console.log((await measureOn('SQLite', files)).join('\n'))
  console.log((await measureOn('PostgreSQL', [await database(), await database()])).join('\n'))
})
