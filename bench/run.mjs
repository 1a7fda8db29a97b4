// npm run bench: measures Verso beside other servers, in interleaved rounds. It reports and asserts nothing; see
// docs/performance.md.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { drawChart } from './chart.mjs'
import { readFlags } from './flags.mjs'
import { buildGoalsTable } from './goals.mjs'
import { runBenchmark, isFolderInMemory, startLoadGenerator } from './processes.mjs'
import {
  buildBeforeTable,
  describeMachine,
  buildMeasuredTable,
  buildNotes,
  findVersoFor,
  buildVersoTable,
} from './report.mjs'
import { OPERATIONS } from './requests.mjs'
import { BEFORE, PEERS, SERVERS, startServers } from './servers.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { findFaults } from './truth.mjs'
import { buildIfMissing, CLIENTS } from './verso.mjs'

const OURS = Object.keys(SERVERS).filter((name) => !PEERS.includes(name) && !BEFORE.includes(name))
const USAGE = `npm run bench -- [--seconds 2] [--rounds 3] [--connections 32] [--rows 100000] [--only ${Object.keys(OPERATIONS).join(',')}]
  [--servers ${OURS.join(',')}] [--peers all|none|${PEERS.join(',')}] [--markdown <file>] [--svg <file>]
  [--client cookie|browser|key] [--before <another checkout, built>: measures that build beside this one, in the same rounds]
  [--starts 1: starts of the two builds, which share the rounds; only with --before]`
/**
 * Before each run, not counted: caches and compiled code of a server go cold during the runs of other servers. A pair
 * needs it once for each start.
 */
const WARM_UP_S = 1.5
const LEAST_ROWS_EACH = 4

function readRunFlags() {
  const flags = readFlags(USAGE, {
    ...{
      seconds: { number: 2 },
      rounds: { number: 3 },
      connections: { number: 32 },
      rows: { number: 100_000 },
      starts: { number: 1 },
    },
    ...{ only: { names: Object.keys(OPERATIONS) }, servers: { names: OURS }, peers: { names: PEERS } },
    ...{ markdown: { file: true }, svg: { file: true }, before: { file: true } },
    client: { names: Object.keys(CLIENTS), initial: ['cookie'] },
  })
  if (flags.rows < Math.max(flags.connections * LEAST_ROWS_EACH, 200))
    throw new Error(`--rows must be at least ${LEAST_ROWS_EACH} for each connection, and 200`)
  if (flags.rounds % flags.starts !== 0) throw new Error('--rounds must be a multiple of --starts')
  if (flags.starts > 1 && flags.before === undefined) throw new Error('--starts needs --before')
  const [client, ...more] = flags.client
  if (client === undefined || more.length > 0) throw new Error(`--client takes one name\n${USAGE}`)
  return { ...flags, client }
}

/** Removes the servers with wrong responses from `started` and lists them as missing. */
async function removeFaultyServers(started, rows) {
  const missing = []
  for (const [name, server] of Object.entries(started)) {
    if (name === 'static') continue
    const faults = await findFaults(server, rows)
    if (faults.length === 0) continue
    missing.push(`NOT MEASURED: ${SERVERS[name].title}: ${faults.join('; ')}`)
    delete started[name]
  }
  return missing
}

