// Routes of a made-up installation, as people write them.
import { setTimeout as sleep } from 'node:timers/promises'
import { Readable } from 'node:stream'
import { VersoError } from '../../src/errors.js'
import type { RoutePlugin } from '../../src/http/ext/route-plugin.js'
import { Note } from '../models.js'

/** Routes with every access, for reads and writes. */
export const guarded: RoutePlugin = async (fastify) => {
  for (const access of ['public', 'login', 'admin'] as const) {
    fastify.get(`/${access}`, { config: { access } }, async (request) => ({ user: request.verso.user }))
    fastify.route({
      method: ['POST', 'PUT', 'PATCH', 'DELETE'],
      url: `/${access}`,
      config: { access },
      handler: async (request) => ({ user: request.verso.user, body: request.body ?? null }),
    })
  }
  fastify.all('/every', { config: { access: 'login' } }, async ({ method }) => ({ method }))
  await fastify.register(
    async (nested) => {
      nested.get('/deep', { config: { access: 'login' } }, async () => 'deep')
      // Not awaited, as in the documentation of Fastify.
      void nested.register(
        async (deeper) => {
          deeper.get('/', { config: { access: 'admin' } }, async () => 'deeper')
        },
        { prefix: '/deeper' },
      )
    },
    { prefix: '/nested' },
  )
}

/** A plugin without a scope of its own, as the package fastify-plugin makes them. */
export const flat: RoutePlugin = Object.assign(
  ((fastify, _, done) => {
    fastify.addHook('onRequest', async (request, reply) => {
      void reply.header('x-seen-user', request.verso.user?.username ?? 'nobody')
    })
    fastify.get('/flat', { config: { access: 'login' } }, async () => ({ flat: true }))
    done()
  }) satisfies RoutePlugin,
  { [Symbol.for('skip-override')]: true },
)

/** Routes that read and write records. */
export const notes: RoutePlugin = async (fastify) => {
  const login = { config: { access: 'login' } } as const
  fastify.get<{ Params: { id: string } }>('/notes/:id', login, async ({ verso, params }) =>
    verso.records.of(Note).read(Number(params.id)),
  )
  fastify.get('/titles', login, async ({ verso }) => {
    const { data, total } = await verso.records.of(Note).find({ fields: ['title'], sortBy: ['id'] })
    return { total, titles: data.map(({ title }) => title) }
  })
  fastify.post<{ Body: { titles: string[] } }>('/notes', login, async ({ verso, body }) =>
    verso.records.transaction(async (records) => {
      const created: number[] = []
      for (const title of body.titles) created.push((await records.of(Note).create({ title })).id)
      return { created }
    }),
  )
  fastify.get('/count', { config: { access: 'public' } }, async ({ verso }) => {
    const { total } = await verso.records.asSystem().of(Note).find({ limit: 1 })
    return { total }
  })
  fastify.get('/mine', { config: { access: 'public' } }, async ({ verso }) => verso.records.of(Note).find())
  fastify.get('/ours', { config: { access: 'public' } }, async ({ verso }) =>
    verso.records.transaction(async (records) => records.of('test.Note').find()),
  )
}

/** Routes that change with all permissions what their caller may not read. */
export const system: RoutePlugin = async (fastify) => {
  const update = { version: 0, title: 'of the route' }
  for (const access of ['public', 'login'] as const) {
    const options = { config: { access } }
    fastify.post<{ Params: { id: string } }>(`/stale-${access}/:id`, options, async ({ verso, params }) =>
      verso.records.asSystem().of(Note).update(Number(params.id), update),
    )
    fastify.post<{ Params: { id: string } }>(
      `/stale-work-${access}/:id`,
      options,
      async ({ verso, params }) =>
        verso.records
          .asSystem()
          .transaction(async (records) => records.of(Note).update(Number(params.id), update)),
    )
  }
  fastify.post<{ Params: { id: string } }>(
    '/remove-work/:id',
    { config: { access: 'login' } },
    async ({ verso, params }) =>
      verso.records
        .asSystem()
        .transaction(async (records) => records.of('rel.Company').remove(Number(params.id))),
  )
  const login = { config: { access: 'login' } } as const
  const wrong = { amount: -1 }
  fastify.post('/wrong', login, async ({ verso }) => verso.records.asSystem().of('ext.Secret').create(wrong))
  fastify.post('/wrong-inside', login, async ({ verso }) =>
    verso.records.transaction(async (records) => records.asSystem().of('ext.Secret').create(wrong)),
  )
  fastify.post('/wrong-work', login, async ({ verso }) =>
    verso.records.asSystem().transaction(async (records) => records.of('ext.Secret').create(wrong)),
  )
  fastify.post('/own-error', { config: { access: 'login' } }, async ({ verso }) =>
    verso.records.asSystem().transaction(async () => {
      await Promise.resolve()
      throw new VersoError('gone', 'The words of the route')
    }),
  )
}

