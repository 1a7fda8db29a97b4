// Query strings: every route rejects an unknown parameter, with a suggestion.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FindQuery } from '../../src/model/query/search.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { recordsFor } from '../../src/service/records/records.js'
import type { Server } from '../../src/http/server.js'
import { identityIn, onEveryEngine, PASSWORD, catchError, startService, type Service } from '../targets.js'
import {
  asUser,
  credentials,
  envelope,
  only,
  openSession,
  pageOf,
  withServer,
  type User,
} from './exchange.js'
import { routesOf } from './routes.js'

const CONTACTS = '/ws/rest/crm.Contact'
/** Public, and not about records. */
const EXEMPT = ['/ws/public/app/info', '/ws/*']

/** Sends an unknown parameter to each method of each route below a path; returns the requests that were not rejected. */
async function ignoring(server: Server, user: User, below = '/ws/'): Promise<string[]> {
  const asked: string[] = []
  const ignored: string[] = []
  for (const route of routesOf(server.fastify).keys()) {
    if (!route.startsWith(below) || EXEMPT.includes(route)) continue
    const path = route
      .replace(':model', 'crm.Contact')
      .replace(':id', '1')
      .replace(':field', 'pin')
      .replace(':version', '0')
    const { headers } = await user.ask('OPTIONS', `${path}?surprise=1`)
    const methods = (headers.allow ?? '').split(', ').filter((method) => method !== 'OPTIONS')
    expect(methods, route).not.toEqual([''])
    for (const method of methods) {
      const { status, text } = await user.ask(method, `${path}?surprise=1`)
      asked.push(`${method} ${route}`)
      const isNamed = method === 'HEAD' || text.includes('unknown parameter \\"surprise\\"')
      if (status !== 400 || !isNamed) ignored.push(`${method} ${route}: ${status} ${text.slice(0, 100)}`)
    }
  }
  expect(asked).toEqual(expect.arrayContaining([`GET /ws/rest/:model`, 'DELETE /ws/rest/:model/:id']))
  expect(asked.length).toBeGreaterThan(20)
  return ignored
}

