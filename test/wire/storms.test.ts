// Requests that arrive in pieces, pipelined, half-closed or aborted are answered like requests that arrive alone, for every kind of
// client.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  acknowledgesOnly,
  answersAsTheyFinish,
  createsTwice,
  forgetAborts,
  runsPrefixes,
  withBrokenConnections,
  type BrokenConnection,
} from '../mutants/connections.js'
import { ENGINES } from '../targets.js'
import * as arrivals from './arrivals.js'
import { withServer } from './exchange.js'
import type { Scenario } from './storm-checks.js'
import { KINDS, startStormService, type StormService } from './storm-service.js'
import * as storms from './storms.js'

const CUTS_APART = 23
const STORM_UPDATES = 12

describe.for(ENGINES)('%s', (engine) => {
  let service: StormService

  beforeAll(async () => {
    service = await startStormService(engine)
  })
  afterAll(() => service.close())

  const SCENARIOS: Readonly<Record<string, Scenario>> = {
    'pipelined reads and errors are answered in order, each as if it came alone': arrivals.pipelinedReads,
    'pipelined requests that arrive byte by byte are answered as if they came whole':
      arrivals.pipelinedByteByByte,
    'pipelined requests that arrive in random pieces are answered as if they came whole':
      arrivals.randomPieces,
    'pipelined writes are answered in order, and the acknowledged ones are in the records once':
      storms.pipelinedWrites,
    'pipelined creates in random pieces are made once each': storms.createsOnce,
    'a client that half-closes its connection gets its whole answer or none': arrivals.halfClosed,
    'a connection is closed after a body that is no JSON': arrivals.closedAfterBadBody,
    'a connection is usable after errors': arrivals.reusedAfterErrors,
    'chunked bodies are read whole, and the request behind them is answered': arrivals.chunkedBodies,
    'a client that expects 100 gets it before its body is read': arrivals.expectContinue,
    'requests of HTTP/1.0 are answered, and their connection is kept only if they ask for it':
      arrivals.oldProtocol,
    'a body that is longer than its length is not written': storms.tooLongBodies,
    'a body that ends before its length is not written': storms.unfinishedBodies,
    'a client that disconnects at any stage leaves nothing behind, and no part of its write': storms.aborts,
    'an update that arrives in two pieces is written once': (client) =>
      storms.splitUpdates(client, CUTS_APART),
  }

  // The engine does not read the bytes of a request.
  describe.for(engine === 'sqlite' ? KINDS : KINDS.slice(0, 1))('%s', (kind) => {
    test.for(Object.entries(SCENARIOS))('%s', async ([, scenario]) => {
      expect(await scenario(service.clients[kind])).toEqual([])
    })
  })

  test('updates of all kinds of clients that arrive and break in all ways lose nothing and run once', async () => {
    expect(await storms.storm(Object.values(service.clients), STORM_UPDATES)).toEqual([])
  })

  const MUTANTS: readonly (readonly [what: string, broken: BrokenConnection, scenario: Scenario])[] = [
    ['answers pipelined requests as they finish', answersAsTheyFinish, arrivals.pipelinedReads],
    ['answers pipelined writes as they finish', answersAsTheyFinish, storms.pipelinedWrites],
    ['runs the prefix of an aborted body', runsPrefixes, storms.unfinishedBodies],
    ['runs a create twice', createsTwice, storms.createsOnce],
    ['acknowledges updates without writing them', acknowledgesOnly, storms.pipelinedWrites],
  ]
  test.for(MUTANTS)('the mutant that %s is caught', async ([, broken, scenario]) => {
    const client = service.clients.cookie
    const faults = await withBrokenConnections(client.url, broken, (url) => scenario({ ...client, url }))
    expect(faults).not.toEqual([])
  })

  test('the mutant that does not count down when a client disconnects is caught', async () => {
    await withServer(service.service, {}, async (url, server) => {
      const release = forgetAborts(server.fastify.server)
      const faults = await storms.aborts({ ...service.clients.cookie, url, server })
      release()
      expect(faults).toContainEqual(expect.stringContaining('requestsInFlight'))
    })
  })

  test('a connection in front of the server that changes nothing is not taken for a mutant', async () => {
    const client = service.clients.cookie
    const plain: BrokenConnection = createOrderly()
    const faults = await withBrokenConnections(client.url, plain, (url) =>
      storms.createsOnce({ ...client, url }),
    )
    expect(faults).toEqual([])
  })
})

/** Runs the requests of a connection one after the other. */
function createOrderly(): BrokenConnection {
  let last: Promise<unknown> = Promise.resolve()
  return (request, ask) => {
    if (!request.isWhole) return Promise.resolve(undefined)
    const answer = last.then(() => ask(Buffer.concat([Buffer.from(request.head), request.body])))
    last = answer
    return answer
  }
}
