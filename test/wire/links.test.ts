// The Link header carries the whole question, so that whoever follows it reads every record of one answer.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, only, openSession, pageOf, type User } from './exchange.js'

const PATH = '/ws/rest/test.Note'
const COUNT = 23
const TITLE = 'ä&b=c?#%>; "x", +'

/** As a client would spell it, and as it must come back: each value encoded, whatever stands in it. */
function queryOf(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
}

onEveryEngine((engine) => {
  let service: Service
  let user: User
  const ids: number[] = []

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
    for (let number = 0; number < COUNT; number++) {
      const note = { title: `${TITLE} ${100 + number}`, archived: number % 3 === 0 }
      ids.push(only(await user.create('test.Note', note)).id)
      await user.create('test.Note', { title: 'another' })
    }
  })
  afterAll(() => service.close())

  const linksOf = (header: unknown): Readonly<Record<string, string | undefined>> =>
    Object.fromEntries(
      Array.from(String(header).matchAll(/<([^>]*)>; rel="([^"]*)"/g), ([, target = '', rel = '']) => [
        rel,
        target,
      ]),
    )
  const follow = async (start: string) => {
    const seen: (readonly [id: number, ...shown: string[]])[] = []
    let next: string | undefined = start
    while (next !== undefined) {
      const answer = await user.get(next)
      expect(answer.status, answer.text).toBe(200)
      seen.push(...pageOf(answer).data.map(({ id, ...shown }) => [id, ...Object.keys(shown)] as const))
      next = linksOf(answer.headers.link)['next']
    }
    return seen
  }

  const question = {
    ...{ fields: 'title,createdBy.name', sortBy: '-createdBy,-title', filter: `title like '${TITLE}%'` },
    ...{ q: 'Ä&B >;', archived: 'true' },
  }

  test('every link repeats fields, sortBy, filter, q and archived, encoded', async () => {
    const { headers } = await user.get(`${PATH}?offset=10&limit=5&${queryOf(question)}&unknown=1`)
    const link = (offset: number) => `${PATH}?offset=${offset}&limit=5&${queryOf(question)}`
    const values = [['-createdBy.name', 'Ada'], ['-title', `${TITLE} ${100 + 8}`], ids[8]]
    const after = Buffer.from(JSON.stringify(values)).toString('base64url')
    const next = link(15).replace('limit=5', `limit=5&after=${after}`)
    expect(linksOf(headers.link)).toEqual({ first: link(0), prev: link(5), next, last: link(20) })
  })

  test('what was not asked is not in it', async () => {
    const { headers } = await user.get(`${PATH}?limit=5&${queryOf({ q: question.q })}`)
    expect(linksOf(headers.link)['first']).toBe(`${PATH}?offset=0&limit=5&${queryOf({ q: question.q })}`)
  })

  test('following next yields every record once, in order, each as it was asked for', async () => {
    const seen = await follow(`${PATH}?limit=4&${queryOf(question)}`)
    expect(seen).toEqual([...ids].reverse().map((id) => [id, 'version', 'title', 'createdBy.name']))
  })

  test.for(['filter', 'q', 'archived', 'sortBy', 'fields'] as const)('also without %s', async (left) => {
    const rest = Object.fromEntries(Object.entries(question).filter(([name]) => name !== left))
    const seen = await follow(`${PATH}?limit=6&${queryOf(rest)}`)
    const { data } = pageOf(await user.get(`${PATH}?limit=1000&${queryOf(rest)}`))
    expect(seen.map(([id]) => id)).toEqual(data.map(({ id }) => id))
    expect(new Set(seen.map(([id]) => id)).size).toBe(seen.length)
    expect(seen.length).toBe(left === 'archived' ? COUNT - Math.ceil(COUNT / 3) : COUNT)
  })
})
