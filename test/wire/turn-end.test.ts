// Many clients connect at once: Node accepts one connection in a turn of the event loop, and the turns of a busy server take long.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { ConnectionTracker } from '../../src/http/connection/connection-tracker.js'
import { batchPerTick } from '../../src/http/fastify.js'
import { importFromMutant } from '../mutants/program.js'

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

/** Connections arrive in each turn, and each turn takes so long. Returns the number of turns for which a task waits. */
async function countTurns(connections: ConnectionTracker, turnMs: number): Promise<number> {
  const server = createServer()
  connections.track(server)
  let turns = 0
  const takeTurn = () => {
    turns++
    server.emit('connection', new Socket())
    const endMs = performance.now() + turnMs
    while (performance.now() < endMs);
    next = setImmediate(takeTurn)
  }
  let next = setImmediate(takeTurn)
  await new Promise<void>((resolve) => {
    connections.atTurnEnd(resolve)
  })
  clearImmediate(next)
  return turns
}

test('a task waits for a limited number of turns, and for a limited time', async () => {
  expect(await countTurns(createTracker(3), 0)).toBeLessThan(6)
  expect(await countTurns(createTracker(), 4)).toBeLessThan(6)
})

/** Two tasks of a turn, of which the first one throws, and one of a later turn. Returns those that ran, and the errors of the process. */
async function runAfterError(connections: ConnectionTracker) {
  const errors: unknown[] = []
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => errors.push(error))
  const runs: string[] = []
  connections.atTurnEnd(() => {
    throw new Error('a defect')
  })
  connections.atTurnEnd(() => runs.push('the other task'))
  await sleep(20)
  connections.atTurnEnd(() => runs.push('a later turn'))
  await sleep(20)
  process.removeAllListeners('uncaughtException')
  for (const listener of listeners) process.on('uncaughtException', listener)
  return { runs, errors }
}

test('a task that throws stops neither other tasks nor later turns', async () => {
  const { runs, errors } = await runAfterError(createTracker())
  expect(runs).toEqual(['the other task', 'a later turn'])
  expect(errors).toEqual([new Error('a defect')])
})

async function createMutant(from: string, to: string): Promise<ConnectionTracker> {
  const file = 'http/connection/connection-tracker.js'
  const module = (await importFromMutant(inject('runFolder'), { file, from, to }, file)) as {
    ConnectionTracker: typeof ConnectionTracker
  }
  return new module.ConnectionTracker(CLIENTS)
}

test('the mutant that waits without a limit in time is caught', async () => {
  expect(
    await countTurns(await createMutant('const MAX_EXTRA_MS = 5', 'const MAX_EXTRA_MS = 1e9'), 4),
  ).toBeGreaterThan(30)
})

test('the mutant whose error stops the other tasks is caught', async () => {
  expect((await runAfterError(await createMutant('runApart(task);', 'task();'))).runs).not.toContain(
    'the other task',
  )
})
