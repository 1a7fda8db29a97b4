// The start with routes of one's own: wrong routes stop it, and the guards are caught if one is missing.
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { ROUTE_TIMEOUT_MS } from '../../src/http/ext/route-timeout.js'
import { addExtRoutes } from '../../src/http/ext/ext-routes.js'
import type { RoutePlugin } from '../../src/http/ext/route-plugin.js'
import { createFastify, createHttpServer, createRequestLogger } from '../../src/http/fastify.js'
import { STRICT } from '../../src/http/compat/protocol.js'
import { buildCommonHeaders } from '../../src/http/response/headers.js'
import { createGuards, runGuards } from '../../src/http/route/guard.js'
import { createRequestLimits } from '../../src/http/route/limits.js'
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { createApp } from '../../src/service/create-app.js'
import { models } from '../models.js'
import {
  withDefaultAccess,
  withoutAdmin,
  withoutLogin,
  withoutSiteCheck,
  type GuardMistake,
} from '../mutants/ext-routes.js'
import { grantee } from '../permissions/office-fixture.js'
import { startService, type Service } from '../targets.js'
import { openSession, send } from './exchange.js'
import { guarded } from './ext-plugins.js'

let service: Service
let cookie: string
let bobCookie: string

beforeAll(async () => {
  service = await startService('sqlite')
  cookie = await openSession(service.url)
  bobCookie = (await grantee(service, [])).client.cookie
})
afterAll(() => service.close())

const open = { config: { access: 'public' } } as const