onEveryEngine((engine) => {
  let service: Service
  let user: User

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
    for (const lastName of ['B', 'C', 'A']) await user.create('crm.Contact', { lastName })
  })
  afterAll(() => service.close())

  const messageOf = async (path: string, method = 'GET', by = user) => {
    const answer = await by.ask(method, path)
    const { data } = envelope(answer)
    expect([answer.status, data.kind], `${path} ${answer.text}`).toEqual([400, 'bad-request'])
    return data.message
  }

  test('every route rejects an unknown parameter', async () => {
    expect(await ignoring(service.server, user)).toEqual([])
    // The rejected requests had no effect.
    expect(pageOf(await user.get(CONTACTS)).total).toBe(3)
  })

  const WORDS: Readonly<Record<string, string>> = {
    ...{ sort: 'sortBy', order: 'sortBy', orderBy: 'sortBy', order_by: 'sortBy', $orderby: 'sortBy' },
    ...{ sortby: 'sortBy', sort_by: 'sortBy', size: 'limit', per_page: 'limit', pageSize: 'limit' },
    ...{ 'page[size]': 'limit', $top: 'limit', limt: 'limit', skip: 'offset', start: 'offset' },
    ...{ search: 'q', query: 'q', Q: 'q', where: 'filter', filters: 'filter', select: 'fields' },
    ...{
      field: 'fields',
      expand: 'fields',
      cursor: 'after',
      archive: 'archived',
      asof: 'asOf',
      as_of: 'asOf',
    },
  }
  test.each(Object.entries(WORDS))(
    'a find with the parameter %s is rejected, and suggests %s',
    async (word, meant) => {
      expect(await messageOf(`${CONTACTS}?${encodeURIComponent(word)}=1`)).toBe(
        `unknown parameter "${word}" (did you mean "${meant}"?)`,
      )
    },
  )

  test('a find with a page number is rejected, and explains offset', async () => {
    for (const word of ['page', 'pageNumber', 'p'])
      expect(await messageOf(`${CONTACTS}?sort=-lastName&${word}=2`)).toBe(
        `unknown parameter "sort" (did you mean "sortBy"?); ` +
          `unknown parameter "${word}" (did you mean "offset"? It counts records, not pages)`,
      )
  })

  test('an unknown parameter without a suggestion is rejected with the list of known ones', async () => {
    expect(await messageOf(`${CONTACTS}?surprise=1&sort=x`)).toBe(
      'unknown parameter "surprise"; unknown parameter "sort" (did you mean "sortBy"?); ' +
        'known parameters: offset, limit, after, fields, sortBy, filter, q, archived, asOf, count',
    )
    expect(await messageOf(`${CONTACTS}/deleted?surprise=1`)).toBe(
      'unknown parameter "surprise"; known parameters: limit, before, q',
    )
    expect(await messageOf(`${CONTACTS}/1/copy?surprise=1`)).toBe(
      'unknown parameter "surprise"; this request has no parameters',
    )
    for (const [method, path] of [
      ['POST', '/search'],
      ['POST', '/1/fetch'],
      ['PUT', ''],
      ['POST', '/1'],
    ] as const)
      expect(await messageOf(`${CONTACTS}${path}?limit=1`, method)).toBe(
        'unknown parameter "limit": this request reads its options from the body, not from the query string',
      )
    const long = 'x'.repeat(5_000)
    expect((await messageOf(`${CONTACTS}?${long}=1`)).length).toBeLessThan(300)
    const many = Array.from({ length: 1_000 }, (_, index) => `many${index}=1`).join('&')
    expect((await messageOf(`${CONTACTS}?${many}`)).split('; ')).toHaveLength(20)
  })

  test('a read with fields or version is rejected, and names the right route', async () => {
    expect(await messageOf(`${CONTACTS}/1?fields=lastName&version=0`)).toBe(
      'unknown parameter "fields": use POST …/:id/fetch to select fields; ' +
        'unknown parameter "version": use GET …/:id/history/:version to read a version',
    )
  })

  test('a field as a parameter is rejected with the filter to use, if the user may read it', async () => {
    expect(await messageOf(`${CONTACTS}?lastName=B`)).toBe(
      `unknown parameter "lastName": to compare this field, send filter=lastName='…'`,
    )
    expect(await messageOf(`${CONTACTS}?pin=1`)).not.toContain('filter=pin')
    await addUser(service.app, { username: 'guest', password: PASSWORD, roles: [] })
    const guest = asUser(service.url, await openSession(service.url, {}, credentials('guest')))
    expect((await guest.get(`${CONTACTS}?lastName=B`)).status).toBe(404)
  })

  test('all errors of a query are reported together', async () => {
    const find = await messageOf(`${CONTACTS}?sort=x&limit=-1&filter=(&asOf=never&fields=nothing&archived=2`)
    for (const part of ['"sort"', 'limit must', 'filter', 'asOf must', '"nothing"', 'archived must'])
      expect(find).toContain(part)
    expect(await messageOf(`${CONTACTS}/1?asOf=never&as_of=2`)).toMatch(/"as_of" .*asOf.*; asOf must be/)
    expect(await messageOf(`${CONTACTS}/1/history?page=2&limit=x`)).toMatch(/"page" .*"offset".*; limit must/)
    expect(await messageOf(`${CONTACTS}/deleted?after=7&search=x&limit=x&before=-1`)).toMatch(
      /"after" \(did you mean "before"\?\); .*"search" \(did you mean "q"\?\); limit must.*; before must/,
    )
    expect(await messageOf(`${CONTACTS}/1/details?nam=x&name=nothing`)).toMatch(
      /"nam" .*"name".*; .*"nothing"/,
    )
    expect(await messageOf(`${CONTACTS}/perms?actoin=read&action=fly`)).toMatch(/"actoin" .*; action must be/)
    expect(await messageOf('/ws/changes?page=2&since=x&models=a')).toMatch(
      /"page".*"models" \(did you mean "model"\?\).*since must/,
    )
    expect(await messageOf('/ws/webhooks/1/deliveries?page=2&limit=x')).toMatch(/"page" .*; limit must/)
  })

  test('a delete with a misspelled version parameter deletes nothing', async () => {
    const { id, version } = only(await user.create('crm.Contact', { lastName: 'D' }))
    const path = `${CONTACTS}/${id}`
    expect(await messageOf(`${path}?Version=${version + 1}`, 'DELETE')).toBe(
      'unknown parameter "Version" (did you mean "version"?)',
    )
    expect(await messageOf(`${path}?rev=7&version=x`, 'DELETE')).toBe(
      'unknown parameter "rev" (did you mean "version"?); version must be a whole number from 0',
    )
    expect((await user.ask('DELETE', `${path}?version=${version}`)).status).toBe(200)
  })

  test('parameters that begin with an underscore are ignored', async () => {
    const same = [
      ...[`${CONTACTS}?limit=2`, `${CONTACTS}/1?asOf=0`, `${CONTACTS}/1/history?limit=1`],
      ...[
        `${CONTACTS}/perms?id=1`,
        `${CONTACTS}/deleted?limit=1`,
        '/ws/changes?since=0',
        `${CONTACTS}/1/details?name=lastName`,
      ],
    ]
    for (const path of same)
      expect((await user.get(`${path}&_=1699999999&__proto__=1&_x[]=1`)).text).toBe(
        (await user.get(path)).text,
      )
    expect((await user.get(`${CONTACTS}/1/copy?_=1`)).status).toBe(200)
    expect(pageOf(await user.ask('POST', `${CONTACTS}/search?_=1`, {})).total).toBe(3)
  })

  test('the service without HTTP rejects unknown parameters, too', async () => {
    const records = recordsFor(service.app, await identityIn(service))
    const asked = { sort: '-lastName', limit: 2 } as FindQuery
    expect((await catchError(records.find('crm.Contact', asked))).message).toContain('"sortBy"')
    expect((await catchError(records.history('crm.Contact', 1, asked))).message).toContain('"sort"')
    expect(await records.find('crm.Contact', { sortBy: undefined, _: 1 } as FindQuery)).toMatchObject({
      total: 3,
    })
  })

  test('with --compat, unknown parameters are ignored, and the check of all routes notices it', async () => {
    await withServer(service, { compat: 'axelor' }, async (url) => {
      const other = asUser(url, await openSession(url))
      const page = pageOf(await other.get(`${CONTACTS}?sort=-lastName&page=2&limit=2`))
      expect(page).toEqual(pageOf(await user.get(`${CONTACTS}?limit=2`)))
      expect(only(await other.get(`${CONTACTS}/1?fields=lastName`))).toEqual(
        only(await user.get(`${CONTACTS}/1`)),
      )
      const { id } = only(await other.create('crm.Contact', { lastName: 'D' }))
      expect((await other.ask('DELETE', `${CONTACTS}/${id}?surprise=1`)).status).toBe(200)
      for (const path of ['/ws/changes', '/ws/webhooks/1/deliveries'])
        expect((await other.get(`${path}?surprise=1`)).status).toBe(400)
      const ignored = await ignoring(service.server, other, '/ws/rest/')
      for (const route of ['GET /ws/rest/:model', 'GET /ws/rest/:model/:id', 'POST /ws/rest/:model/search'])
        expect(ignored).toContainEqual(expect.stringContaining(`${route}: 200`))
    })
  })
})
