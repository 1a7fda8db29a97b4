// HTTP basics: methods, HEAD, OPTIONS, content types, slashes, and request ids.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  expectError,
  JSON_BODY,
  only,
  openSession,
  rawRequest,
  send,
  sendRaw,
  type User,
} from './exchange.js'

const CONTACT = 'crm.Contact'
const CONTACTS = '/ws/rest/crm.Contact'
const JSON_TYPE = 'application/json; charset=utf-8'

onEveryEngine((engine) => {
  let service: Service
  let user: User

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
  })
  afterAll(() => service.close())

  describe('methods', () => {
    const allowed = [
      ['/', 'GET, HEAD, OPTIONS'],
      ['/healthz', 'GET, HEAD, OPTIONS'],
      ['/readyz', 'GET, HEAD, OPTIONS'],
      ['/callback', 'POST, OPTIONS'],
      ['/login.jsp', 'POST, OPTIONS'],
      ['/logout', 'GET, POST, OPTIONS'],
      [CONTACTS, 'GET, POST, PUT, HEAD, OPTIONS'],
      [`${CONTACTS}/1`, 'GET, POST, PATCH, DELETE, HEAD, OPTIONS'],
    ] as const

    test.for(allowed)(
      '%s allows %s, lists them in OPTIONS, and rejects other methods with 405',
      async ([path, allow]) => {
        const options = await user.ask('OPTIONS', path)
        expect([options.status, options.text, options.headers.allow]).toEqual([204, '', allow])
        const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
          (method) => !allow.split(', ').includes(method),
        )
        for (const method of others) {
          const answer = await user.ask(method, path)
          expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow])
          if (method !== 'HEAD') expectError(answer, 405, 'method')
        }
      },
    )

    test('HEAD answers the headers of GET without a body', async () => {
      const { id } = only(await user.create(CONTACT, { firstName: 'Head' }))
      for (const path of [`${CONTACTS}/${id}`, `${CONTACTS}?limit=1`, '/healthz', '/']) {
        const [get, head] = [await user.get(path), await user.ask('HEAD', path)]
        expect([path, head.status, head.text]).toEqual([path, get.status, ''])
        for (const name of ['content-type', 'content-length', 'etag', 'link'])
          expect(head.headers[name]).toBe(get.headers[name])
      }
      expect((await user.ask('HEAD', `${CONTACTS}/0`)).status).toBe(404)
    })
  })

  describe('tolerance', () => {
    test('a trailing slash and a percent-encoded model name are accepted', async () => {
      const { id } = only(await user.create(CONTACT, { firstName: 'Slash' }))
      for (const path of [
        `${CONTACTS}/${id}/`,
        `/ws/rest/crm%2EContact/${id}`,
        `/ws/rest/%63rm.Contac%74/${id}/`,
      ]) {
        expect(only(await user.get(path)), path).toMatchObject({ id, firstName: 'Slash' })
      }
      expect((await user.get(`${CONTACTS}/?limit=0`)).status).toBe(200)
      expect((await send(service.url, { path: '/healthz/' })).status).toBe(200)
    })

    test('GET and DELETE accept a JSON content type without a body', async () => {
      const { id } = only(await user.create(CONTACT, {}))
      for (const type of [
        'application/json',
        'application/json; charset=utf-8',
        'application/json;charset="UTF-8"',
      ]) {
        expect((await user.get(CONTACTS, { 'content-type': type })).status, type).toBe(200)
        expect((await user.get(`${CONTACTS}/${id}`, { 'content-type': type })).status, type).toBe(200)
      }
      expect((await user.ask('DELETE', `${CONTACTS}/${id}`, undefined, JSON_BODY)).status).toBe(200)
      const { id: another } = only(await user.create(CONTACT, {}))
      const empty = { ...JSON_BODY, 'content-length': 0 }
      expect((await user.ask('DELETE', `${CONTACTS}/${another}`, undefined, empty)).status).toBe(200)
    })

    test('a missing or unknown Accept is answered with JSON', async () => {
      for (const headers of [
        {},
        { accept: '*/*' },
        { accept: 'application/json' },
        { accept: 'text/html' },
        { accept: '' },
      ]) {
        const answer = await user.get(`${CONTACTS}?limit=0`, headers)
        expect([answer.status, answer.headers['content-type']]).toEqual([200, JSON_TYPE])
      }
    })

    test.for([
      'application/json',
      'application/json; charset=utf-8',
      'application/json;charset=UTF8',
      'Application/JSON',
    ])('a body is accepted as %s', async (type) => {
      expect((await user.create(CONTACT, { firstName: 'Type' }, { 'content-type': type })).status).toBe(200)
    })

    test('every response without an id in its request has an X-Request-Id of its own', async () => {
      const answers = [
        await user.get(CONTACTS),
        await user.get(CONTACTS, { 'x-request-id': 'not valid' }),
        await send(service.url, { path: '/nothing', headers: { 'request-id': 'mine' } }),
        await send(service.url, { path: '/healthz' }),
        await sendRaw(service.url, rawRequest('GET /%zz HTTP/1.1')),
      ]
      const ids = answers.map((answer) => String(answer.headers['x-request-id']))
      for (const id of ids) expect(id).toMatch(/^[\w-]{12,}$/)
      expect(new Set(ids).size).toBe(answers.length)
    })
  })
})
