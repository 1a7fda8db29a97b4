// Sends requests at a constant rate, whether or not earlier ones are answered: clients of a service do not wait for each other.
import { availableParallelism } from 'node:os'
import { Connection } from './connection.mjs'
import { readRssMb, readStolenUs } from './usage.mjs'

const TICK_MS = 1
/** How long a run waits for outstanding responses after its time. */
const DRAIN_TIMEOUT_MS = 30_000
const RSS_EVERY_MS = 200
const RETRY_AFTER = /\r\nretry-after: *\d+/i

/**
 * Each request goes to a connection that waits for nothing; it waits for one if all are busy. Latencies count from the time at which the
 * request was due. The first `warmUpSeconds` are sent and not counted.
 */
export async function measureOpenLoop({ server, connections, perSecond, seconds, warmUpSeconds }, requests) {
  const free = []
  const waiting = []
  const seen = { latencies: [], statuses: new Map(), answered: 0, refused: 0, withoutRetryAfter: 0, lost: 0 }
  let outstanding = 0
  let rssMb = 0
  const startMs = performance.now()
  const [countedMs, endMs] = [startMs + warmUpSeconds * 1_000, startMs + (warmUpSeconds + seconds) * 1_000]
  const clients = Array.from({ length: connections }, (_, number) => open(number))
  const memory = setInterval(() => (rssMb = Math.max(rssMb, readRssMb(server.pid))), RSS_EVERY_MS)
  const before = { own: process.cpuUsage(), stolenUs: readStolenUs() }
  await sendAll()
  const own = process.cpuUsage(before.own)
  const stolenUs = readStolenUs() - before.stolenUs
  const spentMs = performance.now() - startMs
  const deadlineMs = performance.now() + DRAIN_TIMEOUT_MS
  while (outstanding > 0 && performance.now() < deadlineMs) await pause()
  clearInterval(memory)
  for (const { connection } of clients) connection.end()
  const sorted = Float64Array.from(seen.latencies).sort()
  const percentile = (share) => sorted[Math.floor(sorted.length * share)]
  return {
    goodput: seen.answered / seconds,
    ...{ p50: percentile(0.5), p99: percentile(0.99), p999: percentile(0.999) },
    statuses: Object.fromEntries(seen.statuses),
    ...{ refused: seen.refused, withoutRetryAfter: seen.withoutRetryAfter, lost: seen.lost + outstanding },
    rssMb,
    generatorBusy: (own.user + own.system) / 1_000 / spentMs,
    stolen: stolenUs / 1_000 / spentMs / availableParallelism(),
  }

  function open(number) {
    const asking = requests(number)
    const client = { dueMs: 0 }
    const next = () => {
      const due = waiting.shift()
      if (due === undefined) free.push(client)
      else send(client, due)
    }
    const isCounted = () => client.dueMs >= countedMs && client.dueMs < endMs
    client.asking = asking
    client.connection = new Connection(server.url, {
      onAnswer: (status, bytes) => {
        outstanding--
        const nowMs = performance.now()
        if (status < 300) {
          asking.learn(bytes)
          if (nowMs >= countedMs && nowMs < endMs) seen.answered++
        }
        if (isCounted()) {
          seen.statuses.set(status, (seen.statuses.get(status) ?? 0) + 1)
          if (status < 300) seen.latencies.push(nowMs - client.dueMs)
          if (status === 503) {
            seen.refused++
            if (!RETRY_AFTER.test(bytes.toString('latin1', 0, 1_000))) seen.withoutRetryAfter++
          }
        }
        next()
      },
      onLost: () => {
        outstanding--
        if (isCounted()) seen.lost++
        next()
      },
    })
    free.push(client)
    return client
  }

  function send(client, dueMs) {
    client.dueMs = dueMs
    client.connection.send(client.asking.next())
  }

  async function sendAll() {
    let sent = 0
    for (;;) {
      const nowMs = performance.now()
      if (nowMs >= endMs) break
      // The first request is due at once.
      const due = Math.floor(((nowMs - startMs) / 1_000) * perSecond) + 1
      for (; sent < due; sent++) {
        const dueMs = startMs + (sent / perSecond) * 1_000
        outstanding++
        const client = free.shift()
        if (client) send(client, dueMs)
        else waiting.push(dueMs)
      }
      await pause()
    }
  }
}

async function pause() {
  await new Promise((resolve) => setTimeout(resolve, TICK_MS))
}
