// Whoever goes away while the database is asked leaves nothing behind: no slot, no connection, no upload.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gauges } from '../../src/store/database.js'
import { ENGINES } from '../targets.js'
import { Abandoned, hideDepartures, restOf, SAMPLE } from './aborts.js'
import { rawRequest, withServer } from './exchange.js'

describe.for(ENGINES)('%s', (engine) => {
  let abandoned: Abandoned

  beforeAll(async () => {
    abandoned = await Abandoned.start(engine)
  })
  afterAll(() => abandoned.close())

  test('whoever goes away holds nothing', async () => {
    for (const request of SAMPLE) {
      const text = request(await abandoned.cookie())
      await abandoned.abort(text)
      expect(await restOf(abandoned.service.server), text).toEqual({})
    }
  })

  test('whoever goes away holds nothing for the requests that wait behind the first', async () => {
    const cookie = await abandoned.cookie()
    const head = { cookie, connection: 'keep-alive' }
    const first = rawRequest('GET /ws/rest/crm.Contact/999999 HTTP/1.1', head)
    const poll = rawRequest('GET /ws/changes?wait=30 HTTP/1.1', head)
    const stream = rawRequest('GET /ws/changes HTTP/1.1', { ...head, accept: 'text/event-stream' })
    await abandoned.abort(first + (poll + stream).repeat(5))
    expect(await restOf(abandoned.service.server)).toEqual({})
  })

  /** What is left on a node that takes whoever has gone for still there. */
  const leftByTwin = async (path: string, isKnown: boolean): Promise<Gauges> => {
    const { service } = abandoned
    return withServer(service, {}, async (url, server) => {
      hideDepartures(server)
      const cookie = await abandoned.cookie(url)
      if (!isKnown) service.clock.letASecondPass()
      const text = rawRequest(`GET ${path} HTTP/1.1`, { cookie, connection: 'keep-alive' })
      await abandoned.abort(text, { server, url })
      return restOf(server)
    })
  }

  test('a node that takes whoever has gone for still there is caught', async () => {
    expect(await leftByTwin('/ws/rest/crm.Contact/999999', true)).toEqual({ requestsInFlight: 1 })
    expect(await leftByTwin('/ws/changes?wait=1', false)).toMatchObject({ requestsWaiting: 1 })
  })
})
