// Every damaged form is answered, and leaves nothing behind.
import { expect, test } from 'vitest'
import { auditFiles } from '../file-audit.js'
import { ENGINES, startService, type Engine, type Service } from '../targets.js'
import { restOf } from './aborts.js'
import { openSession, send } from './exchange.js'

type Listening = Pick<Service, 'server' | 'url'>

const PATH = '/ws/rest/doc.Folder/upload'
const GOOD = [
  ...['--B', 'Content-Disposition: form-data; name="file"; filename="a"', '', 'hello'],
  ...['--B', 'Content-Disposition: form-data; name="field"', '', 'cover', '--B--', ''],
].join('\r\n')
/** The header of its last part does not end. */
const ENDLESS = GOOD.replace('\r\n\r\ncover', '\r\nX')
const AT_ONCE = 8
/** All forms on one engine, a sample on the other: both read forms with the same code. */
const EVERY: Readonly<Record<Engine, number>> = { sqlite: 1, postgres: 7 }

/** Every prefix of the form, and the form without each of its bytes. */
function damaged(every: number): string[] {
  const places = Array.from({ length: GOOD.length }, (_, index) => index)
  const forms = places.flatMap((at) => [GOOD.slice(0, at), GOOD.slice(0, at) + GOOD.slice(at + 1)])
  return [ENDLESS, ...forms.filter((_, index) => index % every === 0)]
}

/** The statuses of the answered requests; the others still hold a slot. */
async function upload(
  { server, url }: Listening,
  cookie: string,
  forms: readonly string[],
): Promise<number[]> {
  const statuses: number[] = []
  const headers = { cookie, 'content-type': 'multipart/form-data; boundary=B' }
  const waiting = [...forms]
  const client = async () => {
    for (let body = waiting.shift(); body !== undefined; body = waiting.shift()) {
      const { status } = await send(url, { method: 'POST', path: PATH, headers, body })
      statuses.push(status)
    }
  }
  // Requests without an answer end with the server.
  const clients = Promise.allSettled(Array.from({ length: AT_ONCE }, client)).then(() => 'done')
  for (let before = -1; before !== statuses.length;) {
    before = statuses.length
    if ((await Promise.race([clients, restOf(server)])) === 'done') break
  }
  return statuses
}

test.for(ENGINES)('every damaged form is answered, and leaves nothing behind: %s', async (engine) => {
  const service = await startService(engine)
  const { server, url, app, location } = service
  const cookie = await openSession(url)
  expect(await upload(service, cookie, [GOOD])).toEqual([200])
  const forms = damaged(EVERY[engine])
  const statuses = await upload(service, cookie, forms)
  expect(statuses).toHaveLength(forms.length)
  expect([...new Set(statuses)].sort()).toEqual([200, 400, 404])
  expect(await restOf(server)).toEqual({})
  expect((await auditFiles(app.db, location.url)).violations).toEqual([])
  await service.close()
})

test('the mutant that waits for the end of the parser is caught', async () => {
  const service = await startService('sqlite')
  const cookie = await openSession(service.url)
  const http = service.server.fastify.server
  http.prependListener('request', (message) => {
    const pipe = message.pipe.bind(message)
    message.pipe = (parser, options) => {
      const end = parser.end.bind(parser)
      parser.end = () => end()
      return pipe(parser, options)
    }
  })
  expect(await upload(service, cookie, [GOOD])).toEqual([200])
  expect(await upload(service, cookie, [ENDLESS])).toEqual([])
  expect(await restOf(service.server)).toEqual({ requestsInFlight: 1, uploadsPending: 1 })
  http.closeAllConnections()
  await service.close()
})
