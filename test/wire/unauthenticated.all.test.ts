// Without a session nobody can access a record, in any spelling of the path. A guard that checks the spelling is caught.
import { METHODS } from 'node:http'
import { fastify, type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, only, openSession, pageOf, rawRequest, sendRaw } from './exchange.js'
import { routesOf, withoutSlash } from './routes.js'

const MARKER = 'marker-7f3a9c'
const REJECTED = [400, 401, 403, 404, 405, 415, 421]
/** Public paths and methods that reveal no record. */
const OPEN = new Map([
  ['/', ['GET', 'HEAD', 'OPTIONS']],
  ['/assets/:file', ['OPTIONS']],
  ['/healthz', ['GET', 'HEAD', 'OPTIONS']],
  ['/readyz', ['GET', 'HEAD', 'OPTIONS']],
  ['/logout', ['GET', 'POST', 'OPTIONS']],
  ['/callback', ['OPTIONS']],
  ['/login.jsp', ['OPTIONS']],
  ['/setup', ['OPTIONS']],
  ['/reset', ['OPTIONS']],
  ['/ws/public/app/info', ['GET', 'HEAD', 'OPTIONS']],
  ['/docs', ['GET', 'HEAD', 'OPTIONS']],
  ['/docs/:version/:file', ['OPTIONS']],
])
const BODY = '{"data":{"version":0,"firstName":"intruder"}}'

/** Other spellings of a path that begins with /ws; they are sent exactly like this. */
function spellingsOf(path: string): string[] {
  const [, ws = '', rest = '', model = '', id = ''] = path.split('/')
  const tail = id === '' ? '' : `/${id}`
  return [
    path,
    `${path}/`,
    `${path}?`,
    `${path}?x=/../`,
    `${path}#`,
    `${path};jsessionid=1`,
    `${path};/`,
    `${path}%00`,
    `${path}%20`,
    `${path}.json`,
    path.replace('/ws', '/%77s'),
    path.replace('/ws', '/w%73'),
    path.replace('/ws', '/%77%73'),
    path.replace('/ws', '/%2577s'),
    path.replace('/ws', '/%u0077s'),
    path.replace('/ws', '/%C0%B7s'),
    path.replace('/rest', '/%72est'),
    path.replace('/rest', '/%72%65%73%74'),
    path.replace('/ws', '/WS'),
    path.replace('/rest', '/REST'),
    path.toUpperCase(),
    `/${path}`,
    `//${path}`,
    path.replaceAll('/', '//'),
    path.replaceAll('/', '\\'),
    path.replace('/ws/', '/ws\\'),
    path.replace('/ws/', '/ws%5c'),
    path.replace('/ws/', '/ws%2f'),
    path.replace('/ws/', '/ws%2F%2F'),
    `/%2f${path.slice(1)}`,
    `%2f${path.slice(1)}`,
    path.slice(1),
    `/.${path}`,
    `/..${path}`,
    `/./././${path.slice(1)}`,
    `/healthz/..${path}`,
    `/healthz/../..${path}`,
    `/healthz/%2e%2e${path}`,
    `/healthz/%2e%2e%2f${path.slice(1)}`,
    `/healthz;/..;${path}`,
    `/callback/..${path}`,
    `/logout/../${ws}/${rest}/${model}${tail}`,
    `/${ws}/./${rest}/${model}${tail}`,
    `/${ws}/x/../${rest}/${model}${tail}`,
    `/${ws};x=y/${rest}/${model}${tail}`,
    `/${ws}/${rest}/.%2f${model}${tail}`,
    `http://localhost${path}`,
    `http://localhost/%77s${path.slice('/ws'.length)}`,
    `http://evil.example${path}`,
    `https://localhost:1/${path}`,
    `HTTP://LOCALHOST${path}`,
    `ftp://localhost${path}`,
    `http:${path}`,
    `*${path}`,
    `/?${path}`,
    `/#${path}`,
    `?${path}`,
    `/${ws}\t/${rest}/${model}${tail}`,
    `/\u0000${path}`,
    `/ｗs${path.slice('/ws'.length)}`,
  ]
}

interface Hole {
  readonly line: string
  readonly status: number
  readonly text: string
}

/** Every response that is not an error, or that shows the record. */
async function holesIn(url: string, lines: readonly string[]): Promise<Hole[]> {
  const holes: Hole[] = []
  for (const line of lines) {
    const method = line.split(' ')[0] ?? ''
    const hasBody = ['PUT', 'POST', 'PATCH'].includes(method)
    const body: Readonly<Record<string, string>> = hasBody
      ? { 'content-type': 'application/json', 'content-length': String(BODY.length) }
      : {}
    const { status, text } = await sendRaw(url, rawRequest(`${line} HTTP/1.1`, body, hasBody ? BODY : ''))
    const isRejected = REJECTED.includes(status) || isNoAnswer(method, status) || isStart(line, status, text)
    if (!isRejected || text.includes(MARKER)) holes.push({ line, status, text: text.slice(0, 200) })
  }
  return holes
}

