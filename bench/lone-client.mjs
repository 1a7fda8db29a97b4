// One client that asks for the same thing again and again, alone: what a find costs, not what a server can take.
import { Connection } from './connection.mjs'
import { middle } from './numbers.mjs'
import { cpuUsOf } from './usage.mjs'

const LEAST = 5
const MOST = 2_000
const WARM_UP_SHARE = 0.5
const WARM_UP_LEAST = 1

/** { ms, cpuUs } of one request; `pids` are those whose work it is. */
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
