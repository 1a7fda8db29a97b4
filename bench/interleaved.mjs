// Short turns of several clients and servers, one after the other, over connections that stay open. Runs inside the
// load generator.
import { createApi } from './apis.mjs'
import { Connection } from './connection.mjs'
import { buildRequests } from './requests.mjs'
import { readExactCpuUs } from './usage.mjs'

const WARM_UP_TURNS = 4

/**
 * Runs `rounds` rounds after a warm-up; in each round every cell has one turn of `seconds`. A cell is { url, headers, writeHeaders, pid,
 * api, firstConnection }. Returns for each cell a list of { perSecond, cpuUs, faults }, one for each round.
 */
export async function measureInterleaved({ cells, operation, rounds, seconds, warmUpSeconds, ...load }) {
  const clients = []
  for (const cell of cells) clients.push(await openClient({ ...cell, operation, ...load }))
  try {
    for (let turn = 0; turn < WARM_UP_TURNS; turn++)
      for (const [index, client] of clients.entries())
        await client.takeTurn((shareWarmUp(cells, index, warmUpSeconds) * 1_000) / WARM_UP_TURNS)
    const results = cells.map(() => [])
    for (let round = 0; round < rounds; round++)
      for (const index of orderTurns(cells.length, round))
        results[index].push(await clients[index].takeTurn(seconds * 1_000))
    return results
  } finally {
    for (const client of clients) client.end()
  }
}

/** The clients of a server share its warm-up, so that every server has compiled as much. */
export function shareWarmUp(cells, index, seconds) {
  return seconds / cells.filter(({ pid }) => pid === cells[index].pid).length
}

/** Each round starts with another cell, and every second one runs backwards, so that no cell always follows another. */
export function orderTurns(count, round) {
  const start = Math.floor(round / 2) % count
  const order = Array.from({ length: count }, (_, index) => (start + index) % count)
  return round % 2 === 0 ? order : order.reverse()
}

/**
 * Returns the operations of each start of the servers. The operations that make tables longer have their starts last: the faster
 * build creates more records, and would then search a longer table.
 */
export function listSteps(operations, starts) {
  const isGrowing = (operation) => operation === 'create' || operation === 'mixed'
  return [
    operations.filter((each) => !isGrowing(each)),
    ...operations.filter(isGrowing).map((each) => [each]),
  ]
    .filter((part) => part.length > 0)
    .flatMap((part) => Array.from({ length: starts }, (_, start) => ({ operations: part, start })))
}

async function openClient({ url, pid, api: kind, connections, ...load }) {
  const requests = await buildRequests({ ...load, url, connections, api: createApi(kind) })
  let turn
  const all = Array.from({ length: connections }, (_, number) => openConnection(url, requests(number)))
  const takeTurn = (ms) =>
    new Promise((resolve, reject) => {
      const cpu = readExactCpuUs(pid)
      const start = performance.now()
      turn = { end: start + ms, running: connections, answers: 0, faults: new Map(), reject, finish }
      function finish() {
        const spent = readExactCpuUs(pid) - cpu
        const { answers, faults } = turn
        resolve({
          perSecond: (answers / (performance.now() - start)) * 1_000,
          cpuUs: answers > 0 && Number.isFinite(spent) ? spent / answers : undefined,
          faults: [...faults],
        })
      }
      for (const { ask } of all) ask()
    })
  return { takeTurn, end: () => all.forEach(({ connection }) => connection.end()) }

  function openConnection(to, asking) {
    const ask = () => {
      if (performance.now() < turn.end) return connection.send(asking.next())
      turn.running -= 1
      if (turn.running === 0) turn.finish()
    }
    const countFault = (fault) => turn.faults.set(fault, (turn.faults.get(fault) ?? 0) + 1)
    const onAnswer = (status, bytes) => {
      if (status >= 200 && status < 300) {
        turn.answers += 1
        try {
          asking.learn(bytes)
        } catch (error) {
          turn.reject(error)
        }
      } else countFault(`status ${status}`)
      ask()
    }
    const onLost = () => {
      countFault('no answer')
      ask()
    }
    const connection = new Connection(to, { onAnswer, onLost })
    return { connection, ask }
  }
}