/** A tunnel, or bytes that are not a request, may stay without a response. */
function isNoAnswer(method: string, status: number): boolean {
  return status === 0 && method === 'CONNECT'
}

/** A `?` or `#` after the first slash leads to the public start page. */
function isStart(line: string, status: number, text: string): boolean {
  return status === 200 && /^\w+ (?:\/verso)?\/?[?#]/.test(line) && !text.includes('"data"')
}

onEveryEngine((engine) => {
  for (const basePath of ['', '/verso']) {
    describe(basePath === '' ? 'at the root' : `below ${basePath}`, () => {
      let service: Service
      let id: number

      beforeAll(async () => {
        service = await startService(engine, { http: { basePath }, setupToken: 'token' })
        const user = asUser(service.url, await openSession(service.url))
        ;({ id } = only(await user.create('crm.Contact', { firstName: MARKER, email: MARKER })))
      })
      afterAll(async () => {
        // None of these requests has changed anything.
        const user = asUser(service.url, await openSession(service.url))
        const record = only(await user.get(`/ws/rest/crm.Contact/${id}`))
        const { total } = pageOf(await user.get('/ws/rest/crm.Contact'))
        await service.close()
        expect([record['version'], record['firstName'], total]).toEqual([0, MARKER, 1])
      })

      test('the test knows every route of the server', () => {
        const routes = [...routesOf(service.server.fastify).keys()]
        const known = ['/', '/healthz', '/readyz', '/callback', '/login.jsp', '/logout', '/setup']
        const guarded = ['/ws/rest/:model', '/ws/rest/:model/:id']
        expect(routes).toEqual(
          expect.arrayContaining([...known, ...guarded].map((path) => basePath + path).map(withoutSlash)),
        )
        for (const [route, methods] of routesOf(service.server.fastify)) {
          if (!route.includes('*'))
            expect([...methods].sort(), route).toEqual(expect.arrayContaining(['DELETE', 'GET', 'OPTIONS']))
        }
      })

      test('every route rejects every method without a session, except for the public ones', async () => {
        const lines: string[] = []
        for (const route of routesOf(service.server.fastify).keys()) {
          const path = route
            .replace(':model', 'crm.Contact')
            .replace(':id', String(id))
            .replace('*', 'anything')
          const open = OPEN.get(route.slice(basePath.length) || '/') ?? []
          for (const method of METHODS) if (!open.includes(method)) lines.push(`${method} ${path}`)
        }
        expect(lines.length).toBeGreaterThan(200)
        expect(await holesIn(service.url, lines)).toEqual([])
      })

      test('public paths reveal no record', async () => {
        for (const [path, methods] of OPEN) {
          for (const method of methods) {
            const { status, text } = await sendRaw(
              service.url,
              rawRequest(`${method} ${basePath}${path} HTTP/1.1`),
            )
            expect([200, 204], `${method} ${path}`).toContain(status)
            expect(text).not.toContain(MARKER)
          }
        }
      })

      test('no spelling of a path below /ws bypasses the session check', async () => {
        const methods = basePath === '' ? ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'] : ['GET', 'DELETE']
        for (const path of ['/ws/rest/crm.Contact', `/ws/rest/crm.Contact/${id}`]) {
          const lines = spellingsOf(path)
            .map((spelling) =>
              basePath === '' ? spelling : spelling.replace(/^(https?:\/\/[^/]*)?/i, `$1${basePath}`),
            )
            .flatMap((spelling) => methods.map((method) => `${method} ${spelling}`))
          expect(lines.length).toBeGreaterThan(methods.length * 40)
          expect(await holesIn(service.url, lines)).toEqual([])
        }
      })
    })
  }
})

describe('a mutant guard that checks the start of the path', () => {
  let server: FastifyInstance
  let url: string

  beforeAll(async () => {
    server = fastify()
    server.addHook('onRequest', async (request, reply) => {
      if (request.url.startsWith('/ws') && request.headers.cookie === undefined) await reply.code(401).send()
    })
    server.get('/ws/rest/:model', async () => ({ status: 0, data: [{ firstName: MARKER }] }))
    url = await server.listen({ host: '127.0.0.1', port: 0 })
  })
  afterAll(() => server.close())

  test('the mutant guard that checks the start of the path is caught', async () => {
    const lines = spellingsOf('/ws/rest/crm.Contact').map((spelling) => `GET ${spelling}`)
    const holes = await holesIn(url, lines)
    expect(holes.map((hole) => hole.line)).toEqual(
      expect.arrayContaining([
        'GET /%77s/rest/crm.Contact',
        'GET /w%73/rest/crm.Contact',
        'GET http://localhost/ws/rest/crm.Contact',
      ]),
    )
    for (const hole of holes) expect(hole.text).toContain(MARKER)
    expect(await holesIn(url, ['GET /ws/rest/crm.Contact'])).toEqual([])
  })
})
