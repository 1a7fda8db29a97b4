// aborts.test.ts for every route, and for many clients that disconnect at random times.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { ENGINES, PASSWORD } from '../targets.js'
import { Abandoned, connectTo, requestsOf, restOf } from './aborts.js'
import { credentials, openSession, send } from './exchange.js'

const STORM = 500
const CLIENTS = 10
const LATE_MS = 4

describe.for(ENGINES)('%s', (engine) => {
  describe('a database that answers on request', () => {
    let abandoned: Abandoned

    beforeAll(async () => {
      abandoned = await Abandoned.start(engine)
    })
    afterAll(() => abandoned.close())

    /** A cached session is authenticated at once; other sessions are looked up first. */
    const comings = [
      ['cached', true],
      ['looked up', false],
    ] as const
    test.for(comings)(
      'a client whose session is %s leaves no resources behind if it disconnects, on any route',
      async ([, isKnown]) => {
        const { service } = abandoned
        const requests = await requestsOf(service, await abandoned.cookie())
        expect(requests.length).toBeGreaterThan(100)
        for (const request of requests) {
          // Some requests end sessions.
          const text = request(await abandoned.cookie())
          if (!isKnown) service.clock.letASecondPass()
          await abandoned.abort(text)
          expect(await restOf(service.server), text).toEqual({})
        }
      },
    )
  })

  describe('a slow database', () => {
    let abandoned: Abandoned

    beforeAll(async () => {
      abandoned = await Abandoned.start(engine, () => sleep(Math.random() * LATE_MS))
    })
    afterAll(() => abandoned.close())

    test('500 clients that disconnect at random times leave no resources behind', async () => {
      const { app, server, url } = abandoned.service
      let cookie = await abandoned.cookie()
      const requests = await requestsOf(abandoned.service, cookie)
      let left = STORM
      const client = async () => {
        while (left-- > 0) {
          const socket = await connectTo(url)
          const request = requests[Math.floor(Math.random() * requests.length)]
          if (request) socket.write(request(cookie))
          await sleep(Math.random() * 3 * LATE_MS)
          socket.resetAndDestroy()
          if (left % 20 === 0) cookie = await abandoned.cookie()
        }
      }
      await Promise.all(Array.from({ length: CLIENTS }, client))
      // A request whose client is gone shows up in no gauge while the database is late.
      await sleep(20 * LATE_MS)
      expect(await restOf(server)).toEqual({})
      // Late requests may end the sessions of the first user.
      await addUser(app, { username: 'late', password: PASSWORD, roles: ['administrator'] })
      cookie = await openSession(url, undefined, credentials('late'))
      const path = '/ws/rest/crm.Contact?limit=1'
      const answers = await Promise.all(
        Array.from({ length: 100 }, () => send(url, { path, headers: { cookie } })),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      expect(await restOf(server)).toEqual({})
    })
  })
})
