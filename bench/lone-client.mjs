// A single client that repeats one request: measures the cost of a request, not the capacity of a server.
import { Connection } from './connection.mjs'
import { findMedian } from './numbers.mjs'
import { readCpuUs } from './usage.mjs'

const LEAST = 5
const MOST = 2_000
const WARM_UP_SHARE = 0.5
const WARM_UP_LEAST = 1

/** Returns { ms, cpuUs } of one request; `pids` are the processes whose CPU time counts. */
export async function measureCost({ url, pids }, bytes, seconds) {
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
    await measureTimes(ask, seconds * WARM_UP_SHARE, WARM_UP_LEAST)
    const before = pids.map(readCpuUs)
    const times = await measureTimes(ask, seconds)
    const spent = pids.map((pid, index) => readCpuUs(pid) - before[index])
    return { ms: findMedian(times), cpuUs: spent.reduce((sum, us) => sum + us, 0) / times.length }
  } finally {
    connection.end()
  }
}

async function measureTimes(ask, seconds, least = LEAST) {
  const times = []
  const end = performance.now() + seconds * 1_000
  while (times.length < least || (times.length < MOST && performance.now() < end)) {
    const start = performance.now()
    await ask()
    times.push(performance.now() - start)
  }
  return times
}
