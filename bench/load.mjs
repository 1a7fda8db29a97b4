// The load generator, a process of its own: takes one run as a message, answers with what it saw.
import autocannon from 'autocannon'
import { operations } from './operations.mjs'
import { usageOf } from './usage.mjs'

process.on('message', (run) => {
  measure(run).then(
    (result) => process.send({ result }),
    (error) => process.send({ error: String(error?.stack ?? error) }),
  )
})
// The terminal sends Ctrl-C to everybody; the benchmark decides when this process ends.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit())

async function measure({ operation, server, connections, seconds, ...rest }) {
  const headers = server.cookie ? { cookie: server.cookie } : {}
  const requestsOf = await operations[operation]({ ...rest, url: server.url, headers, connections })
  const latencies = []
  let connection = 0
  const before = usageOf(server.pid)
  const ownBefore = process.cpuUsage()
  const result = await new Promise((resolve, reject) => {
    const instance = autocannon(
      {
        ...{ url: server.url, headers, connections, duration: seconds, sampleInt: 20 },
        setupClient: (client) => client.setRequests(requestsOf(connection++)),
      },
      (error, outcome) => (error ? reject(error) : resolve(outcome)),
    )
    instance.on('response', (_client, status, _bytes, ms) => {
      if (isSuccess(status)) latencies.push(ms)
    })
  })
  const own = process.cpuUsage(ownBefore)
  const after = usageOf(server.pid)
  return summary(result, latencies, before, after, own)
}

function summary(result, latencies, before, after, own) {
  const statuses = Object.entries(result.statusCodeStats).map(([status, { count }]) => [
    Number(status),
    count,
  ])
  const answers = statuses.reduce((sum, [, count]) => sum + count, 0)
  const sorted = Float64Array.from(latencies).sort()
  return {
    perSecond: latencies.length / result.duration,
    p50: sorted[Math.floor(sorted.length * 0.5)],
    p99: sorted[Math.floor(sorted.length * 0.99)],
    cpuUs: before && after && answers > 0 ? (after.cpuUs - before.cpuUs) / answers : undefined,
    rssMb: after?.rssMb,
    faults: [
      ...statuses
        .filter(([status]) => !isSuccess(status))
        .map(([status, count]) => [`status ${status}`, count]),
      ...(result.errors > 0 ? [['connection errors or time-outs', result.errors]] : []),
    ],
    generatorBusy: (own.user + own.system) / 1e6 / result.duration,
  }
}

function isSuccess(status) {
  return status >= 200 && status < 300
}