async function measureAll(servers, { seconds, rounds, connections, rows, only, starts }) {
  const load = startLoadGenerator()
  const measure = (operation, name, run = { connections, seconds }) => {
    const { url, headers, pid, databasePid, api } = servers[name]
    return load.run({ operation, server: { url, headers, pid, databasePid, api }, rows, ...run })
  }
  const results = {}
  for (const operation of only) {
    results[operation] = Object.fromEntries(Object.keys(servers).map((name) => [name, []]))
    for (const { names, isPair } of groupServers(Object.keys(servers))) {
      const warmUp = { connections, seconds: isPair ? WARM_UP_S : Math.min(WARM_UP_S, seconds) }
      const roundsPerStart = isPair ? rounds / starts : rounds
      for (let round = 0; round < rounds; round++) {
        const isFirstOfStart = round % roundsPerStart === 0
        if (isFirstOfStart && round > 0) await restart(servers, names)
        // The order rotates, so that no server always runs first.
        for (const name of rotate(names, round * Math.ceil(names.length / rounds))) {
          if (!isPair || isFirstOfStart) await measure(operation, name, warmUp)
          results[operation][name].push(await measure(operation, name))
        }
        const prefix = isPair ? `${SERVERS[names[0]].title}: ` : ''
        process.stderr.write(`${prefix}${OPERATIONS[operation]}: round ${round + 1} of ${rounds}\n`)
      }
    }
  }
  await load.end()
  return results
}

/**
 * Two builds of Verso alternate without other servers between them: short rounds are then enough, and a busy machine
 * slows both alike.
 */
function groupServers(names) {
  const pairs = BEFORE.map((name) => [findVersoFor(name), name]).filter((pair) =>
    pair.every((name) => names.includes(name)),
  )
  const others = names.filter((name) => !pairs.flat().includes(name))
  return [
    ...pairs.map((pair) => ({ names: pair, isPair: true })),
    ...(others.length > 0 ? [{ names: others, isPair: false }] : []),
  ]
}

/** Two starts of the same build differ by several percent, so a comparison of builds needs several starts of each. */
async function restart(servers, names) {
  for (const name of names) servers[name] = await servers[name].restart()
}

function rotate(names, count) {
  const start = count % names.length
  return [...names.slice(start), ...names.slice(0, start)]
}

/** Adds the versions of servers from npm to their titles. */
function buildTitles(started) {
  return Object.fromEntries(
    Object.entries(started).map(([name, { version }]) => {
      const [first, ...rest] = SERVERS[name].title.split(', ')
      return [name, [version ? `${first} ${version}` : first, ...rest].join(', ')]
    }),
  )
}

function writeReport({ markdown, svg }, { about, tables, notes, results, titles }) {
  if (svg !== undefined) writeFileSync(svg, drawChart(results, titles, about[0].split(';')[0]))
  if (markdown === undefined) return
  const chart =
    svg && `![Requests a second relative to a static answer](${path.relative(path.dirname(markdown), svg)})`
  const list = notes.map((note) => `- ${note}`).join('\n')
  writeSection(
    markdown,
    'bench',
    [...about, chart, ...tables.map(printMarkdown), list].filter(Boolean).join('\n\n'),
  )
}

await runBenchmark(async () => {
  const flags = readRunFlags()
  await buildIfMissing()
  const { seconds, rounds, connections, rows, servers, peers, client, before } = flags
  const about = [
    describeMachine(),
    `${rows} contacts, ${connections} connections of a client with a ${client}, medians of ${rounds} interleaved rounds of ${seconds} s; ratios: middle (lowest–highest) of the rounds.`,
  ]
  console.log(about.join('\n'))
  const earlier = BEFORE.filter((name) => before !== undefined && servers.includes(findVersoFor(name)))
  const { started, missing } = await startServers([...servers, ...earlier, ...peers], flags)
  missing.push(...(await removeFaultyServers(started, rows)))
  const titles = buildTitles(started)
  const results = await measureAll(started, flags)
  const tables = [
    buildMeasuredTable(results, titles),
    buildVersoTable(results, titles),
    buildGoalsTable(results, started),
  ]
  if (earlier.length > 0) tables.push(buildBeforeTable(results))
  const notes = [...missing, ...buildNotes(results, titles)]
  if (isFolderInMemory())
    notes.push('the databases were in memory, so commits were free: set TMPDIR to a folder on a disk')
  console.log(['', ...tables.map((table) => `${printText(table)}\n`), ...notes].join('\n'))
  writeReport(flags, { about, tables, notes, results, titles })
})
