// Fails a test if the service answered an unexpected error, even if the test never looked at that response.
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { failIfUnexpected, takeUnexpected, watchLog } from './server-failures.js'
import { preparedLocation, startService, type ServiceOptions } from './targets.js'
import { asUser, openSession, withServer } from './wire/exchange.js'
import { FailingDatabase } from './wire/failing-database.js'
import { VersoError } from '../src/errors.js'

const DEFECT = new Error('a defect')
const BUSY = new VersoError('busy', 'The server is overloaded', { retryAfterS: 1 })

/** One read of a service whose database fails so; answers the status of the read. */
async function failWith(failure: Error, options: ServiceOptions = {}, isOther = false): Promise<number> {
  const location = await preparedLocation('sqlite')
  const database = await FailingDatabase.open(location.url)
  const service = await startService('sqlite', { location, database, expects: [], ...options })
  const read = async (url: string) => {
    const user = asUser(url, await openSession(url))
    database.failure = failure
    const { status } = await user.get('/ws/rest/crm.Contact?limit=1')
    database.failure = undefined
    return status
  }
  try {
    return await (isOther ? withServer(service, {}, read) : read(service.url))
  } finally {
    await service.close()
    location.remove()
  }
}

test.fails('a test fails if the service answers 500, even if the test checks nothing', async () => {
  await failWith(DEFECT)
})

test.each([
  [DEFECT, 500],
  [BUSY, 503],
])(
  'a request that fails with %s is reported, also on a second server of the same service',
  async (failure, status) => {
    for (const isOther of [false, true]) {
      expect(await failWith(failure, {}, isOther)).toBe(status)
      expect(failIfUnexpected).toThrow(`GET /ws/rest/crm.Contact?limit=1 was answered with ${status}`)
      expect(failIfUnexpected).not.toThrow()
    }
  },
)

test('an expected failure passes, an unexpected one is reported', async () => {
  expect(await failWith(BUSY, { expects: ['busy'] }, true)).toBe(503)
  expect(takeUnexpected()).toEqual([])
  expect(await failWith(DEFECT, { expects: ['busy'] })).toBe(500)
  expect(takeUnexpected()).toHaveLength(1)
})

test('the log of a service in another process reports unexpected failures, too', async () => {
  const lines = new PassThrough().on('data', watchLog(['busy']))
  const log = pino(lines)
  expect(await failWith(BUSY, { log, expects: ['busy'] })).toBe(503)
  expect(takeUnexpected()).toEqual([])
  expect(await failWith(DEFECT, { log, expects: ['internal'] })).toBe(500)
  expect(takeUnexpected()).toEqual([expect.stringMatching(/own: \{.*"status":500,.*"msg":"request"/)])
})