/** Routes with every kind of answer. */
export const answers: RoutePlugin = async (fastify) => {
  const open = { config: { access: 'public' } } as const
  fastify.get('/text', open, async () => 'plain')
  fastify.get('/bytes', open, async () => Buffer.from([1, 2, 3]))
  fastify.get('/stream', open, async (_, reply) => reply.type('text/csv').send(Readable.from(['a,', 'b'])))
  fastify.get('/empty', open, async (_, reply) => reply.code(204).send())
  fastify.get('/nothing', open, async () => undefined)
  fastify.get('/created', open, async (_, reply) => {
    void reply.code(201).header('location', '/ext/created/1').header('vary', 'X-Own')
    return { id: 1 }
  })
  fastify.get('/cached', open, async (_, reply) => {
    void reply.header('cache-control', 'public, max-age=60')
    return { cached: true }
  })
  fastify.get('/old', open, (_, reply) => {
    void reply.send({ old: true })
  })
  fastify.get('/moved', open, async (_, reply) => reply.redirect('/ext/text', 303))
}

/** Calls of routes that wait until a test lets them go on. */
export class Waiting {
  #arrive = (): void => undefined
  #release = (): void => undefined
  readonly arrived = new Promise<void>((resolve) => (this.#arrive = resolve))
  readonly released = new Promise<void>((resolve) => (this.#release = resolve))

  arrive(): void {
    this.#arrive()
  }

  release(): void {
    this.#release()
  }
}

/** Routes that fail in every way. */
export function createFailing(waiting: Waiting): RoutePlugin {
  return async (fastify) => {
    const open = { config: { access: 'public' } } as const
    const thrown: Readonly<Record<string, () => unknown>> = {
      error: () => new Error('a secret of the route'),
      text: () => 'a secret text',
      nothing: () => undefined,
      bare: () => Object.create(null) as unknown,
      status: () => Object.assign(new Error('a secret answer of another service'), { statusCode: 404 }),
      verso: () => new VersoError('conflict', 'Too late', { data: { hint: 'try again' } }),
      gone: () => new VersoError('gone', 'This report is no longer kept'),
      bigint: () => new VersoError('conflict', 'a secret', { data: { amount: 1n } }),
      details: () =>
        Object.defineProperty(new VersoError('conflict', 'a secret'), 'details', {
          get: () => {
            throw new Error('a secret of the getter')
          },
        }),
      retry: () => new VersoError('busy', 'Later', { retryAfterS: '1\r\nx: y' as never }),
      hook: () => new VersoError('hook-failed', 'The transaction waited'),
      unknown: () => new VersoError('secret-kind' as 'gone', 'a secret of the route'),
    }
    for (const [name, create] of Object.entries(thrown)) {
      fastify.get(`/fail/${name}`, open, async (_, reply) => {
        void reply.code(201).header('x-secret', 'of the route').type('text/html')
        await sleep(1)
        throw create()
      })
      fastify.get(`/fail-at-once/${name}`, open, () => {
        throw create()
      })
    }
    fastify.get('/fail/circle', open, async () => {
      const circle: { self?: unknown } = {}
      circle.self = circle
      return circle
    })
    fastify.get('/fail/stream', open, async (_, reply) =>
      reply.send(
        new Readable({
          read() {
            this.destroy(new Error('a secret of the stream'))
          },
        }),
      ),
    )
    fastify.get('/fail/objects', open, async (_, reply) => reply.send(Readable.from([{ a: 1 }])))
    fastify.get('/wait', open, async () => {
      waiting.arrive()
      await waiting.released
      return { waited: true }
    })
    fastify.get('/limited', { ...open, handlerTimeout: 20 }, async () => new Promise(() => undefined))
  }
}

/** Routes with schemas. */
export const checked: RoutePlugin = async (fastify) => {
  fastify.addSchema({ $id: 'Amount', type: 'integer', minimum: 1 })
  fastify.post(
    '/orders/:customer',
    {
      config: { access: 'login' },
      schema: {
        summary: 'Place an order',
        description: 'Checks the stock first.',
        tags: ['Orders'],
        params: { type: 'object', properties: { customer: { type: 'integer' } } },
        querystring: {
          type: 'object',
          required: ['urgent'],
          additionalProperties: false,
          properties: {
            urgent: { type: 'boolean', description: 'Deliver today.' },
            tag: { type: 'array', items: { type: 'string' } },
          },
        },
        headers: {
          type: 'object',
          properties: { 'X-Channel': { type: 'string', enum: ['shop', 'phone'] } },
        },
        body: {
          type: 'object',
          required: ['lines'],
          additionalProperties: false,
          properties: {
            note: { type: 'string', maxLength: 5, example: 'fast' },
            isGift: { type: 'boolean', default: false },
            lines: {
              type: 'array',
              items: {
                type: 'object',
                required: ['item'],
                properties: { item: { type: 'string' }, amount: { $ref: 'Amount#' } },
              },
            },
          },
        },
        response: {
          201: {
            type: 'object',
            description: 'The order.',
            required: ['customer'],
            properties: { customer: { type: 'integer' } },
          },
        },
      },
    },
    async ({ params, query, body, headers }, reply) => {
      void reply.code(201)
      return { ...(params as object), query, body, channel: headers['x-channel'] ?? null }
    },
  )
  fastify.get(
    '/orders/:id(^\\d+$)/export.:format',
    { config: { access: 'admin' }, schema: { summary: 'Export an order', response: { 200: {} } } },
    async ({ params }) => params,
  )
  fastify.get(
    '/ping',
    {
      config: { access: 'public' },
      schema: { response: { 200: { content: { 'text/plain': { schema: { type: 'string' } } } } } },
    },
    async () => 'pong',
  )
  fastify.get('/hidden', { config: { access: 'public' }, schema: { hide: true } }, async () => 'hidden')
  fastify.get('/unsaid', { config: { access: 'public' } }, async () => 'unsaid')
}
