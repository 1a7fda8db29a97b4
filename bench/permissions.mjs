// npm run bench:permissions: measures the cost of permissions. It alternates between an administrator and a user whose
// role has a condition.
import path from 'node:path'
import { loadCatalog } from '../dist/cli/models/models.js'
import { buildSampleContact } from '../dist/cli/serve/sample.js'
import { addUser } from '../dist/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../dist/service/context/principal.js'
import { createApp } from '../dist/service/create-app.js'
import { createContext } from '../dist/service/context/context.js'
import { recordsForPrincipal } from '../dist/service/records/records.js'
import { getVisibleCriteria, getSelect } from '../dist/service/access/visible-records.js'
import { scanById } from '../dist/store/records/records.js'
import { readFlags } from './flags.mjs'
import { formatSpread } from './numbers.mjs'
import { runBenchmark, getFolder } from './processes.mjs'

const MODEL = 'com.axelor.contact.db.Contact'
const CONDITION = 'createdBy = :user'
const PAGE = 40
const CHUNK = 500
const ROUNDS = 15
const WARM_UP_ROUNDS = 3
/** A prime stride spreads the ids over the whole table. */
const STRIDE = 7919

/** Returns one line for each kind of call: the ratio of times as median, lowest and highest of the rounds. */
async function measurePermissions(rows) {
  const models = await loadCatalog(new URL('../examples/contacts', import.meta.url).pathname)
  const app = await createApp({ settings: { db: `sqlite:${path.join(getFolder(), 'verso.db')}` }, models })
  try {
    const model = app.catalog.get(MODEL)
    const principals = await createPrincipals(app)
    await createContacts(recordsForPrincipal(app, principals.admin), rows)
    const calls = buildCalls(app, model, rows)
    const lines = [
      `permissions: a role with the condition ${CONDITION} ÷ everything permitted, time for each call`,
    ]
    for (const [name, { times, call }] of Object.entries(calls)) {
      const ratios = await measureRatios(principals, times, call)
      lines.push(`  ${name.padEnd(52)} ${formatSpread(ratios)}`)
    }
    return lines
  } finally {
    await app.close()
  }
}

async function createContacts(records, rows) {
  for (let start = 0; start < rows; start += CHUNK) {
    const chunk = Array.from({ length: Math.min(CHUNK, rows - start) }, (_, index) =>
      buildSampleContact(start + index),
    )
    await Promise.all(chunk.map((contact) => records.create(MODEL, contact)))
  }
}

/** Returns one user twice, as administrator and with the role only, so that the condition holds for every record. */
async function createPrincipals(app) {
  // Both may read the related records, so that both get the same responses.
  const others = app.catalog.models.filter(({ name }) => name !== MODEL)
  const permissions = [
    { model: MODEL, canRead: true, condition: CONDITION },
    ...others.map(({ name }) => ({ model: name, canRead: true })),
  ]
  await recordsForPrincipal(app, SERVICE_PRINCIPAL).create('verso.auth.Role', { name: 'clerk', permissions })
  const id = await addUser(app, { username: 'ada', password: 'a long and unused one', roles: ['clerk'] })
  const user = { id, version: 0, username: 'ada', name: 'ada' }
  return { admin: { ...SERVICE_PRINCIPAL, user }, clerk: await app.authorizer.resolvePrincipal(user) }
}

function buildCalls(app, model, rows) {
  const table = app.tables.of(model)
  return {
    'read one record': {
      times: 2_000,
      call: (principal, turn) =>
        recordsForPrincipal(app, principal).read(MODEL, 1 + ((turn * STRIDE) % rows)),
    },
    [`the page query of a find, ${PAGE} records`]: {
      times: 400,
      call: (principal, turn) =>
        scanById(app.db.reader, table, {
          after: (turn * STRIDE) % (rows - PAGE),
          limit: PAGE,
          select: getSelect(createContext(app, principal), model, 'list'),
          visible: getVisibleCriteria(principal, model),
        }),
    },
    [`a find with its exact total, counted among ${rows}`]: {
      times: 20,
      call: (principal) => recordsForPrincipal(app, principal).find(MODEL, { limit: PAGE }),
    },
  }
}

async function measureRatios({ admin, clerk }, times, call) {
  const ratios = []
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    // The order alternates, so that neither always runs first.
    const order = round % 2 === 0 ? [admin, clerk] : [clerk, admin]
    const spent = new Map()
    for (const principal of order)
      spent.set(principal, await timeCalls(times, (turn) => call(principal, turn)))
    if (round >= 0) ratios.push(spent.get(clerk) / spent.get(admin))
  }
  return ratios
}

async function timeCalls(times, call) {
  const start = performance.now()
  for (let turn = 0; turn < times; turn++) await call(turn)
  return performance.now() - start
}

await runBenchmark(async () => {
  const { rows } = readFlags('npm run bench:permissions -- [--rows 10000]', { rows: { number: 10_000 } })
  console.log((await measurePermissions(rows)).join('\n'))
})
