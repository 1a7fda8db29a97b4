// Answers that do not come from the service, such as the page of a proxy: no call takes them for a success.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { BusyError, connect, NetworkError, type ConnectOptions } from 'verso-records/client'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'
import { rejection } from './claims.js'
import { startFaultyProxy, type FaultyProxy } from './faulty-proxy.js'

const CONTACT = 'crm.Contact'
const RETRIES = 1
const WAIT_MS = 300

/** A whole HTTP message. */
function answer(status: string, body: string, type = 'application/json', header = ''): string {
  const length = `Content-Length: ${body.length}\r\n`
  return `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\n${length}${header}Connection: close\r\n\r\n${body}`
}

const STRANGE = [
  ['an empty body', answer('200 OK', '')],
  ['no content', 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'],
  ['null', answer('200 OK', 'null')],
  ['JSON of another service', answer('200 OK', '{"status":"ok"}')],
  ['a page', answer('200 OK', '<h1>Maintenance</h1>', 'text/html')],
  ['a body that is cut off after the headers', 'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n'],
] as const

onEngineOfTier((engine) => {
  let service: Service
  let proxy: FaultyProxy

  beforeAll(async () => {
    service = await startService(engine)
    proxy = await startFaultyProxy(service.url)
  })
  afterAll(async () => {
    await proxy.close()
    await service.close()
  })
  afterEach(() => {
    proxy.choose = () => undefined
  })

  const open = (options: ConnectOptions = { retries: RETRIES }) =>
    connect(proxy.url, { username: USERNAME, password: PASSWORD }, options)

  /** Answers every request to a path with this message. */
  function answerWith(path: RegExp, message: string): void {
    proxy.choose = (request) => (path.test(request.path) ? { message } : undefined)
  }

  async function countRequests(work: () => Promise<unknown>): Promise<number> {
    const before = proxy.requests.length
    await work()
    return proxy.requests.length - before
  }

  test.for(STRANGE)(
    '%s is no answer to any call: each is repeated, and then rejects',
    async ([, message]) => {
      const verso = open()
      await verso.login()
      const contacts = verso.model(CONTACT)
      answerWith(/^\/ws\//, message)
      const calls = [
        () => contacts.create({ lastName: 'lost' }),
        () => contacts.update(1, { version: 0, lastName: 'lost' }),
        () => contacts.update(1, () => ({ lastName: 'lost' })),
        () => contacts.remove(1),
        () => contacts.read(1),
        () => contacts.find(),
        () => contacts.search(),
        () => contacts.history(1),
        () => contacts.all().next(),
        () => contacts.changes(),
        () => contacts.follow({ since: 0 }).next(),
        () => contacts.download(1, 'photo'),
        () => verso.batch([{ op: 'delete', model: CONTACT, id: 1 }]),
      ]
      for (const call of calls) {
        // An empty field is an answer to a download.
        if (message.includes('204') && /download/.test(String(call))) continue
        const count = await countRequests(async () => {
          const error = await rejection(NetworkError, call())
          expect(error.kind).toBe('network')
        })
        expect(count, String(call)).toBe(1 + RETRIES)
      }
    },
  )

  test.for(STRANGE)('%s is no answer to a login', async ([, message]) => {
    answerWith(/callback$/, message)
    await rejection(NetworkError, open().login())
  })

  test('a request of the caller may get any JSON, an empty body, or 304', async () => {
    const verso = open()
    expect((await verso.request('GET', '/healthz')).status).toBe(200)
    const { headers } = await verso.request('GET', '/ws/openapi.json')
    const etag = headers.get('etag') ?? ''
    const again = await verso.request('GET', '/ws/openapi.json', { headers: { 'if-none-match': etag } })
    expect([again.status, again.body]).toEqual([304, undefined])
  })

  test('a follower waits as long as Retry-After says before it connects again', async () => {
    const verso = open()
    const changes = verso.model(CONTACT).follow({ since: 0 })
    await verso.model(CONTACT).create({ lastName: 'followed' })
    await changes.next()
    answerWith(/changes/, answer('503 Busy', '{}', 'application/json', 'Retry-After: 3600\r\n'))
    const count = await countRequests(async () => {
      proxy.cut()
      const pending = changes.next()
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
      await changes.return?.()
      await pending
    })
    expect(count).toBe(1)
  })

  test('a wait that is longer than a timer can be is not cut short', async () => {
    const verso = open({ retries: 5, timeout: Infinity })
    await verso.login()
    answerWith(/crm/, answer('503 Busy', '{}', 'application/json', 'Retry-After: 3000000\r\n'))
    const stop = new AbortController()
    const count = await countRequests(async () => {
      const pending = verso.model(CONTACT).find({}, { signal: stop.signal })
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
      stop.abort(new Error('stopped'))
      await expect(pending).rejects.toThrow('stopped')
    })
    expect(count).toBe(1)
    await rejection(BusyError, open().model(CONTACT).find({}, { timeout: 1_000 }))
  })
})
