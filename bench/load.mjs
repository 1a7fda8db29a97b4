// The load generator, a process of its own: each message describes a run or interleaved turns, each reply is its result.
import { createApi } from './apis.mjs'
import { Connection } from './connection.mjs'
import { measureInterleaved } from './interleaved.mjs'
import { measureOpenLoop } from './open-loop.mjs'
import { buildRequests } from './requests.mjs'
import { readCpuUs, readRssMb, listProcessTree } from './usage.mjs'

const RSS_EVERY_MS = 200
/** How long a run waits for outstanding responses after its time. */
const DRAIN_TIMEOUT_MS = 60_000

process.on('message', (run) => {
  const measure = run.cells ? measureInterleaved : run.perSecond ? measureAtRate : measureRun
  measure(run).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error?.stack ?? error) }),
  )
})
// The terminal sends Ctrl-C to the whole process group, but the benchmark decides when this process ends.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit())

/**
 * Requests of the current operation, by server. They are built again for each operation, because operations change
 * versions.
 */
const prepared = { operation: undefined, requests: new Map() }

async function prepareRequests(load) {
  const { operation, pid, url, connections } = load
  if (operation !== prepared.operation) prepared.requests.clear()
  prepared.operation = operation
  const key = `${pid} ${url} ${connections}`
  const requests = prepared.requests.get(key) ?? (await buildRequests(load))
  prepared.requests.set(key, requests)
  return requests
}

async function measureAtRate(run) {
  const { url, headers, writeHeaders, pid, api } = run.server
  const { connections, firstConnection, rows, operation } = run
  const load = {
    ...{ api: createApi(api), headers, writeHeaders, pid, url },
    connections,
    firstConnection,
    rows,
    operation,
  }
  return measureOpenLoop(run, await prepareRequests(load))
}

async function measureRun({ operation, server, connections, rows, seconds }) {
  const { url, headers, writeHeaders, pid, databasePid } = server
  const api = createApi(server.api)
  const requests = await prepareRequests({
    ...{ api, headers, writeHeaders, pid, url },
    ...{ connections, rows, operation },
  })
  const memory = watchMemory(pid)
  const before = { cpu: readCpuUs(pid), database: readCpuUs(databasePid), own: process.cpuUsage() }
  const seen = await runAll(url, requests, connections, seconds * 1_000)
  const own = process.cpuUsage(before.own)
  const answers = [...seen.statuses.values()].reduce((sum, count) => sum + count, 0)
  const spent = (after, start) =>
    after === undefined || answers === 0 ? undefined : (after - start) / answers
  return {
    ...summarize(seen),
    cpuUs: spent(readCpuUs(pid), before.cpu),
    databaseUs: spent(readCpuUs(databasePid), before.database),
    ...memory(),
    generatorBusy: (own.user + own.system) / 1_000 / seen.ms,
  }
}

/**
 * Each connection sends requests until the time is up. Outstanding responses are awaited and counted, so a run lasts
 * until its last response, and slow servers are measured as exactly as fast ones.
 */
function runAll(url, requests, connections, ms) {
  const seen = { statuses: new Map(), latencies: [], lost: 0, ms: 0 }
  const start = performance.now()
  const end = start + ms
  let running = connections
  const all = []
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(), ms + DRAIN_TIMEOUT_MS)
    const finish = () => {
      clearTimeout(timer)
      seen.lost += running
      seen.ms = performance.now() - start
      for (const connection of all) connection.end()
      resolve(seen)
    }
    for (let number = 0; number < connections; number++) all.push(begin(number))
    function begin(number) {
      const asking = requests(number)
      let sentAt = 0
      const ask = () => {
        sentAt = performance.now()
        if (sentAt < end) return connection.send(asking.next())
        running -= 1
        if (running === 0) finish()
      }
      const onAnswer = (status, bytes) => {
        seen.statuses.set(status, (seen.statuses.get(status) ?? 0) + 1)
        if (isSuccess(status)) {
          seen.latencies.push(performance.now() - sentAt)
          try {
            asking.learn(bytes)
          } catch (error) {
            reject(error)
          }
        }
        ask()
      }
      const onLost = () => {
        seen.lost += 1
        ask()
      }
      const connection = new Connection(url, { onAnswer, onLost })
      setImmediate(ask)
      return connection
    }
  })
}

function summarize({ statuses, latencies, lost, ms }) {
  const sorted = Float64Array.from(latencies).sort()
  const faults = [...statuses].filter(([status]) => !isSuccess(status))
  return {
    perSecond: (latencies.length / ms) * 1_000,
    p50: sorted[Math.floor(sorted.length * 0.5)],
    p99: sorted[Math.floor(sorted.length * 0.99)],
    faults: [
      ...faults.map(([status, count]) => [`status ${status}`, count]),
      ...(lost > 0 ? [['no answer', lost]] : []),
    ],
  }
}

/** Tracks the peak memory of the server process, and of its whole process tree. */
function watchMemory(pid) {
  const tree = listProcessTree(pid)
  const peak = { rssMb: 0, allRssMb: 0 }
  const sample = () => {
    peak.rssMb = Math.max(peak.rssMb, readRssMb(pid))
    peak.allRssMb = Math.max(
      peak.allRssMb,
      tree.reduce((sum, each) => sum + readRssMb(each), 0),
    )
  }
  sample()
  const timer = setInterval(sample, RSS_EVERY_MS)
  return () => {
    clearInterval(timer)
    sample()
    return peak
  }
}

function isSuccess(status) {
  return status >= 200 && status < 300
}
