// A single client that repeats one request: measures the cost of a request, not the capacity of a server.
import { Connection } from './connection.mjs'
import { middle } from './numbers.mjs'
import { cpuUsOf } from './usage.mjs'

const LEAST = 5
const MOST = 2_000
const WARM_UP_SHARE = 0.5
const WARM_UP_LEAST = 1

/** Returns { ms, cpuUs } of one request; `pids` are the processes whose CPU time counts. */
export async function costOf({ url, pids }, bytes, seconds) {
  let answered
  const connection = new Connection(url, {
    onAnswer: (status) => answered(status),
    onLost: () => answered(0),
  })
  const ask = () =>
    new Promise((resolve, reject) => {
      answered = (status) =>
        status === 200 ? resolve() : reject(new Error(`a find was answered with ${status}`))
      connection.send(bytes)
    })
  try {
    await timesOf(ask, seconds * WARM_UP_SHARE, WARM_UP_LEAST)
    const before = pids.map(cpuUsOf)
    const times = await timesOf(ask, seconds)
    const spent = pids.map((pid, index) => cpuUsOf(pid) - before[index])
    return { ms: middle(times), cpuUs: spent.reduce((sum, us) => sum + us, 0) / times.length }
  } finally {
    connection.end()
  }
}

async function timesOf(ask, seconds, least = LEAST) {
  const times = []
  const end = performance.now() + seconds * 1_000
  while (times.length < least || (times.length < MOST && performance.now() < end)) {
    const start = performance.now()
    await ask()
    times.push(performance.now() - start)
  }
  return times
}
