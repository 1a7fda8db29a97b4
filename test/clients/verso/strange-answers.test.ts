// Answers that do not come from the service, such as the page of a proxy: no call takes them for a success.
import { expect, test } from 'vitest'
import { BusyError, NetworkError, type connect, type ConnectOptions } from 'verso-records/client'
import { ACCEPTING_ANY_ANSWER, HURRYING, importMutantClient } from '../../mutants/client-code.js'
import { onEngineOfTier } from '../../targets.js'
import { rejection } from './claims.js'
import { useProxiedService } from './proxied-service.js'

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
  const proxied = useProxiedService(engine)
  const open = (options: ConnectOptions = { retries: RETRIES }, connectClient?: typeof connect) =>
    proxied.open(options, connectClient)

  /** Answers every request to a path with this message. */
  function answerWith(path: RegExp, message: string): void {
    proxied.proxy.choose = (request) => (path.test(request.path) ? { message } : undefined)
  }

  async function countRequests(work: () => Promise<unknown>): Promise<number> {
    const before = proxied.proxy.requests.length
    await work()
    return proxied.proxy.requests.length - before
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
        () => contacts.deleted(),
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

  test('the mutant that takes any JSON for an answer acknowledges writes that no service has seen', async () => {
    const verso = open({}, (await importMutantClient(ACCEPTING_ANY_ANSWER)).connect)
    await verso.login()
    for (const body of ['null', '{"status":"ok"}']) {
      answerWith(/^\/ws\//, answer('200 OK', body))
      expect(await verso.model(CONTACT).create({ lastName: 'lost' })).toBeUndefined()
    }
  })

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

  /** Counts the requests of a follower that is told to wait for an hour, from the first to some time after `atLeast`. */
  async function countReconnects(atLeast: number, connectClient?: typeof connect): Promise<number> {
    const contacts = open({ retries: 0 }, connectClient).model(CONTACT)
    const changes = contacts.follow({ since: (await contacts.find({ limit: 0 })).seq })
    await contacts.create({ lastName: 'followed' })
    await changes.next()
    answerWith(/changes/, answer('503 Busy', '{}', 'application/json', 'Retry-After: 3600\r\n'))
    return countRequests(async () => {
      const before = proxied.proxy.requests.length
      proxied.proxy.cut()
      const pending = changes.next()
      await expect
        .poll(() => proxied.proxy.requests.length - before, { timeout: 60_000 })
        .toBeGreaterThanOrEqual(atLeast)
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
      await changes.return?.()
      await pending
    })
  }

  test('a follower waits as long as Retry-After says before it connects again', async () => {
    expect(await countReconnects(1)).toBe(1)
  })

  test('the mutant that does not wait for Retry-After is caught', async () => {
    const { connect: connectMutant } = await importMutantClient(HURRYING)
    expect(await countReconnects(2, connectMutant)).toBeGreaterThan(1)
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
