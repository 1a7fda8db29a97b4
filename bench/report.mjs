// Turns results into tables: medians of the rounds, and ratios of each round, because only runs side by side compare.
import { cpus, loadavg, totalmem } from 'node:os'
import {
  findMedian,
  computeRatio,
  computeRatios,
  formatShort,
  formatSpread,
  formatWhole,
} from './numbers.mjs'
import { OPERATIONS } from './requests.mjs'
import { BEFORE, SERVERS } from './servers.mjs'

const SATURATED = 0.9

export function describeMachine() {
  const [cpu] = cpus()
  const model = cpu && cpu.model !== 'unknown' ? ` (${cpu.model})` : ''
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  const load = loadavg()[0].toFixed(1)
  const day = new Date().toISOString().slice(0, 10)
  return `${day}: ${cpus().length} cores${model}, ${memory}, ${process.platform} ${process.arch}, Node ${process.version}; load average before: ${load}`
}

/** Name of the Verso server on the same engine. */
export function findVersoFor(name) {
  return SERVERS[name].engine === 'postgres' ? 'versoPostgres' : 'verso'
}

function findHandWrittenFor(name) {
  return SERVERS[name].engine === 'postgres' ? 'postgres' : 'full'
}

/** `results` maps operation and server to a list of runs, one for each round. */
export function buildMeasuredTable(results, titles) {
  const headings = [
    ...['operation', 'server', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs', 'database CPU µs', 'RSS MB'],
    ...['÷ static', '÷ hand-written'],
  ]
  const rows = Object.entries(results).flatMap(([operation, servers]) =>
    Object.entries(servers).map(([name, runs]) => [
      ...[OPERATIONS[operation], titles[name], formatWhole(findRunMedian(runs, 'perSecond'))],
      ...[
        formatShort(findRunMedian(runs, 'p50')),
        formatShort(findRunMedian(runs, 'p99')),
        formatWhole(findRunMedian(runs, 'cpuUs')),
        formatDatabaseCpu(runs),
      ],
      ...[
        formatMemory(runs),
        formatRatio(runs, servers.static),
        formatRatio(runs, servers[findHandWrittenFor(name)]),
      ],
    ]),
  )
  return { headings, rows, texts: 2 }
}

/** Shows how many times the requests/s of each other server Verso reaches on the same engine. */
export function buildVersoTable(results, titles) {
  const operations = Object.keys(results)
  const names = [...new Set(operations.flatMap((operation) => Object.keys(results[operation])))]
  const others = names.filter(
    (name) =>
      name !== 'verso' &&
      name !== 'versoPostgres' &&
      !BEFORE.includes(name) &&
      names.includes(findVersoFor(name)),
  )
  return {
    headings: ['Verso ÷ it, requests/s', ...operations.map((operation) => OPERATIONS[operation])],
    rows: others.map((name) => [
      titles[name],
      ...operations.map((operation) => {
        const servers = results[operation]
        return formatShort(computeRatio(servers[findVersoFor(name)] ?? [], servers[name] ?? []))
      }),
    ]),
  }
}

/** Shows this build ÷ the earlier one, for runs of the same round. */
export function buildBeforeTable(results) {
  const rows = Object.entries(results).flatMap(([operation, servers]) =>
    BEFORE.filter((name) => servers[name]).map((name) => {
      const [now, before] = [servers[findVersoFor(name)], servers[name]]
      return [
        ...[
          OPERATIONS[operation],
          SERVERS[name].engine,
          formatSpread(computeRatios(now, before, 'perSecond')),
        ],
        ...[
          formatSpread(computeRatios(now, before, 'cpuUs')),
          formatSpread(computeRatios(now, before, 'p50')),
        ],
      ]
    }),
  )
  return { headings: ['now ÷ before', 'engine', 'requests/s', 'CPU µs', 'p50 ms'], rows, texts: 2 }
}

/** Lists reservations about the results: failed requests and a saturated load generator. */
export function buildNotes(results, titles) {
  const notes = []
  for (const [operation, servers] of Object.entries(results)) {
    for (const [name, runs] of Object.entries(servers)) {
      const faults = new Map()
      for (const [what, count] of runs.flatMap((run) => run.faults))
        faults.set(what, (faults.get(what) ?? 0) + count)
      for (const [what, count] of faults)
        notes.push(`NOT ALL SUCCEEDED: ${titles[name]}, ${OPERATIONS[operation]}: ${what} × ${count}`)
      const busy = findRunMedian(runs, 'generatorBusy')
      if (busy >= SATURATED)
        notes.push(
          `${titles[name]}, ${OPERATIONS[operation]}: the load generator used ${formatWhole(busy * 100)} % of a core; the server may be able to do more`,
        )
    }
  }
  return notes
}

export function findRunMedian(runs, key) {
  return findMedian(runs.map((run) => run[key]))
}

function formatDatabaseCpu(runs) {
  const us = findRunMedian(runs, 'databaseUs')
  return us === undefined ? '' : formatWhole(us)
}

/** Formats the memory of the server process, and of its process tree if there are several. */
function formatMemory(runs) {
  const [one, all] = [Math.max(...runs.map((run) => run.rssMb)), Math.max(...runs.map((run) => run.allRssMb))]
  if (!(one > 0)) return '–'
  return all > one ? `${formatWhole(one)} of ${formatWhole(all)}` : formatWhole(one)
}

function formatRatio(runs, others) {
  if (!others || others === runs) return ''
  return formatSpread(computeRatios(runs, others, 'perSecond'))
}
