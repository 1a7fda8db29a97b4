// npm run bench:overload: more requests than the service can answer, from clients that do not wait for each other. Measures the peak at rising
// rates, then the clients at twice its rate, then at 80 % of it.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { CLIENTS } from './client-kinds.mjs'
import { readFlags } from './flags.mjs'
import { runBenchmark, startLoadGenerator, stopServers } from './processes.mjs'
import { measureQuietRounds } from './quiet.mjs'
import { OPERATIONS } from './requests.mjs'
import { listProcessTree } from './usage.mjs'
import { buildIfMissing, startVerso } from './verso.mjs'

const USAGE = `npm run bench:overload -- [--engines sqlite,postgres] [--only mixed] [--client cookie] [--seconds 10] [--rounds 3] [--rows 20000]
  [--connections 3000] [--delay 100ms: --max-event-loop-delay of the service, 0s refuses nothing] [--json <file>]`
/** Clients that wait for each response show about which rate the service reaches. */
const WAITING_CONNECTIONS = 64
/** A service that has just started is slower, and so is one that refuses requests for the first time: V8 optimizes its code then. */
const FIRST = { seconds: 10, overloadSeconds: 15 }
const ESTIMATE_SECONDS = 3
/** Parts of that rate at which the peak is searched. */
const STEPS = [0.7, 0.85, 1, 1.15]
const STEP = { seconds: 3, warmUpSeconds: 1 }
const WARM_UP_SECONDS = 5
const [OVERLOAD, MODERATE] = [2, 0.8]

/** Returns one result for each round: { peak, overload, moderate }. */
async function measure(engine, { client, ...flags }) {
  const serve = flags.delay === undefined ? [] : ['--max-event-loop-delay', flags.delay]
  const run = { rows: flags.rows, clients: [client], rounds: 1, timedStarts: 1 }
  const verso = await startVerso(engine, { ...run, flags: serve, shedsLoad: true })
  const load = startLoadGenerator()
  try {
    const server = { ...verso, ...verso.opened[client] }
    const common = { server, rows: flags.rows, operation: flags.operation }
    if (availableParallelism() > 1) {
      pin(0, [server.pid, server.databasePid])
      pin(1, [load.pid])
    }
    const estimate = (seconds) => load.run({ ...common, connections: WAITING_CONNECTIONS, seconds })
    const first = await estimate(FIRST.seconds)
    const overload = {
      perSecond: first.perSecond * OVERLOAD,
      seconds: FIRST.overloadSeconds,
      warmUpSeconds: 0,
    }
    await load.run({
      ...{ ...common, ...overload },
      ...{ connections: flags.connections, firstConnection: WAITING_CONNECTIONS },
    })
    return await measureQuietRounds(flags.rounds, async (number) => {
      const round = await measureRound(load, { ...common, ...flags }, estimate)
      console.log(describeRound(`${engine}, round ${number}`, round))
      return round
    })
  } finally {
    await load.end()
    await stopServers()
  }
}

/** The speed of a machine changes from one second to the next, so the overload lies between two measurements of the peak. */
async function measureRound(load, { connections, seconds, ...common }, estimate) {
  const openLoop = async (perSecond, times = { seconds, warmUpSeconds: WARM_UP_SECONDS }) => ({
    perSecond,
    // Both kinds of load update records of their own.
    ...(await load.run({
      ...{ ...common, connections, firstConnection: WAITING_CONNECTIONS },
      ...{ perSecond, ...times },
    })),
  })
  const waiting = await estimate(ESTIMATE_SECONDS)
  const findPeak = async () => {
    const runs = []
    for (const part of STEPS) runs.push(await openLoop(waiting.perSecond * part, STEP))
    return runs.reduce((best, run) => (run.goodput > best.goodput ? run : best))
  }
  const before = await findPeak()
  const overload = await openLoop(before.goodput * OVERLOAD)
  const after = await findPeak()
  const peak = { ...after, perSecond: (before.goodput + after.goodput) / 2, waiting: waiting.perSecond }
  const moderate = await openLoop(peak.perSecond * MODERATE)
  return { peak, overload, moderate }
}

function describeRound(title, { peak, overload, moderate }) {
  const ms = (value) => `${value.toFixed(1)} ms`
  const describeFaults = ({ statuses, lost }) =>
    Object.entries({ ...statuses, lost })
      .filter(([name, count]) => count > 0 && name !== '200')
      .map(([name, count]) => `${name}: ${count}`)
      .join(', ')
  const line = (name, run) =>
    `  ${name.padEnd(9)} ${Math.round(run.perSecond)}/s sent, ${Math.round(run.goodput)}/s answered, p50 ${ms(run.p50)}, ` +
    `p99 ${ms(run.p99)}, RSS ${Math.round(run.rssMb)} MB, generator ${Math.round(run.generatorBusy * 100)} % busy, stolen ${(run.stolen * 100).toFixed(1)} %; ${describeFaults(run)}`
  return [
    `${title}: peak ${Math.round(peak.perSecond)}/s (${WAITING_CONNECTIONS} clients that wait: ${Math.round(peak.waiting)}/s), p99 ${ms(peak.p99)}, ` +
      `RSS ${Math.round(peak.rssMb)} MB; at twice its rate goodput ÷ peak ` +
      `${(overload.goodput / peak.perSecond).toFixed(2)}, p99 ÷ p99 at 80 % ${(overload.p99 / moderate.p99).toFixed(2)}`,
    line('overload', overload),
    line('moderate', moderate),
  ].join('\n')
}

/** The generator must not take the processor from the service and its database, nor they from the generator. */
function pin(core, pids) {
  for (const pid of pids.filter((each) => each !== undefined).flatMap(listProcessTree))
    spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', String(core), String(pid)])
}

await runBenchmark(async () => {
  const {
    only,
    client: clients,
    json,
    ...flags
  } = readFlags(USAGE, {
    engines: { names: ['sqlite', 'postgres'] },
    only: { names: Object.keys(OPERATIONS), initial: ['mixed'] },
    client: { names: Object.keys(CLIENTS), initial: ['cookie'] },
    ...{ seconds: { number: 10 }, rounds: { number: 3 }, rows: { number: 20_000 } },
    ...{ connections: { number: 3_000 }, delay: { file: true }, json: { file: true } },
  })
  await buildIfMissing()
  if (only.length !== 1 || clients.length !== 1)
    throw new Error(`--only and --client take one name\n${USAGE}`)
  const run = { ...flags, operation: only[0], client: clients[0] }
  const results = {}
  for (const engine of flags.engines) results[engine] = await measure(engine, run)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(results, undefined, 2)}\n`)
})
