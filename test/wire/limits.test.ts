// Limits: requests a minute, concurrent requests, connections, headers, and time.
import { once } from 'node:events'
import { createServer as createHttp, type Server as HttpServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConnectionTracker } from '../../src/http/connection/connection-tracker.js'
import { BUSY_MESSAGES } from '../../src/http/route/errors.js'
import { RequestsInFlight } from '../../src/http/route/limits.js'
import { RateLimiter } from '../../src/http/connection/rate-limit.js'
import { createServer } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { onEngineOfTier, PASSWORD, catchError, startService, type Service } from '../targets.js'
import {
  credentials,
  envelope,
  expectError,
  JSON_BODY,
  login,
  openSession,
  addressOf,
  rawRequest,
  send,
  sendRaw,
  withServer,
  type Answer,
} from './exchange.js'

const CONTACTS = '/ws/rest/crm.Contact'
const PER_MINUTE = 6
/** Lets the tests choose their address. */
const TRUSTING = { trustProxy: ['127.0.0.1'] }
const from = (address: string) => ({ 'x-forwarded-for': address })

/** Repeats a request until its response is as expected; the timeout of the test ends it otherwise. */
async function until(ask: () => Promise<Answer>, isIt: (answer: Answer) => boolean): Promise<Answer> {
  for (;;) {
    const answer = await ask()
    if (isIt(answer)) return answer
  }
}

describe('rate-limit buckets', () => {
  const fault = async (limit: RateLimiter, key: string) =>
    catchError(
      (async () => {
        limit.take(key)
      })(),
    )

  test('a bucket holds one minute of requests, refills evenly, and answers Retry-After', async () => {
    const clock = new StillClock()
    const limit = new RateLimiter(30, clock)
    for (let count = 0; count < 30; count++) limit.take('a')
    expect(await fault(limit, 'a')).toMatchObject({ kind: 'too-many', details: { retryAfterS: 2 } })
    limit.take('b')
    clock.ms += 2_000
    limit.take('a')
    expect(await fault(limit, 'a')).toMatchObject({ kind: 'too-many' })
    clock.ms += 3_600_000
    for (let count = 0; count < 30; count++) limit.take('a')
    expect(await fault(limit, 'a')).toMatchObject({ kind: 'too-many' })
  })

  test('a bucket is neither filled nor emptied by a clock that is set back', async () => {
    const clock = new StillClock()
    const limit = new RateLimiter(2, clock)
    limit.take('a')
    clock.ms -= 3_600_000
    limit.take('a')
    expect(await fault(limit, 'a')).toMatchObject({ kind: 'too-many' })
    clock.ms += 30_000
    limit.take('a')
  })

  test('when there are too many buckets, full ones are dropped first, then the oldest', async () => {
    const clock = new StillClock()
    const limit = new RateLimiter(2, clock, 3)
    for (const key of ['empty', 'empty', 'half', 'full']) limit.take(key)
    limit.refund('full')
    limit.take('new')
    expect(limit.size).toBe(3)
    expect(await fault(limit, 'empty')).toMatchObject({ kind: 'too-many' })
    // No bucket is full now, so the oldest one is dropped.
    clock.ms += 1_000
    limit.take('newer')
    limit.take('newest')
    expect(limit.size).toBe(3)
    for (let count = 0; count < 10_000; count++) limit.take(`flood ${count}`)
    expect(limit.size).toBe(3)
  })
})

