// The section of npm run bench that measures Verso beside other servers.
import { drawChart } from './chart.mjs'
import { buildGoalsTable } from './goals.mjs'
import { startLoadGenerator } from './processes.mjs'
import { buildBeforeTable, buildMeasuredTable, buildNotes, findVersoFor, buildVersoTable } from './report.mjs'
import { OPERATIONS, VERSO_ONLY } from './requests.mjs'
import { BEFORE, SERVERS, startServers } from './servers.mjs'
import { findFaults } from './truth.mjs'

export const SIDE_BY_SIDE_DEFAULTS = {
  ...{ seconds: 2, rounds: 3, starts: 1, rows: 100_000 },
  only: Object.keys(OPERATIONS).filter((operation) => !VERSO_ONLY.includes(operation)),
}
/**
 * Before each run, not counted: caches and compiled code of a server go cold during the runs of other servers. A pair
 * needs it once for each start.
 */
const WARM_UP_S = 1.5

/** Removes the servers with wrong responses from `started` and lists them as missing. */
async function removeFaultyServers(started, { rows, client }) {
  const missing = []
  for (const [name, server] of Object.entries(started)) {
    if (name === 'static') continue
    const faults = await findFaults({ ...server, ...server.opened?.[client], isVerso: isVerso(name) }, rows)
    if (faults.length === 0) continue
    missing.push(`NOT MEASURED: ${SERVERS[name].title}: ${faults.join('; ')}`)
    delete started[name]
  }
  return missing
}

async function measureAll(servers, { seconds, rounds, connections, rows, only, starts, client }) {
  const load = startLoadGenerator()
  const measure = (operation, name, run = { connections, seconds }) => {
    const { url, headers, pid, databasePid, api, opened } = servers[name]
    const server = { url, headers, pid, databasePid, api, ...opened?.[client] }
    return load.run({ operation, server, rows, ...run })
  }
  const results = {}
  for (const operation of only) {
    const measured = Object.keys(servers).filter((name) => isVerso(name) || !VERSO_ONLY.includes(operation))
    results[operation] = Object.fromEntries(measured.map((name) => [name, []]))
    for (const { names, isPair } of groupServers(measured)) {
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

function isVerso(name) {
  return BEFORE.includes(name) || findVersoFor(name) === name
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

/** Returns { about, tables, notes, drawing }. */
export async function measureSideBySide(flags) {
  const { seconds, rounds, connections, rows, servers, peers, client, before } = flags
  const earlier = BEFORE.filter((name) => before !== undefined && servers.includes(findVersoFor(name)))
  const { started, missing } = await startServers([...servers, ...earlier, ...peers], flags)
  missing.push(...(await removeFaultyServers(started, flags)))
  const titles = buildTitles(started)
  const results = await measureAll(started, flags)
  const tables = [
    buildMeasuredTable(results, titles),
    buildVersoTable(results, titles),
    buildGoalsTable(results, started),
  ]
  if (earlier.length > 0) tables.push(buildBeforeTable(results))
  const about = `${rows} contacts, ${connections} connections of a client with a ${client}, medians of ${rounds} interleaved rounds of ${seconds} s; ratios: middle (lowest–highest) of the rounds.`
  const drawing = (machine) => drawChart(results, titles, machine)
  return { about, tables, notes: [...missing, ...buildNotes(results, titles)], drawing }
}
