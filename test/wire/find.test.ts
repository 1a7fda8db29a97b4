import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, only, openSession, pageOf, type User } from './exchange.js'

const PATH = '/ws/rest/crm.Contact'
const COUNT = 45

onEveryEngine((engine) => {
  let service: Service
  let user: User

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
    for (let number = 1; number <= COUNT; number++) {
      await user.create('crm.Contact', {
        firstName: `N${number}`,
        lastName: 'Last',
        email: `${number}@example.org`,
      })
    }
  })
  afterAll(() => service.close())

  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index)
  /** Ids have no gaps here. */
  const behind = (id: number) => Buffer.from(JSON.stringify([id])).toString('base64url')
  const link = (pages: Record<string, number>, limit: number, tail = '', path = PATH) =>
    Object.entries(pages)
      .map(([rel, offset]) => {
        const after = rel === 'next' ? `&after=${behind(offset)}` : ''
        return `<${path}?offset=${offset}&limit=${limit}${after}${tail}>; rel="${rel}"`
      })
      .join(', ')

  test('a page has status, offset, total and data; its records have id, version and the list fields', async () => {
    const answer = await user.get(`${PATH}?offset=1&limit=2`)
    expect(answer.text).toBe(
      `{"status":0,"offset":1,"total":${COUNT},"data":[` +
        `{"id":2,"version":0,"fullName":"N2 Last","email":"2@example.org"},` +
        `{"id":3,"version":0,"fullName":"N3 Last","email":"3@example.org"}]}`,
    )
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  test('a find of a model without records answers an empty page', async () => {
    const answer = await user.get('/ws/rest/test.Everything')
    expect([answer.status, answer.text]).toEqual([200, '{"status":0,"offset":0,"total":0,"data":[]}'])
    expect(answer.headers.link).toBe(link({ first: 0, last: 0 }, 40, '', '/ws/rest/test.Everything'))
  })

  const pages: readonly (readonly [query: string, offset: number, ids: readonly number[]])[] = [
    ['', 0, range(1, 40)],
    ['?', 0, range(1, 40)],
    ['?offset=40', 40, range(41, 45)],
    ['?limit=3', 0, range(1, 3)],
    ['?offset=44&limit=10', 44, [45]],
    ['?offset=45', 45, []],
    ['?offset=9007199254740991', 9007199254740991, []],
    ['?limit=0', 0, []],
    ['?limit=0&offset=7', 7, []],
    ['?limit=1000', 0, range(1, 45)],
    ['?limit=9007199254740991', 0, range(1, 45)],
    ['?offset=007&limit=01', 7, [8]],
    ['?offset=%30&limit=%31', 0, [1]],
    ['?_unknown=1&__proto__=2&limit=1', 0, [1]],
    ['?archived=true&limit=1', 0, [1]],
    [`?after=${behind(5)}&limit=3`, 0, range(6, 8)],
    [`?offset=7&limit=3&after=${behind(5)}`, 7, range(6, 8)],
    [`?offset=7&limit=3&after=${behind(0)}`, 7, range(1, 3)],
    [`?offset=1&limit=3&after=${behind(44)}`, 1, [45]],
    [`?offset=1&limit=3&after=${behind(45)}`, 1, []],
    [`?limit=0&after=${behind(5)}`, 0, []],
  ]
  test.for(pages)('find%s answers its page', async ([query, offset, ids]) => {
    const answer = await user.get(PATH + query)
    const body = pageOf(answer)
    expect([answer.status, body.offset, body.total]).toEqual([200, offset, COUNT])
    expect(body.data.map((record) => record.id)).toEqual(ids)
  })

  const links: readonly (readonly [query: string, expected: string | undefined])[] = [
    ['', link({ first: 0, next: 40, last: 40 }, 40)],
    ['?limit=10', link({ first: 0, next: 10, last: 40 }, 10)],
    ['?offset=20&limit=10', link({ first: 0, prev: 10, next: 30, last: 40 }, 10)],
    ['?offset=40&limit=10', link({ first: 0, prev: 30, last: 40 }, 10)],
    ['?offset=5&limit=10', link({ first: 0, prev: 0, next: 15, last: 40 }, 10)],
    ['?offset=1000&limit=10', link({ first: 0, prev: 40, last: 40 }, 10)],
    ['?limit=45', link({ first: 0, last: 0 }, 45)],
    ['?limit=9', link({ first: 0, next: 9, last: 36 }, 9)],
    ['?limit=5000', link({ first: 0, last: 0 }, 1000)],
    ['?limit=10&archived=true', link({ first: 0, next: 10, last: 40 }, 10, '&archived=true')],
    ['?limit=0', undefined],
    [`?offset=20&limit=10&after=${behind(20)}`, link({ first: 0, prev: 10, next: 30, last: 40 }, 10)],
    [`?offset=40&limit=10&after=${behind(35)}`, link({ first: 0, prev: 30, last: 40 }, 10)],
    [`?limit=10&after=${behind(COUNT)}`, link({ first: 0, last: 40 }, 10)],
  ]
  test.for(links)('find%s answers its Link header', async ([query, expected]) => {
    expect((await user.get(PATH + query)).headers.link).toBe(expected)
  })

  test('following the next links shows every record once', async () => {
    const seen: number[] = []
    let next: string | undefined = `${PATH}?limit=7`
    while (next !== undefined) {
      const answer = await user.get(next)
      seen.push(...pageOf(answer).data.map((record) => record.id))
      next = /<([^>]*)>; rel="next"/.exec(String(answer.headers.link))?.[1]
    }
    expect(seen).toEqual(range(1, COUNT))
  })

  describe('archived records', () => {
    test('archived records are found and counted only on request', async () => {
      const { id } = only(await user.create('test.Note', { title: 'old', archived: true }))
      const { id: current } = only(await user.create('test.Note', { title: 'new' }))
      const shown = pageOf(await user.get('/ws/rest/test.Note'))
      expect([shown.total, shown.data.map((record) => record.id)]).toEqual([1, [current]])
      const all = pageOf(await user.get('/ws/rest/test.Note?archived=true'))
      expect([all.total, all.data.map((record) => record.id)]).toEqual([2, [id, current]])
      expect(only(await user.get(`/ws/rest/test.Note/${id}`))).toMatchObject({ title: 'old', archived: true })
    })
  })

  test('a limit above the setting is lowered to it, in the page and in its links', async () => {
    const small = await startService(engine, { settings: { maxPageSize: 3 } })
    try {
      const reader = asUser(small.url, await openSession(small.url))
      for (let number = 0; number < 5; number++) await reader.create('crm.Contact', {})
      for (const query of ['', '?limit=3', '?limit=4', '?limit=1000']) {
        const answer = await reader.get(PATH + query)
        expect(pageOf(answer).data.map((record) => record.id)).toEqual([1, 2, 3])
        expect(answer.headers.link).toBe(link({ first: 0, next: 3, last: 3 }, 3))
      }
    } finally {
      await small.close()
    }
  })
})
