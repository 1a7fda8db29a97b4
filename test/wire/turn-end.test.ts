// Many clients connect at once: Node accepts one connection in a turn of the event loop, and the turns of a busy server take long.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ConnectionTracker } from '../../src/http/connection/connection-tracker.js'
import { batchPerTick } from '../../src/http/fastify.js'

const CLIENTS = 200
const createTracker = (maxExtraTurns?: number) => new ConnectionTracker(CLIENTS, undefined, maxExtraTurns)

/** Returns the number of batches in which a server answers clients that connect at the same time. */
async function countBatches(connections: ConnectionTracker): Promise<number> {
  let batches = 0
  const server = createServer(
    batchPerTick(
      (_, response) => response.end(),
      (work) => {
        batches++
        work()
      },
      connections.atTurnEnd.bind(connections),
    ),
  )
  connections.track(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const responses = Array.from({ length: CLIENTS }, async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    socket.resume()
    await once(socket, 'end')
  })
  await Promise.all(responses)
  server.close()
  return batches
}

test('clients that connect at once are answered in a few turns', async () => {
  expect(await countBatches(createTracker())).toBeLessThan(CLIENTS / 10)
})

test('the mutant that works in each turn is caught: each client takes one', async () => {
  expect(await countBatches(createTracker(0))).toBeGreaterThan(CLIENTS / 2)
})

test('work waits for a limited number of turns while connections arrive', async () => {
  const connections = createTracker(3)
  const server = createServer()
  connections.track(server)
  let turns = 0
  const connectAgain = () => {
    turns++
    server.emit('connection', new Socket())
    again = setImmediate(connectAgain)
  }
  let again = setImmediate(connectAgain)
  await new Promise<void>((resolve) => {
    connections.atTurnEnd(resolve)
  })
  clearImmediate(again)
  expect(turns).toBeLessThan(6)
})

test('work that throws ends neither other work nor later turns', async () => {
  const connections = createTracker()
  const errors: unknown[] = []
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => errors.push(error))
  const runs: string[] = []
  connections.atTurnEnd(() => {
    throw new Error('a defect')
  })
  connections.atTurnEnd(() => runs.push('the other work'))
  await sleep(20)
  connections.atTurnEnd(() => runs.push('a later turn'))
  await sleep(20)
  process.removeAllListeners('uncaughtException')
  for (const listener of listeners) process.on('uncaughtException', listener)
  expect(runs).toEqual(['the other work', 'a later turn'])
  expect(errors).toEqual([new Error('a defect')])
})
