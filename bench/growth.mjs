// npm run bench:growth: measures a find with its exact total as the table grows. It reports and asserts nothing; see
// docs/operations/performance.md.
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createApi, serializeRequest, PAGE } from './apis.mjs'
import { logIn } from './client-kinds.mjs'
import { COMMON, fill } from './fill.mjs'
import { readFlags } from './flags.mjs'
import { measureCost } from './lone-client.mjs'
import { formatShort, formatWhole } from './numbers.mjs'
import { runBenchmark, stopChild } from './processes.mjs'
import { describeMachine } from './report.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { addUser, buildIfMissing, createEmptyDatabase, MODELS, serve } from './verso.mjs'

const MODEL = 'bench.Resident'
const SIZES = { '1k': 1_000, '10k': 10_000, '100k': 100_000, '1M': 1_000_000, '10M': 10_000_000 }
const USUAL = ['1k', '100k', '1M', '10M']
const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' }
const SHARES = { 0: '0', 0.5: '50 %', 0.99: '99 %' }
const FILTER = `country = '${COMMON}'`
const COUNT_TIMEOUT_MS = 600_000
const BYTES_A_RECORD = 900
const GOAL = 2
const USAGE = `npm run bench:growth -- [--sizes ${USUAL.join(',')}] [--engines sqlite,postgres] [--seconds 2] [--markdown <file>]`

/** Counts the records that were inserted by SQL. `verso verify` would also report that the change log does not have them. */
async function countRecords(db) {
  // Dynamic imports, because the benchmark builds `dist` if it is missing.
  const { loadCatalog } = await import('../dist/cli/models/models.js')
  const { createApp } = await import('../dist/service/create-app.js')
  const { rebuildCounters } = await import('../dist/service/maintenance/counters.js')
  const models = await loadCatalog(MODELS.resident)
  const app = await createApp({ settings: { db, statementTimeoutMs: COUNT_TIMEOUT_MS }, models })
  try {
    await rebuildCounters(app, app.catalog.get(MODEL))
  } finally {
    await app.close()
  }
}

async function measureOn(engine, { sizes, seconds }) {
  const { db, databasePid } = await createEmptyDatabase(engine, 'growth')
  // The first start creates the tables.
  await stopChild((await serve(db, MODELS.resident)).child)
  await addUser(db, MODELS.resident, [MODEL])
  const lines = []
  let rows = 0
  for (const size of sizes) {
    process.stderr.write(`${ENGINES[engine]}: filling ${size}\n`)
    await fill(engine, db, rows, SIZES[size])
    rows = SIZES[size]
    await countRecords(db)
    const service = await serve(db, MODELS.resident, ['--statement-timeout', '60s'])
    const { headers } = await logIn(service.url)
    const target = { ...service, headers, pids: [service.pid, databasePid].filter(Boolean) }
    for (const filter of [undefined, FILTER])
      for (const share of Object.keys(SHARES))
        lines.push({
          engine,
          size,
          filter,
          share,
          ...(await measureFind(target, { rows, filter, share }, seconds)),
        })
    await stopChild(service.child)
  }
  return lines
}

/** `share` is the offset as a share of the matching records. */
async function measureFind(service, { rows, filter, share }, seconds) {
  const total = filter ? Math.floor(rows / 5) : rows
  const offset = Math.min(Math.floor(total * Number(share)), total - PAGE)
  const request = createApi({ kind: 'verso', model: MODEL }).list(offset, filter)
  await checkPage(service, request, total, filter ? (offset + 1) * 5 : offset + 1)
  return measureCost(service, serializeRequest(request, service.headers), seconds)
}

async function checkPage({ url, headers }, { path }, total, first) {
  const response = await fetch(`${url}${path}`, { headers })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${text.slice(0, 200)}`)
  const answer = JSON.parse(text)
  if (answer.total !== total) throw new Error(`${path} tells a total of ${answer.total} instead of ${total}`)
  if (answer.data.length !== PAGE || answer.data[0].id !== first)
    throw new Error(`${path} begins with ${answer.data[0]?.id} instead of ${first}`)
}

function buildTable(lines) {
  const isAlike = (one, other) => ['engine', 'filter', 'share'].every((key) => one[key] === other[key])
  return {
    headings: ['engine', 'find', 'offset', 'records', 'ms', 'CPU µs', 'ms ÷ 100k', 'CPU ÷ 100k'],
    texts: 3,
    rows: [...lines]
      .sort((a, b) => compareLines(a, b))
      .map((line) => {
        const base = lines.find((other) => other.size === '100k' && isAlike(line, other))
        return [
          ...[ENGINES[line.engine], line.filter ? `country = …` : 'all', SHARES[line.share], line.size],
          ...[
            formatShort(line.ms),
            formatWhole(line.cpuUs),
            formatShort(line.ms / base?.ms),
            formatShort(line.cpuUs / base?.cpuUs),
          ],
        ]
      }),
  }
}

/** Sorts the sizes of each kind of find next to each other. */
function compareLines(a, b) {
  const places = ({ engine, filter, share, size }) => [
    ...[Object.keys(ENGINES).indexOf(engine), filter ? 1 : 0, Number(share), SIZES[size]],
  ]
  const [one, other] = [places(a), places(b)]
  const differing = one.findIndex((place, index) => place !== other[index])
  return differing < 0 ? 0 : one[differing] - other[differing]
}

function buildNotes(lines) {
  const notes = []
  for (const engine of Object.keys(ENGINES)) {
    const at = (size) =>
      lines.find(
        (line) => line.engine === engine && line.size === size && line.share === '0.99' && !line.filter,
      )
    const times = (key) => at('10M')?.[key] / at('100k')?.[key]
    const worst = Math.max(times('ms'), times('cpuUs'))
    if (Number.isFinite(worst))
      notes.push(
        `goal: 10M at offset 99 % within ${GOAL}× of 100k, ${ENGINES[engine]}: ${formatShort(times('ms'))}× the time, ${formatShort(times('cpuUs'))}× the CPU, ${worst <= GOAL ? 'reached' : 'missed'}`,
      )
  }
  return notes
}

await runBenchmark(async () => {
  const flags = readFlags(USAGE, {
    sizes: { names: Object.keys(SIZES), initial: USUAL },
    engines: { names: Object.keys(ENGINES) },
    seconds: { number: 2 },
    markdown: { file: true },
  })
  const { bavail, bsize } = statfsSync(tmpdir())
  const needed = SIZES[flags.sizes.at(-1)] * BYTES_A_RECORD * flags.engines.length
  if (bavail * bsize < needed)
    throw new Error(`${tmpdir()} needs ${formatWhole(needed / 1e9)} GB; set TMPDIR`)
  await buildIfMissing()
  const about = [
    describeMachine(),
    `One lone client over HTTP, pages of ${PAGE} in the default order, with exact totals; medians.`,
  ]
  console.log(about.join('\n'))
  const lines = []
  for (const engine of flags.engines) lines.push(...(await measureOn(engine, flags)))
  const [table, notes] = [buildTable(lines), buildNotes(lines)]
  console.log(['', printText(table), '', ...notes].join('\n'))
  const list = notes.map((note) => `- ${note}`).join('\n')
  if (flags.markdown !== undefined)
    writeSection(flags.markdown, 'growth', [...about, printMarkdown(table), list].join('\n\n'))
})
