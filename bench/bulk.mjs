// npm run bench:bulk: compares the CPU time of 1,000 records in one request with that of the same records in
// `verso import`. It reports and asserts nothing; see docs/operations/performance.md.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { buildContact, formatPhone, MODEL, writeLines } from './contacts.mjs'
import { readFlags } from './flags.mjs'
import { findMedian, formatSpread, formatWhole } from './numbers.mjs'
import { runBenchmark, getFolder } from './processes.mjs'
import { describeMachine } from './report.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { readCpuUs, readExactCpuUs } from './usage.mjs'
import { buildIfMissing, createEmptyDatabase, MODELS, runVerso, startVerso } from './verso.mjs'

const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' }
const GOAL = 3
/** One mass update, one batch and one list of records take at most this many. */
const ROWS = 1_000
/** An import of few rows is mostly the start of the program, so the cost of a row is that of rows beyond the first ones. */
const IMPORTED = { few: ROWS, many: 21 * ROWS }
const WARM_UP_ROUNDS = 3
/** Each request of a round that updates records changes others. */
const UPDATES_PER_ROUND = 3
const TICK_US = 10_000
const USAGE = `npm run bench:bulk -- [--rounds 12] [--engines sqlite,postgres] [--markdown <file>]`

/** Returns the CPU time of children that have ended. */
function readEndedCpuUs() {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_US
}

/** Returns the CPU time of one import: of the program, and of the database server. */
async function measureImport(engine, rows, round) {
  const { db, databasePid } = await createEmptyDatabase(engine, `bulk_${round}_${rows}`)
  const file = path.join(getFolder(), `bulk-${rows}`, `${MODEL}.ndjson`)
  const readUs = () => readEndedCpuUs() + (databasePid === undefined ? 0 : readCpuUs(databasePid))
  const before = readUs()
  await runVerso(['import', '--models', MODELS.contact, '--db', db, file])
  const cpuUs = readUs() - before
  if (engine === 'sqlite')
    for (const end of ['', '-wal', '-shm']) rmSync(`${db.slice('sqlite:'.length)}${end}`, { force: true })
  return cpuUs
}

/** The CPU time of 1,000 rows in an import. */
async function measureImportedRows(engine, round) {
  const few = await measureImport(engine, IMPORTED.few, round)
  const many = await measureImport(engine, IMPORTED.many, round)
  return ((many - few) / (IMPORTED.many - IMPORTED.few)) * ROWS
}

/** Returns operation → a function that sends one request about 1,000 records. */
function buildOperations(server) {
  const { headers } = server.opened.cookie
  let turn = 0
  let block = 0
  /** Returns the ids and versions of 1,000 records that no other request has changed. */
  const takeBlock = () => {
    block += 1
    return Array.from({ length: ROWS }, (_, index) => ({ id: (block - 1) * ROWS + index + 1, version: 0 }))
  }
  const post = async (target, body) => {
    const response = await fetch(server.url + target, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = await response.json()
    if (response.status !== 200 || answer.status !== 0) throw new Error(JSON.stringify(answer).slice(0, 500))
    return answer
  }
  const collection = `/ws/rest/${MODEL}`
  const buildNew = () => Array.from({ length: ROWS }, (_, index) => buildContact(turn * ROWS + index))
  const changePhone = (index) => ({ phone: formatPhone(turn * ROWS + index) })
  const operations = {
    'create, records': () => post(collection, { records: buildNew() }),
    'create, batch': () =>
      post('/ws/batch', { requests: buildNew().map((data) => ({ op: 'create', model: MODEL, data })) }),
    'update, records': () =>
      post(collection, {
        records: takeBlock().map((key, index) => ({ ...key, ...changePhone(index) })),
      }),
    'update, batch': () =>
      post('/ws/batch', {
        requests: takeBlock().map((key, index) => ({
          ...{ op: 'update', model: MODEL },
          ...{ ...key, data: changePhone(index) },
        })),
      }),
    'mass update': () => {
      const [{ id }] = takeBlock()
      const criteria = [{ fieldName: 'id', operator: 'between', value: id, value2: id + ROWS - 1 }]
      return post(`${collection}/updateMass`, { data: { criteria }, records: [{ phone: 'none' }] })
    },
  }
  return {
    names: Object.keys(operations),
    run: async (name) => {
      turn += 1
      await operations[name]()
    },
  }
}

async function measureOn(engine, { rounds }) {
  const rows = UPDATES_PER_ROUND * (WARM_UP_ROUNDS + rounds) * ROWS
  const server = await startVerso(engine, { rows, clients: ['cookie'], timedStarts: 1 })
  const { names, run } = buildOperations(server)
  const readUs = () =>
    readExactCpuUs(server.pid) + (server.databasePid === undefined ? 0 : readExactCpuUs(server.databasePid))
  for (let round = 0; round < WARM_UP_ROUNDS; round++) for (const name of names) await run(name)
  const spent = new Map(names.map((name) => [name, []]))
  const imported = []
  for (let round = 0; round < rounds; round++) {
    // The order alternates, so that neither always runs first.
    const order = round % 2 === 0 ? names : names.toReversed()
    for (const name of order) {
      const before = readUs()
      await run(name)
      spent.get(name).push(readUs() - before)
    }
    if (round % 3 === 0) imported.push(await measureImportedRows(engine, round))
  }
  const base = findMedian(imported)
  return names.map((name) => {
    const ratios = spent.get(name).map((cpuUs) => cpuUs / base)
    const us = [formatWhole(findMedian(spent.get(name)) / ROWS), formatWhole(base / ROWS)]
    return [
      ENGINES[engine],
      name,
      ...us,
      formatSpread(ratios),
      findMedian(ratios) <= GOAL ? 'reached' : 'missed',
    ]
  })
}

await runBenchmark(async () => {
  const flags = readFlags(USAGE, {
    ...{ rounds: { number: 12 }, engines: { names: Object.keys(ENGINES) }, markdown: { file: true } },
  })
  await buildIfMissing()
  const about = [
    describeMachine(),
    `${formatWhole(ROWS)} contacts in one request; CPU time of the service, and of the PostgreSQL server, for each record. ` +
      `An import is measured between ${formatWhole(IMPORTED.few)} and ${formatWhole(IMPORTED.many)} contacts, without its start. Medians of ${flags.rounds} rounds.`,
  ]
  console.log(about.join('\n'))
  for (const rows of Object.values(IMPORTED)) {
    const folder = path.join(getFolder(), `bulk-${rows}`)
    mkdirSync(folder, { recursive: true })
    await writeLines(path.join(folder, `${MODEL}.ndjson`), rows)
  }
  const rows = []
  for (const engine of flags.engines) rows.push(...(await measureOn(engine, flags)))
  const headings = ['engine', 'request', 'CPU µs', 'import, CPU µs', 'request ÷ import', `goal ≤ ${GOAL}`]
  console.log(`\n${printText({ headings, rows })}`)
  if (flags.markdown !== undefined)
    writeSection(flags.markdown, 'bulk', [...about, printMarkdown({ headings, rows })].join('\n\n'))
})
