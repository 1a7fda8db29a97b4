// storms.test.ts for every place at which an update can be cut, and with a longer storm. The engine does not read bytes, so only
// the longest request to one engine is cut at every byte.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENGINES } from '../targets.js'
import * as arrivals from './arrivals.js'
import { KINDS, startStormService, type StormService } from './storm-service.js'
import * as storms from './storms.js'

const ROUNDS = 5
const CUTS = {
  all: { place: 'any byte', every: 1 },
  some: { place: 'every seventh byte', every: 7 },
}
const STORM_UPDATES = 100
const CLIENTS_EACH = 4

describe.for(ENGINES)('%s', (engine) => {
  let service: StormService

  beforeAll(async () => {
    service = await startStormService(engine)
  })
  afterAll(() => service.close())

  describe.for(KINDS)('%s', (kind) => {
    const cuts = engine === 'sqlite' && kind === 'browser' ? CUTS.all : CUTS.some
    test(`an update that is cut at ${cuts.place} is written once`, async () => {
      expect(await storms.splitUpdates(service.clients[kind], cuts.every)).toEqual([])
    })

    test('pipelined requests in random pieces are answered in order, five times', async () => {
      const client = service.clients[kind]
      for (let round = 0; round < ROUNDS; round++) {
        expect(await arrivals.randomPieces(client)).toEqual([])
        expect(await storms.pipelinedWrites(client)).toEqual([])
        expect(await storms.createsOnce(client)).toEqual([])
      }
    })

    test('clients that disconnect at any stage leave nothing behind, three times', async () => {
      for (let round = 0; round < 3; round++) expect(await storms.aborts(service.clients[kind])).toEqual([])
    })
  })

  test('a storm of 1600 updates by sixteen clients of four kinds loses nothing and runs nothing twice', async () => {
    const clients = Object.values(service.clients).flatMap((client) =>
      Array<typeof client>(CLIENTS_EACH).fill(client),
    )
    expect(await storms.storm(clients, STORM_UPDATES)).toEqual([])
  })
})
