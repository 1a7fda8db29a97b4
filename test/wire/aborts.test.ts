// A client that disconnects while the database works leaves nothing behind: no slot, no connection, no upload.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Gauges } from '../../src/store/engine/database.js'
import { ENGINES } from '../targets.js'
import { Abandoned, hideDepartures, restOf, SAMPLE } from './aborts.js'
import { asUser, only, rawRequest, withServer } from './exchange.js'

/** A larger response waits in a file. */
const MEMORY_BYTES = 72_000

describe.for(ENGINES)('%s', (engine) => {
  let abandoned: Abandoned

  beforeAll(async () => {
    abandoned = await Abandoned.start(engine, undefined, { responseLimitBytes: 8 * MEMORY_BYTES })
  })
  afterAll(() => abandoned.close())

  test('a client that disconnects leaves no resources behind', async () => {
    for (const request of SAMPLE) {
      const text = request(await abandoned.cookie())
      await abandoned.abort(text)
      expect(await restOf(abandoned.service.server), text).toEqual({})
    }
  })

  test('a client that disconnects with pipelined requests leaves no resources behind', async () => {
    const cookie = await abandoned.cookie()
    const head = { cookie, connection: 'keep-alive' }
    const first = rawRequest('GET /ws/rest/crm.Contact/999999 HTTP/1.1', head)
    const poll = rawRequest('GET /ws/changes?wait=30 HTTP/1.1', head)
    const stream = rawRequest('GET /ws/changes HTTP/1.1', { ...head, accept: 'text/event-stream' })
    await abandoned.abort(first + (poll + stream).repeat(5))
    expect(await restOf(abandoned.service.server)).toEqual({})
  })

  /** Requests that wait behind another one when their connection ends; their responses are produced later. */
  const abortBehind = async (paths: readonly string[], server?: Parameters<Abandoned['abort']>[1]) => {
    const head = { cookie: await abandoned.cookie(server?.url), connection: 'keep-alive' }
    const requests = ['/ws/rest/crm.Contact/999999', ...paths].map((path) =>
      rawRequest(`GET ${path} HTTP/1.1`, head),
    )
    await abandoned.abort(requests.join(''), server)
  }

  describe('large responses without a reader', () => {
    const list = '/ws/rest/crm.Contact'
    /** Responses in memory and in a file. */
    let paths: readonly string[] = []

    beforeAll(async () => {
      const { service } = abandoned
      const user = asUser(service.url, await abandoned.cookie())
      const { id } = only(await user.create('crm.Contact', { notes: 'n'.repeat(MEMORY_BYTES - 4_000) }))
      await user.create('crm.Contact', { notes: 'n'.repeat(MEMORY_BYTES - 4_000) })
      const [firstName, lastName] = ['f'.repeat(250), 'l'.repeat(250)]
      for (let count = 0; count < 140; count++) await user.create('crm.Contact', { firstName, lastName })
      paths = [
        ...[`${list}/${id}`, `${list}?fields=notes&filter=id=${id}`],
        ...[`${list}?limit=1000`, `${list}?fields=notes`],
      ]
    })

    test('a large response to a disconnected client is discarded', async () => {
      const left: [path: string, rest: Gauges][] = []
      for (const path of paths) {
        await abortBehind([path])
        left.push([path, await restOf(abandoned.service.server)])
      }
      expect(left).toEqual(paths.map((path) => [path, {}]))
    })

    test('the mutant that does not notice disconnects keeps large responses', async () => {
      await withServer(abandoned.service, {}, async (url, server) => {
        hideDepartures(server)
        await abortBehind(paths.slice(0, 1), { server, url })
        expect(await restOf(server)).toHaveProperty('waitingBytes')
      })
    })
  })

  /** The gauges of the mutant that does not notice disconnects. */
  const leftByMutant = async (path: string): Promise<Gauges> => {
    const { service } = abandoned
    return withServer(service, {}, async (url, server) => {
      hideDepartures(server)
      const cookie = await abandoned.cookie(url)
      service.clock.letASecondPass()
      const text = rawRequest(`GET ${path} HTTP/1.1`, { cookie, connection: 'keep-alive' })
      await abandoned.abort(text, { server, url })
      return restOf(server)
    })
  }

  test('the mutant that does not notice disconnects is caught by its gauges', async () => {
    expect(await leftByMutant('/ws/changes?wait=1')).toMatchObject({ requestsWaiting: 1 })
  })
})