describe('pipelined requests', () => {
  /** Returns if the load is still too high after the only client has disconnected. */
  const isTooMuchAfterwards = async (watch: (server: HttpServer) => void) => {
    const inFlight = new RequestsInFlight(6)
    let gone: Promise<unknown> | undefined
    let tell: () => void = () => undefined
    const full = new Promise<void>((resolve) => (tell = resolve))
    const server = createHttp((request, response) => {
      gone ??= once(request.socket, 'close')
      inFlight.add(response)
      response.on('close', () => {
        inFlight.remove(response)
      })
      if (inFlight.isFull) tell()
    })
    watch(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.write(rawRequest('GET / HTTP/1.1', { connection: 'keep-alive' }).repeat(7))
    await full
    client.destroy()
    await gone
    server.close()
    return inFlight.isFull
  }

  test('pipelined requests no longer count when their connection ends', async () => {
    const connections = new ConnectionTracker(10)
    const watch = (server: HttpServer) => {
      connections.track(server)
    }
    expect(await isTooMuchAfterwards(watch)).toBe(false)
  })

  test('the mutant that relies on Node to close pipelined requests counts them forever', async () => {
    expect(await isTooMuchAfterwards(() => undefined)).toBe(true)
  })
})

class StillClock {
  ms = 1_700_000_000_000
  now(): number {
    return this.ms
  }
}

onEngineOfTier((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine, { expects: ['busy'] })
    await addUser(service.app, { username: 'grace', name: 'Grace', password: PASSWORD, roles: ['editor'] })
  })
  afterAll(() => service.close())

  const limited = { ...TRUSTING, rateLimitPerMinute: PER_MINUTE }
  const statuses = async (count: number, ask: () => Promise<Answer>) => {
    const all: number[] = []
    for (let index = 0; index < count; index++) all.push((await ask()).status)
    return all
  }
  const times = (count: number, status: number) => Array.from({ length: count }, () => status)

  describe('requests a minute', () => {
    test('requests of an account count for the account, from any address', async () => {
      const [ada, grace] = [
        await openSession(service.url),
        await openSession(service.url, {}, credentials('grace')),
      ]
      await withServer(service, limited, async (url) => {
        let address = 0
        const ask = (cookie: string) => () =>
          send(url, { path: `${CONTACTS}?limit=0`, headers: { cookie, ...from(`10.0.0.${++address}`) } })
        expect(await statuses(PER_MINUTE, ask(ada))).toEqual(times(PER_MINUTE, 200))
        const rejected = await ask(ada)()
        expectError(rejected, 429, 'too-many')
        expect(Number(rejected.headers['retry-after'])).toBeGreaterThanOrEqual(1)
        expect(Number(rejected.headers['retry-after'])).toBeLessThanOrEqual(10)
        expect((await ask(grace)()).status).toBe(200)
        service.clock.advance(60_000)
        expect((await ask(ada)()).status).toBe(200)
      })
    })

    test('requests of an account do not count for its address', async () => {
      const [ada, grace] = [
        await openSession(service.url),
        await openSession(service.url, {}, credentials('grace')),
      ]
      await withServer(service, limited, async (url) => {
        const ask = (cookie: string) => () =>
          send(url, { path: `${CONTACTS}?limit=0`, headers: { cookie, ...from('10.0.0.1') } })
        expect(await statuses(PER_MINUTE, ask(ada))).toEqual(times(PER_MINUTE, 200))
        expect(await statuses(PER_MINUTE, ask(grace))).toEqual(times(PER_MINUTE, 200))
        expect((await login(url, from('10.0.0.1'))).status).toBe(200)
      })
    })

    test('requests without an account count for the address or the IPv6 network', async () => {
      await withServer(service, limited, async (url) => {
        const ask = (address: string) => () => send(url, { path: CONTACTS, headers: from(address) })
        expect(await statuses(PER_MINUTE, ask('10.0.0.1'))).toEqual(times(PER_MINUTE, 401))
        expectError(await ask('10.0.0.1')(), 429, 'too-many')
        expectError(await ask('::ffff:10.0.0.1')(), 429, 'too-many')
        expect((await ask('10.0.0.2')()).status).toBe(401)
        let host = 0
        const neighbours = () => ask(`2001:db8:1:2::${(++host).toString(16)}`)()
        expect(await statuses(PER_MINUTE, neighbours)).toEqual(times(PER_MINUTE, 401))
        expectError(await neighbours(), 429, 'too-many')
        expect((await ask('2001:db8:1:3::1')()).status).toBe(401)
      })
    })

    test('an unknown client cannot choose the address that its requests count for', async () => {
      await withServer(service, { ...limited, trustProxy: false }, async (url) => {
        let other = 0
        const ask = () =>
          login(
            url,
            {
              ...from(`10.0.0.${++other}`),
              'x-real-ip': `10.0.0.${other}`,
              forwarded: `for=10.0.0.${other}`,
            },
            JSON.stringify({ username: 'ada', password: 5, address: `10.0.0.${other}` }),
          )
        await until(ask, ({ status }) => status === 429)
        expect(other).toBe(PER_MINUTE + 1)
      })
    })

    test('requests count on every path, even on unknown ones, except for health checks and logout', async () => {
      await withServer(service, limited, async (url) => {
        const paths = ['/', '/nothing', '/ws/nothing', '/callback', '/ws/public/app/info', CONTACTS]
        for (const path of paths) await send(url, { path, headers: from('10.0.0.1') })
        for (const path of paths)
          expectError(await send(url, { path, headers: from('10.0.0.1') }), 429, 'too-many')
        for (const path of ['/healthz', '/readyz', '/logout', '/healthz', '/readyz', '/logout'])
          expect((await send(url, { path, headers: from('10.0.0.1') })).status, path).toBe(200)
      })
    })

    test('a request above the rate limit is rejected before its session is looked up and its body arrives', async () => {
      await withServer(service, limited, async (url) => {
        await statuses(PER_MINUTE, () => send(url, { path: CONTACTS }))
        const cookie = await openSession(service.url)
        const head = rawRequest(`PUT ${CONTACTS} HTTP/1.1`, {
          ...{ cookie, ...JSON_BODY, 'content-length': '1000000', connection: 'close' },
        })
        expectError(await sendRaw(url, head), 429, 'too-many')
      })
    })

    test('a rate limit of 0 disables the limit', async () => {
      const cookie = await openSession(service.url)
      await withServer(service, { rateLimitPerMinute: 0 }, async (url) => {
        const answers = await statuses(50, () =>
          send(url, { path: `${CONTACTS}?limit=0`, headers: { cookie } }),
        )
        expect(new Set(answers)).toEqual(new Set([200]))
      })
    })
  })

  describe('concurrent requests', () => {
    /** A login whose body never arrives: it stays in flight until its connection ends. */
    const begin = async (url: string): Promise<Socket> => {
      const socket = connect(addressOf(url))
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write(rawRequest('POST /callback HTTP/1.1', { 'content-length': '10' }))
      return socket
    }
    const ask = (url: string) => () => send(url, { path: '/' })
    const isBusy = ({ status }: Answer) => status === 503
    const isServed = ({ status }: Answer) => status === 200

    test('a request above the limit is 503 with Retry-After; health checks and logout are answered', async () => {
      await withServer(service, { maxConcurrentRequests: 2 }, async (url) => {
        const waiting = [await begin(url), await begin(url)]
        const rejected = await until(ask(url), isBusy)
        expectError(rejected, 503, 'busy')
        expect(rejected.headers['retry-after']).toBe('1')
        const head = rawRequest(`PUT ${CONTACTS} HTTP/1.1`, { ...JSON_BODY, 'content-length': '1000000' })
        expectError(await sendRaw(url, head), 503, 'busy')
        for (const path of ['/healthz', '/readyz', '/logout'])
          expect((await send(url, { path })).status, path).toBe(200)
        waiting[0]?.destroy()
        await until(ask(url), isServed)
        waiting[1]?.destroy()
      })
    })

    test('an export counts as in flight until it is sent, however slowly it is read', async () => {
      const cookie = await openSession(service.url)
      const notes = 'x'.repeat(1_000_000)
      for (let index = 0; index < 16; index++)
        await send(service.url, {
          ...{ method: 'PUT', path: CONTACTS, headers: { cookie, ...JSON_BODY } },
          body: JSON.stringify({ data: { notes } }),
        })
      await withServer(service, { maxConcurrentRequests: 1 }, async (url) => {
        const slow = connect(addressOf(url))
        const body = '{"fields":["notes"]}'
        const headers = { cookie, ...JSON_BODY, 'content-length': String(body.length) }
        slow.write(rawRequest(`POST ${CONTACTS}/export HTTP/1.1`, headers, body))
        await once(slow, 'readable')
        slow.pause()
        for (let index = 0; index < 3; index++) expectError(await ask(url)(), 503, 'busy')
        slow.resume()
        await once(slow, 'close')
        await until(ask(url), isServed)
      })
    })

    /** Asks 40 times at once while each turn of the event loop takes 30 ms. */
    const askBusyServer = async (url: string, headers: Record<string, string> = {}) => {
      const hog = setInterval(() => {
        const endMs = performance.now() + 30
        while (performance.now() < endMs);
      }, 1)
      try {
        const paths = ['/healthz', '/readyz?write', ...times(38, 0).map(() => CONTACTS)]
        return await Promise.all(paths.map((path) => send(url, { path, headers })))
      } finally {
        clearInterval(hog)
      }
    }
    const hasBusy = (answers: Answer[]) => answers.some(isBusy)

    test('while turns of the event loop take too long, requests beyond the first are 503 with Retry-After', async () => {
      const shop = 'https://shop.example'
      await withServer(service, { maxEventLoopDelayMs: 20, allowOrigins: [shop] }, async (url) => {
        let answers: Answer[] = []
        while (!hasBusy(answers)) answers = await askBusyServer(url, { origin: shop })
        for (const answer of answers.filter(isBusy)) {
          expectError(answer, 503, 'busy')
          expect(answer.text).toContain(BUSY_MESSAGES.overloaded)
          expect(answer.headers).toMatchObject({
            'retry-after': '1',
            'access-control-allow-origin': shop,
            'x-content-type-options': 'nosniff',
          })
        }
        expect(answers.slice(0, 2).map(({ status }) => status)).toEqual([200, 200])
        expect(answers.filter(({ status }) => status === 401).length).toBeGreaterThanOrEqual(6)
        expect((await ask(url)()).status).toBe(200)
        await until(
          () => send(url, { path: CONTACTS }),
          ({ status }) => status === 401,
        )
      })
    })

    test('a maximum delay of 0 refuses nothing', async () => {
      await withServer(service, { maxEventLoopDelayMs: 0 }, async (url) => {
        for (let count = 0; count < 10; count++) expect(hasBusy(await askBusyServer(url))).toBe(false)
      })
    })
  })

  test('a connection above the limit is closed, and a closed one makes room, on every address', async () => {
    const settings = { ...DEFAULT_HTTP_SETTINGS, host: 'localhost', port: 0, maxConnections: 2 }
    const own = await createServer(service.app, settings)
    const [, ...addresses] = await own.listen()
    expect(addresses.length).toBeGreaterThanOrEqual(1)
    for (const url of addresses) {
      const open = async () => {
        const socket = connect(addressOf(url))
        await once(socket, 'connect')
        return socket
      }
      const [first, second] = [await open(), await open()]
      const ask = () => sendRaw(url, rawRequest('GET /healthz HTTP/1.1'))
      expect(await until(ask, ({ status }) => status !== 200)).toMatchObject({ status: 0, text: '' })
      first.destroy()
      await until(ask, ({ status }) => status === 200)
      second.destroy()
    }
    await own.close()
  })

  describe('headers and slow requests', () => {
    const names = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, 'y']))

    test.for([
      ['one long header', { 'x-long': 'y'.repeat(17_000) }],
      ['many short headers', names(5_000)],
    ] as const)('headers of more than 16 KiB are 431: %s', async ([, headers]) => {
      const answer = await sendRaw(service.url, rawRequest('GET /healthz HTTP/1.1', headers))
      expectError(answer, 431, 'too-large')
      expect(answer.headers).toMatchObject({ connection: 'close', 'x-content-type-options': 'nosniff' })
      expect(envelope(answer).data.message).toBe('The request headers are too large')
    })

    test('headers of less than 16 KiB are accepted', async () => {
      for (const headers of [{ 'x-long': 'y'.repeat(15_000) }, names(1_000)])
        expect((await sendRaw(service.url, rawRequest('GET /healthz HTTP/1.1', headers))).status).toBe(200)
    })

    test('headers or a body that arrive too slowly are 408', async () => {
      const own = await createServer(service.app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
      try {
        const [url = ''] = await own.listen()
        const http = own.fastify.server
        expect([http.headersTimeout, http.requestTimeout, http.keepAliveTimeout]).toEqual([
          10_000, 30_000, 72_000,
        ])
        // Shorter timeouts; Node checks for late requests every five seconds.
        http.headersTimeout = 50
        http.requestTimeout = 100
        const [head, body] = await Promise.all([
          sendRaw(url, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'),
          sendRaw(url, rawRequest('POST /callback HTTP/1.1', { 'content-length': '10' }, '{')),
        ])
        for (const answer of [head, body]) {
          expectError(answer, 408, 'bad-request')
          expect(answer.headers['x-content-type-options']).toBe('nosniff')
        }
      } finally {
        await own.close()
      }
    })
  })
})
