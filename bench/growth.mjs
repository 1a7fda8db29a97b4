// npm run bench:growth: measures a find with its exact total as the table grows. It reports and asserts nothing; see
// docs/performance.md.
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { apiOf, bytesOf, PAGE } from './apis.mjs'
import { COMMON, fill } from './fill.mjs'
import { readFlags } from './flags.mjs'
import { costOf } from './lone-client.mjs'
import { short, whole } from './numbers.mjs'
import { benchmark, stop } from './processes.mjs'
import { machine } from './report.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { addUser, buildIfMissing, emptyDatabase, logIn, MODELS, serve, verso } from './verso.mjs'

const MODEL = 'bench.Resident'
const SIZES = { '1k': 1_000, '10k': 10_000, '100k': 100_000, '1M': 1_000_000, '10M': 10_000_000 }
const USUAL = ['1k', '100k', '1M', '10M']
const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' }
const SHARES = { 0: '0', 0.5: '50 %', 0.99: '99 %' }
const FILTER = `country = '${COMMON}'`
const BYTES_A_RECORD = 900
const GOAL = 2
const USAGE = `npm run bench:growth -- [--sizes ${USUAL.join(',')}] [--engines sqlite,postgres] [--seconds 2] [--markdown <file>]`

/** Rebuilds the counters, if this build has the command for it. */
async function rebuild(db) {
  const help = await verso(['help'])
  if (!/^\s+verify\b/m.test(help)) return false
  await verso(['verify', '--rebuild', '--models', MODELS.resident, '--db', db])
  return true
}

async function measureOn(engine, { sizes, seconds }) {
  const { db, databasePid } = await emptyDatabase(engine, 'growth')
  // The first start creates the tables.
  await stop((await serve(db, MODELS.resident)).child)
  await addUser(db, MODELS.resident, MODEL)
  const lines = []
  let held = 0
  for (const size of sizes) {
    process.stderr.write(`${ENGINES[engine]}: filling ${size}\n`)
    await fill(engine, db, held, SIZES[size])
    held = SIZES[size]
    const isRebuilt = await rebuild(db)
    const service = await serve(db, MODELS.resident, ['--statement-timeout', '60s'])
    const { headers } = await logIn(service.url)
    const asked = { ...service, headers, pids: [service.pid, databasePid].filter(Boolean) }
    for (const filter of [undefined, FILTER])
      for (const share of Object.keys(SHARES))
        lines.push({
          engine,
          size,
          filter,
          share,
          isRebuilt,
          ...(await measure(asked, held, filter, share, seconds)),
        })
    await stop(service.child)
  }
  return lines
}

/** `share` is the offset as a share of the matching records. */
async function measure(service, rows, filter, share, seconds) {
  const total = filter ? Math.floor(rows / 5) : rows
  const offset = Math.min(Math.floor(total * Number(share)), total - PAGE)
  const request = apiOf({ kind: 'verso', model: MODEL }).list(offset, filter)
  await check(service, request, total, filter ? (offset + 1) * 5 : offset + 1)
  return costOf(service, bytesOf(request, service.headers), seconds)
}

async function check({ url, headers }, { path }, total, first) {
  const response = await fetch(`${url}${path}`, { headers })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${text.slice(0, 200)}`)
  const answer = JSON.parse(text)
  if (answer.total !== total) throw new Error(`${path} tells a total of ${answer.total} instead of ${total}`)
  if (answer.data.length !== PAGE || answer.data[0].id !== first)
    throw new Error(`${path} begins with ${answer.data[0]?.id} instead of ${first}`)
}

function tableOf(lines) {
  const isAlike = (one, other) => ['engine', 'filter', 'share'].every((key) => one[key] === other[key])
  return {
    headings: ['engine', 'find', 'offset', 'records', 'ms', 'CPU µs', 'ms ÷ 100k', 'CPU ÷ 100k'],
    texts: 3,
    rows: [...lines]
      .sort((a, b) => order(a, b))
      .map((line) => {
        const base = lines.find((other) => other.size === '100k' && isAlike(line, other))
        return [
          ...[ENGINES[line.engine], line.filter ? `country = …` : 'all', SHARES[line.share], line.size],
          ...[short(line.ms), whole(line.cpuUs), short(line.ms / base?.ms), short(line.cpuUs / base?.cpuUs)],
        ]
      }),
  }
}

/** Sorts the sizes of each kind of find next to each other. */
function order(a, b) {
  const places = ({ engine, filter, share, size }) => [
    ...[Object.keys(ENGINES).indexOf(engine), filter ? 1 : 0, Number(share), SIZES[size]],
  ]
  const [one, other] = [places(a), places(b)]
  const differing = one.findIndex((place, index) => place !== other[index])
  return differing < 0 ? 0 : one[differing] - other[differing]
}

function notesOn(lines) {
  const notes = lines.some(({ isRebuilt }) => !isRebuilt)
    ? ['this service has no `verify` that counts what was filled in: totals are counted by every find']
    : []
  for (const engine of Object.keys(ENGINES)) {
    const at = (size) =>
      lines.find(
        (line) => line.engine === engine && line.size === size && line.share === '0.99' && !line.filter,
      )
    const times = (key) => at('10M')?.[key] / at('100k')?.[key]
    const worst = Math.max(times('ms'), times('cpuUs'))
    if (Number.isFinite(worst))
      notes.push(
        `goal: 10M at offset 99 % within ${GOAL}× of 100k, ${ENGINES[engine]}: ${short(times('ms'))}× the time, ${short(times('cpuUs'))}× the CPU, ${worst <= GOAL ? 'reached' : 'missed'}`,
      )
  }
  return notes
}

await benchmark(async () => {
  const flags = readFlags(USAGE, {
    sizes: { names: Object.keys(SIZES), initial: USUAL },
    engines: { names: Object.keys(ENGINES) },
    seconds: { number: 2 },
    markdown: { file: true },
  })
  const { bavail, bsize } = statfsSync(tmpdir())
  const needed = SIZES[flags.sizes.at(-1)] * BYTES_A_RECORD * flags.engines.length
  if (bavail * bsize < needed) throw new Error(`${tmpdir()} needs ${whole(needed / 1e9)} GB; set TMPDIR`)
  await buildIfMissing()
  const about = [
    machine(),
    `One lone client over HTTP, pages of ${PAGE} in the default order, with exact totals; medians.`,
  ]
  console.log(about.join('\n'))
  const lines = []
  for (const engine of flags.engines) lines.push(...(await measureOn(engine, flags)))
  const [table, notes] = [tableOf(lines), notesOn(lines)]
  console.log(['', printText(table), '', ...notes].join('\n'))
  const list = notes.map((note) => `- ${note}`).join('\n')
  if (flags.markdown !== undefined)
    writeSection(flags.markdown, 'growth', [...about, printMarkdown(table), list].join('\n\n'))
})
