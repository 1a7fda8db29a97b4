// What the Log and the idempotency table cost: the same writes with both, and with a database that drops what would go there, in turns.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createJiti } from 'jiti'
import { loadModels } from '../dist/cli/models.js'
import { sampleContact } from '../dist/cli/sample.js'
import { addUser } from '../dist/service/accounts/accounts.js'
import { createApp } from '../dist/service/create-app.js'
import { recordsOf } from '../dist/service/records.js'
import { SERVICE } from '../dist/service/rights/caller.js'
import { openDatabase } from '../dist/store/open.js'

const MODEL = 'com.axelor.contact.db.Contact'
const CLIENTS = 32
/** PostgreSQL takes longer for each: it waits for the disk. */
const WRITES_EACH = { SQLite: 40, PostgreSQL: 8 }
const ROUNDS = 11
const WARM_UP_ROUNDS = 3
const OPTIONS = { poolSize: 10, statementTimeoutMs: 10_000 }

/** Answers lines for people: throughput with both ÷ throughput without, the middle one of the rounds, and from lowest to highest. */
export async function measureLogCost() {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-bench-'))
  const { startPostgres, createDatabase } = await createJiti(import.meta.url).import('../test/postgres.ts')
  const postgres = await startPostgres({ durable: true })
  try {
    const files = ['both', 'neither'].map((name) => `sqlite:${path.join(folder, name)}.db`)
    const databases = [await createDatabase(postgres.url), await createDatabase(postgres.url)]
    return [
      `the Log and idempotency keys ÷ a build without them, writes a second, ${CLIENTS} clients`,
      ...(await measureOn('SQLite', files)),
      ...(await measureOn('PostgreSQL', databases)),
    ]
  } finally {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureOn(engine, [withBoth, withNeither]) {
  const both = await start(withBoth, (db) => db)
  const neither = await start(withNeither, withoutLog)
  try {
    const lines = []
    for (const [name, work] of Object.entries(WORK)) {
      const ratios = await measure(both, neither, work, WRITES_EACH[engine])
      lines.push(`  ${`${engine}: ${name}`.padEnd(52)} ${spread(ratios)}`)
    }
    return lines
  } finally {
    for (const { app } of [both, neither]) await app.close()
  }
}

async function start(url, change) {
  const models = await loadModels(new URL('../examples/contacts', import.meta.url).pathname)
  const app = await createApp({
    settings: { db: url },
    models,
    database: change(await openDatabase(url, OPTIONS)),
  })
  const id = await addUser(app, {
    username: 'ada',
    password: 'a long and unused one',
    roles: ['administrator'],
  })
  const records = recordsOf(app, { ...SERVICE, actor: { id, version: 0, username: 'ada', name: 'ada' } })
  const own = await Promise.all(
    Array.from(
      { length: CLIENTS },
      async (_, index) => (await records.create(MODEL, sampleContact(index))).data,
    ),
  )
  return { app, records, own: own.map(({ id, version }) => ({ id, version })), keys: 0 }
}

/** The switch: nothing reaches the Log or the table of the keys, and nothing is asked of them. */
function withoutLog(db) {
  const isDropped = (sql) => /\bverso_(log|idempotency)\b/.test(sql) && !sql.startsWith('create')
  const dropping = (tx) => ({
    all: async (sql, params) => (isDropped(sql) ? [] : tx.all(sql, params)),
    // As many rows as a key that nobody has used.
    run: async (sql, params) => (isDropped(sql) ? 1 : tx.run(sql, params)),
    insert: (sql, params) => tx.insert(sql, params),
  })
  const { reader, searcher, contents, commits } = db
  return {
    dialect: { ...db.dialect, lockLog: { with: '', from: '' } },
    ...{ reader, searcher, contents, commits },
    transaction: (work, options) => db.transaction((tx) => work(dropping(tx)), options),
    close: () => db.close(),
  }
}

const keyOf = (service) => ({ idempotencyKey: `key-${service.keys++}` })

const WORK = {
  'create, without a key': async ({ records }, client, turn) => {
    await records.create(MODEL, sampleContact(client + turn * CLIENTS))
  },
  'update, without a key': async (service, client, turn) => update(service, client, turn, {}),
  'create, with an Idempotency-Key': async (service, client, turn) => {
    await service.records.create(MODEL, sampleContact(client + turn * CLIENTS), keyOf(service))
  },
  'update, with an Idempotency-Key': async (service, client, turn) =>
    update(service, client, turn, keyOf(service)),
}

async function update({ records, own }, client, turn, options) {
  const record = own[client]
  const data = {
    version: record.version,
    phone: `+44 20 7946 ${String(turn).padStart(4, '0')}`,
    notes: `note ${turn}`,
  }
  record.version = (await records.update(MODEL, record.id, data, options)).data.version
}

async function measure(both, neither, work, times) {
  const ratios = []
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    // Nobody is always first.
    const order = round % 2 === 0 ? [both, neither] : [neither, both]
    const spent = new Map()
    for (const service of order) spent.set(service, await timeOf(service, work, times))
    if (round >= 0) ratios.push(spent.get(neither) / spent.get(both))
  }
  return ratios
}

async function timeOf(service, work, times) {
  const start = performance.now()
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let turn = 0; turn < times; turn++) await work(service, client, turn)
    }),
  )
  return performance.now() - start
}

function spread(ratios) {
  const sorted = [...ratios].sort((a, b) => a - b)
  const [low, middle, high] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  return `${middle.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
}