/** Returns the problems that stop the start. */
async function findProblems(routes: readonly RoutePlugin[], basePath = ''): Promise<readonly string[]> {
  let server: Server | undefined
  try {
    server = await createServer(service.app, { port: 0, basePath }, { routes })
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
  await server.close()
  return []
}

const ADVICE = `add config: { access: 'login' } to its options; 'admin' lets administrators in, 'public' lets everybody in`

describe('the start is refused', () => {
  const unsaid: RoutePlugin = async (fastify) => {
    fastify.get('/report', async () => 'report')
    fastify.route({ method: ['POST', 'PUT'], url: '/both', handler: async () => 'both' })
  }

  test('for routes without access, with all of them in one error', async () => {
    const misspelled: RoutePlugin = async (fastify) => {
      await fastify.register(
        async (nested) => {
          nested.post('/', { config: { access: 'pubic' as 'public' } }, async () => 'root')
          nested.all('/all', { config: { access: true as unknown as 'public' } }, async () => 'all')
        },
        { prefix: '/more' },
      )
    }
    const flat = Object.assign<RoutePlugin, object>(
      async (fastify) => {
        fastify.head('/only', async () => undefined)
      },
      { [Symbol.for('skip-override')]: true },
    )
    expect(await findProblems([unsaid, misspelled, guarded, flat], '/app')).toEqual([
      `GET /app/ext/report has no access: ${ADVICE}`,
      `POST, PUT /app/ext/both has no access: ${ADVICE}`,
      `POST /app/ext/more has the unknown access "pubic" (did you mean "public"?): ${ADVICE}`,
      `ALL /app/ext/more/all has the unknown access "true": ${ADVICE}`,
      `HEAD /app/ext/only has no access: ${ADVICE}`,
    ])
  })

  test('a mutant that lets users into routes without access starts', async () => {
    expect(await findProblems([unsaid])).toHaveLength(2)
    expect(await findProblems([withDefaultAccess(unsaid)])).toEqual([])
  })

  test('for routes that are not below /ext', async () => {
    const outside: RoutePlugin = async (fastify) => {
      fastify.get('ra', open, async () => 'ra')
      fastify.get('*', open, async () => 'all')
      fastify.get('/../ws/me', open, async () => 'me')
    }
    const advice = 'is not below /ext: begin its path with /'
    expect(await findProblems([outside])).toEqual([
      `GET /extra ${advice}`,
      `GET /ext* ${advice}`,
      'GET /ext/../ws/me is not below /ext: remove the dots from its path',
    ])
  })

  test('for plugins that fail, and routes that exist twice', async () => {
    const failing: RoutePlugin = async () => Promise.reject(new Error('no connection'))
    const twice: RoutePlugin = (fastify, _, done) => {
      fastify.get('/public', open, async () => 'again')
      done()
    }
    const nested: RoutePlugin = async (fastify) => {
      await fastify.register(async () => Promise.reject(new Error('no file')))
    }
    const problems = await findProblems([failing, guarded, twice, unsaid, nested, guarded])
    expect(problems.slice(0, 2)).toEqual([
      `GET /ext/report has no access: ${ADVICE}`,
      `POST, PUT /ext/both has no access: ${ADVICE}`,
    ])
    expect(problems[2]).toMatch(/^the plugin failing failed: no connection \(.*ext-start\.test\.ts:\d+\)$/)
    expect(problems[3]).toMatch(/^the plugin twice failed: Method 'GET' already declared .*'\/ext\/public'/)
    expect(problems[4]).toMatch(/^the plugin nested failed: no file/)
    expect(problems).toHaveLength(5)
  })

  test('for schemas that are invalid', async () => {
    const wrong: RoutePlugin = async (fastify) => {
      const config = { access: 'login' } as const
      fastify.post('/a', { config, schema: { body: { type: 'objekt' } } }, async () => 'a')
      fastify.get('/b', { config, schema: { querystring: { $ref: 'Missing#' } } }, async () => 'b')
    }
    const problems = await findProblems([wrong])
    expect(problems).toHaveLength(3)
    expect(problems[0]).toMatch(/^POST \/ext\/a: the schema of body is invalid: .*type/)
    expect(problems[1]).toMatch(/^GET \/ext\/b: the schema of querystring is invalid: .*Missing/)
  })

  test('for asynchronous schemas, whose promise would count as valid', async () => {
    const later: RoutePlugin = async (fastify) => {
      const config = { access: 'login' } as const
      const schema = { $async: true, type: 'object', required: ['a'] }
      fastify.addSchema({ ...schema, $id: 'Later' })
      fastify.post('/body', { config, schema: { body: schema } }, async () => 'a')
      fastify.get('/query', { config, schema: { querystring: schema } }, async () => 'b')
      fastify.post('/shared', { config, schema: { body: { $ref: 'Later#' } } }, async () => 'c')
      const inner = { type: 'object', properties: { b: schema } }
      fastify.post('/inner', { config, schema: { body: inner } }, async () => 'd')
    }
    const problems = await findProblems([later])
    for (const name of ['POST /ext/body', 'GET /ext/query', 'POST /ext/shared', 'POST /ext/inner'])
      expect(problems.join('\n')).toMatch(new RegExp(`^${name}: the schema of \\w+ is invalid: .*async`, 'm'))
  })

  test('for a plugin that throws a value without a text', async () => {
    const bare: RoutePlugin = () => {
      throw Object.create(null)
    }
    expect(await findProblems([bare])).toEqual(['the plugin bare failed: threw a value that has no text'])
  })
})

test('a start that is refused closes what the plugins have opened', async () => {
  const listeners = process.listenerCount('unhandledRejection')
  const opened: string[] = []
  const connecting: RoutePlugin = async (fastify) => {
    opened.push('connection')
    fastify.addHook('onClose', async () => void opened.pop())
  }
  const wrongSchema: RoutePlugin = async (fastify) => {
    fastify.post('/a', { ...open, schema: { body: { type: 'objekt' } } }, async () => 'a')
  }
  const notReady: RoutePlugin = async (fastify) => {
    fastify.addHook('onReady', async () =>
      Promise.reject(new ConfigError('no connection', ['no connection'])),
    )
  }
  const unsaid: RoutePlugin = async (fastify) => void fastify.get('/report', async () => 'report')
  for (const wrong of [wrongSchema, notReady, unsaid]) {
    expect(await findProblems([connecting, wrong])).toHaveLength(1)
    expect([opened, process.listenerCount('unhandledRejection')]).toEqual([[], listeners])
  }
})

describe('another App', () => {
  const say = (text: string): RoutePlugin => {
    return async (fastify) => {
      fastify.get('/text', open, async () => text)
    }
  }
  const openOther = async () => createApp({ models, settings: { db: service.location.url } })

  test('keeps the routes, takes others, and gets the former ones back after a failure', async () => {
    const other = await startService('sqlite', { routes: [say('first')] })
    const read = async () => (await send(other.url, { path: '/ext/text' })).text
    const openAgain = async () => createApp({ models, settings: { db: other.location.url } })
    const apps = [await openAgain()]
    expect(await read()).toBe('first')
    await other.server.replaceApp(async () => ({ app: apps[0] ?? (await openAgain()) }))
    expect(await read()).toBe('first')
    apps.push(await openAgain())
    await other.server.replaceApp(async () => ({
      app: apps[1] ?? (await openAgain()),
      routes: [say('second')],
    }))
    expect(await read()).toBe('second')
    const refused = other.server.replaceApp(async () => ({
      app: await openAgain(),
      routes: [async (fastify: FastifyInstance) => void fastify.get('/text', async () => 'third')],
    }))
    await expect(refused).rejects.toThrow(ConfigError)
    expect(await read()).toBe('second')
    await other.close()
    for (const app of apps) await app.close()
  })

  test('a plugin with three parameters may call done, or return a promise', async () => {
    const called: RoutePlugin = (fastify, _, done) => {
      fastify.get('/text', open, async () => 'called')
      done()
    }
    const returned: RoutePlugin = async (fastify, _options, _done) => {
      await sleep(1)
      fastify.get('/text', open, async () => 'returned')
    }
    for (const [plugin, text] of [
      [called, 'called'],
      [returned, 'returned'],
    ] as const) {
      const other = await startService('sqlite', { routes: [plugin] })
      expect((await send(other.url, { path: '/ext/text' })).text).toBe(text)
      await other.close()
    }
    const failing: RoutePlugin = async (_fastify, _options, _done) =>
      Promise.reject(new Error('no access to it'))
    expect(await findProblems([failing])).toEqual([expect.stringContaining('no access to it') as string])
  })

  test('a server without routes has no /ext', async () => {
    expect((await send(service.url, { path: '/ext/text' })).status).toBe(404)
    expect(service.server.fastify.printRoutes()).not.toContain('ext/')
    await (await openOther()).close()
  })
})

/** Serves routes with a wrong guard, or with another time limit. */
async function createInstance({
  routes = [guarded],
  mistake = (guards) => guards,
  routeTimeoutMs = 30_000,
}: {
  readonly routes?: readonly RoutePlugin[]
  readonly mistake?: GuardMistake
  readonly routeTimeoutMs?: number
}) {
  const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1' }
  const { app } = service
  const limits = createRequestLimits(app, settings)
  const hooks = { checkHost: () => undefined, limits, logRequest: createRequestLogger(app.log) }
  const errors = { log: app.log, protocol: STRICT, schemes: ['Session'], basePath: '' }
  const fastify = createFastify(settings, errors, hooks, createHttpServer())
  fastify.decorate('commonHeaders', buildCommonHeaders(settings, new AbortController().signal))
  const guards = mistake(createGuards(app, settings))
  fastify.addHook('preHandler', runGuards([guards.recheckAfterBody]))
  const context = { app, settings, guards, protocol: STRICT, routes, routeTimeoutMs }
  await fastify.register(async (base) => addExtRoutes(base, context, () => undefined))
  return { fastify, limits }
}

describe('the time limit of routes that name none', () => {
  const LIMIT_MS = 50
  const late = () => sleep(4 * LIMIT_MS)
  const slow: RoutePlugin = async (fastify) => {
    fastify.get('/never', open, async () => new Promise(() => undefined))
    fastify.get('/hook', { ...open, preHandler: () => undefined }, async () => 'never called')
    fastify.get('/own', { ...open, handlerTimeout: 60_000 }, async () => {
      await late()
      return 'own limit'
    })
    fastify.get('/stream', open, async (_, reply) =>
      reply.send(
        Readable.from(
          (async function* () {
            yield 'begins, '
            await late()
            yield 'ends'
          })(),
        ),
      ),
    )
    fastify.get('/hijacked', open, async (_, reply) => {
      reply.hijack()
      await late()
      reply.raw.end('hijacked')
    })
  }
  const readAll = async (routeTimeoutMs: number) => {
    const { fastify, limits } = await createInstance({ routes: [slow], routeTimeoutMs })
    const read = async (name: string) => {
      const { statusCode, body } = await fastify.inject(`/ext/${name}`)
      return [statusCode, statusCode === 200 ? body : (JSON.parse(body) as object)]
    }
    const names = ['never', 'hook', 'own', 'stream', 'hijacked']
    const answers = await Promise.all(names.map(read))
    const inFlight = limits.gauges()['requestsInFlight']
    await fastify.close()
    return { inFlight, answers: Object.fromEntries(names.map((name, index) => [name, answers[index]])) }
  }

  test('ends requests that are not answered, and no stream', async () => {
    const busy = [503, { status: -1, data: expect.objectContaining({ kind: 'busy' }) as object }]
    expect(await readAll(LIMIT_MS)).toEqual({
      inFlight: 0,
      answers: {
        never: busy,
        hook: busy,
        own: [200, 'own limit'],
        stream: [200, 'begins, ends'],
        hijacked: [200, 'hijacked'],
      },
    })
  })

  test('is 30 seconds', () => {
    expect(ROUTE_TIMEOUT_MS).toBe(30_000)
  })
})

describe('a missing guard is caught', () => {
  /** Statuses of requests that the guards refuse. */
  async function probe(mistake: GuardMistake): Promise<Readonly<Record<string, number>>> {
    const { fastify } = await createInstance({ mistake })
    const statusOf = async (method: 'GET' | 'POST', url: string, headers = {}) =>
      (await fastify.inject({ method, url, headers })).statusCode
    const crossSite = { cookie, 'sec-fetch-site': 'cross-site' }
    const found = {
      anonymous: await statusOf('GET', '/ext/login'),
      'not an administrator': await statusOf('GET', '/ext/admin', { cookie: bobCookie }),
      'another site': await statusOf('POST', '/ext/login', crossSite),
      'another site, public': await statusOf('POST', '/ext/public', crossSite),
      permitted: await statusOf('POST', '/ext/admin', { cookie }),
    }
    await fastify.close()
    return found
  }

  const REFUSED = {
    anonymous: 401,
    'not an administrator': 403,
    'another site': 403,
    'another site, public': 403,
    permitted: 200,
  }

  test('the guards refuse; each mutant lets its requests through', async () => {
    expect(await probe((guards) => guards)).toEqual(REFUSED)
    expect(await probe(withoutLogin)).toEqual({ ...REFUSED, anonymous: 200, 'not an administrator': 200 })
    expect(await probe(withoutAdmin)).toEqual({ ...REFUSED, 'not an administrator': 200 })
    expect(await probe(withoutSiteCheck)).toEqual({
      ...REFUSED,
      'another site': 200,
      'another site, public': 200,
    })
  })
})
