// The Link header repeats the whole query, so that following it reads every record of one result.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LINK_LIMITS, buildPageLinks as makeLinks } from '../../src/http/records/record-responses.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, only, openSession, pageOf, type User } from './exchange.js'

const PATH = '/ws/rest/test.Note'
const COUNT = 23
const TITLE = 'ä&b=c?#%>; "x", +'

/** The query as a client writes it and as the links repeat it: each value encoded. */
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
    const { headers } = await user.get(`${PATH}?offset=10&limit=5&${queryOf(question)}&_unknown=1`)
    const link = (offset: number) => `${PATH}?offset=${offset}&limit=5&${queryOf(question)}`
    const values = [['-createdBy.name', 'Ada'], ['-title', `${TITLE} ${100 + 8}`], ids[8]]
    const after = Buffer.from(JSON.stringify(values)).toString('base64url')
    const next = link(15).replace('limit=5', `limit=5&after=${after}`)
    expect(linksOf(headers.link)).toEqual({ first: link(0), prev: link(5), next, last: link(20) })
  })

  test('a link contains no parameters that the request did not have', async () => {
    const { headers } = await user.get(`${PATH}?limit=5&${queryOf({ q: question.q })}`)
    expect(linksOf(headers.link)['first']).toBe(`${PATH}?offset=0&limit=5&${queryOf({ q: question.q })}`)
  })

  test('following the next links answers every record once, in order, with the same fields', async () => {
    const seen = await follow(`${PATH}?limit=4&${queryOf(question)}`)
    expect(seen).toEqual([...ids].reverse().map((id) => [id, 'version', 'title', 'createdBy.name']))
  })

  test.for(['filter', 'q', 'archived', 'sortBy', 'fields'] as const)(
    'following the next links works without %s, too',
    async (left) => {
      const rest = Object.fromEntries(Object.entries(question).filter(([name]) => name !== left))
      const seen = await follow(`${PATH}?limit=6&${queryOf(rest)}`)
      const { data } = pageOf(await user.get(`${PATH}?limit=1000&${queryOf(rest)}`))
      expect(seen.map(([id]) => id)).toEqual(data.map(({ id }) => id))
      expect(new Set(seen.map(([id]) => id)).size).toBe(seen.length)
      expect(seen.length).toBe(left === 'archived' ? COUNT - Math.ceil(COUNT / 3) : COUNT)
    },
  )

  /** A filter of this many encoded bytes that matches the notes. */
  const filterOf = (bytes: number) => {
    const start = "title like 'another%' and title != '"
    return `${start}${'x'.repeat(bytes - encodeURIComponent(`${start}'`).length)}'`
  }

  test('with a long filter only the next link is left, and following it visits every record', async () => {
    const all = pageOf(await user.get(`${PATH}?limit=1000&${queryOf({ filter: filterOf(100) })}`))
    for (const bytes of [900, 1_300, 2_600, 4_200, 5_500]) {
      const asked = queryOf({ filter: filterOf(bytes), sortBy: '-title' })
      const { headers } = await user.get(`${PATH}?offset=5&limit=5&${asked}`)
      const rels = Object.keys(linksOf(headers.link))
      expect(rels, `${bytes}`).toEqual(bytes < 1_000 ? ['first', 'prev', 'next', 'last'] : ['next'])
      expect(String(headers.link).length).toBeLessThanOrEqual(LINK_LIMITS.nextBytes)
      const seen = await follow(`${PATH}?limit=5&${asked}`)
      expect(seen.map(([id]) => id).sort((a, b) => a - b)).toEqual(all.data.map(({ id }) => id))
    }
  })

  test('if the links have no room for the cursor, it has a header of its own', async () => {
    const short = await user.get(`${PATH}?limit=5&${queryOf({ filter: filterOf(100) })}`)
    expect(short.headers['x-next-after']).toBeUndefined()
    const all = pageOf(await user.get(`${PATH}?limit=1000&${queryOf({ filter: filterOf(100) })}`))
    const asked = queryOf({ filter: filterOf(8_300) })
    const seen: number[] = []
    for (let after = ''; ;) {
      const page = await user.get(`${PATH}?limit=5&${asked}${after === '' ? '' : `&after=${after}`}`)
      seen.push(...pageOf(page).data.map(({ id }) => id))
      after = String(page.headers['x-next-after'] ?? '')
      if (after === '') break
    }
    expect(seen).toEqual(all.data.map(({ id }) => id))
  })

  test('around the limit of its length, the header has all links or only next', async () => {
    const linkFor = async (bytes: number) => {
      const { headers } = await user.get(`${PATH}?offset=5&limit=5&${queryOf({ filter: filterOf(bytes) })}`)
      return String(headers.link)
    }
    const shortest = (await linkFor(100)).length - 4 * 100
    const least = Math.floor((LINK_LIMITS.allBytes - shortest) / 4)
    for (let bytes = least - 3; bytes <= least + 3; bytes++) {
      const link = await linkFor(bytes)
      const rels = Object.keys(linksOf(link))
      expect(rels, `${bytes}`).toEqual(bytes > least ? ['next'] : ['first', 'prev', 'next', 'last'])
      expect(link.length).toBeLessThanOrEqual(LINK_LIMITS.allBytes)
    }
  })
})

describe('the length of the Link header', () => {
  const page = { offset: 80, limit: 40, total: 1_000, next: { offset: 120, after: 'A'.repeat(200) } }
  type Make = (bytes: number) => string

  /** Violations: a header longer than clients accept, or a missing `next` that would fit. */
  function faultsOf(make: Make): string[] {
    const faults: string[] = []
    for (let bytes = 0; bytes < 10_000; bytes += 5) {
      const link = make(bytes)
      const rels = Array.from(link.matchAll(/rel="([^"]*)"/g), ([, rel]) => rel)
      if (rels.length > 1 && link.length > 4_096) faults.push(`${bytes}: all links are ${link.length} bytes`)
      if (link.length > 8_192) faults.push(`${bytes}: ${link.length} bytes`)
      const mustHaveNext = bytes < 8_000
      if (mustHaveNext && !rels.includes('next')) faults.push(`${bytes}: no next`)
      if (bytes < 7_900 && !link.includes('after=')) faults.push(`${bytes}: next without its position`)
    }
    return faults
  }
  const making =
    (limits = LINK_LIMITS): Make =>
    (bytes) =>
      makeLinks(PATH, page, { filter: 'x'.repeat(bytes) }, limits)

  test('the Link header is bounded, and keeps next as long as it fits', () => {
    expect(faultsOf(making())).toEqual([])
  })

  test.for([
    ['without a limit', { allBytes: Infinity, nextBytes: Infinity }],
    ['with a limit for all links only', { allBytes: 4_096, nextBytes: Infinity }],
    ['that omits all links', { allBytes: 4_096, nextBytes: 4_096 }],
  ] as const)('a mutant of the Link header %s is caught', ([, limits]) => {
    expect(faultsOf(making(limits)).length).toBeGreaterThan(0)
  })
})
