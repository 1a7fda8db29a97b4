// `count=none`: the same pages and the same next pages, without a total and without a statement that counts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import { openDatabase } from '../../src/store/open.js'
import type { FindQuery } from '../../src/model/query/search.js'
import type { Records } from '../../src/wire.js'
import { CountingDatabase } from '../counting-database.js'
import { countingAnyway } from '../mutants/searches.js'
import {
  identityIn,
  onEveryEngine,
  preparedLocation,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { asUser, envelope, expectError, json, openSession, withServer, JSON_BODY, send } from './exchange.js'
import type { User } from './exchange.js'

const NOTE = 'test.Note'
const PATH = `/ws/rest/${NOTE}`
const COUNT = 30
const NONE = { count: 'none' } as const
/** A count of matches. A statement may also count the parts of its page, which reads no table. */
const MATCH_COUNT = `select count(*) from ${quoteIdentifier(toTableName(NOTE))}`

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: CountingDatabase
  let service: Service
  let records: Records
  let mutant: Records
  let user: User

  beforeAll(async () => {
    location = await preparedLocation(engine)
    db = new CountingDatabase(await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 }))
    service = await startService(engine, {
      location,
      database: db,
      settings: { responseLimitBytes: 2 ** 20 },
    })
    const by = await service.app.authorizer.resolvePrincipal(await identityIn(service))
    records = recordsForPrincipal(service.app, by)
    mutant = recordsForPrincipal(countingAnyway(service.app), by)
    user = asUser(service.url, await openSession(service.url))
    for (let number = 0; number < COUNT; number++)
      await records.create(NOTE, { title: `note ${number % 7}`, archived: number % 5 === 0 })
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  const questions: Readonly<Record<string, FindQuery>> = {
    'the default page': {},
    'a filter': { filter: "title like 'note%'" },
    'a filter with few matches': { filter: "title = 'note 3'" },
    'a filter without matches': { filter: "title = 'nothing'" },
    words: { q: 'note' },
    'an order': { sortBy: 'title' },
    'an order, a filter and archived records': {
      sortBy: '-title',
      filter: "title <> 'note 1'",
      archived: true,
    },
    'an order by a related field': { sortBy: 'createdBy.name,-title', fields: 'title,createdBy' },
  }
  const cases = Object.entries(questions)

  describe('pages', () => {
    test.for(cases)('%s has the same records and the same next page', async ([, query]) => {
      for (const limit of [0, 1, 4, 23, 24, 25, COUNT, 1_000])
        for (const offset of [0, 3, 20, 24, COUNT]) {
          const counted = await records.find(NOTE, { ...query, limit, offset })
          const { total, ...rest } = counted
          expect(await records.find(NOTE, { ...query, limit, offset, ...NONE })).toEqual(rest)
          expect(total).toBeGreaterThanOrEqual(rest.data.length)
        }
    })

    test.for(cases)('%s can be followed to its end by its cursors', async ([, query]) => {
      const { data } = await records.find(NOTE, { ...query, limit: 1_000 })
      const seen: number[] = []
      for (let after: string | undefined, more = true; more;) {
        const page = await records.find(NOTE, { ...query, limit: 4, ...(after ? { after } : {}), ...NONE })
        seen.push(...page.data.map(({ id }) => id))
        after = page.next?.after
        more = after !== undefined
      }
      expect(seen).toEqual(data.map(({ id }) => id))
    })

    test('an earlier state has the same records and the same next page', async () => {
      const asOf = new Date(service.app.clock.now()).toISOString()
      for (const offset of [0, 20, 30]) {
        const { total, ...rest } = await records.find(NOTE, { asOf, limit: 10, offset, archived: true })
        expect(await records.find(NOTE, { asOf, limit: 10, offset, archived: true, ...NONE })).toEqual(rest)
        expect(total).toBe(COUNT)
      }
    })

    test('a search has the same records', async () => {
      const data = { _domain: "title like 'note%'" }
      const { total, ...rest } = await records.search(NOTE, { data, limit: 4 })
      expect(await records.search(NOTE, { data, limit: 4, ...NONE })).toEqual(rest)
      expect(total).toBe(24)
    })
  })

  describe('statements', () => {
    const countsOf = async (call: () => Promise<unknown>) =>
      (await db.statementsOf(call)).filter((sql) => sql.includes(MATCH_COUNT))
    const large = { filter: "title like 'note%'", sortBy: 'title', limit: 4 }

    test.for(cases)('no statement counts for %s', async ([, query]) => {
      expect(await countsOf(() => records.find(NOTE, { ...query, limit: 4, ...NONE }))).toEqual([])
      expect(
        await countsOf(() => records.find(NOTE, { ...query, limit: 4, offset: COUNT, ...NONE })),
      ).toEqual([])
    })

    test('with a total the search counts, so this test would notice', async () => {
      expect(await countsOf(() => records.find(NOTE, large))).toHaveLength(1)
    })

    test('the mutant that counts anyway is caught by its total and by its statement', async () => {
      let page: object = {}
      const counts = await countsOf(async () => (page = await mutant.find(NOTE, { ...large, ...NONE })))
      expect(counts).toHaveLength(1)
      expect(page).toHaveProperty('total', 24)
    })
  })

  describe('over HTTP', () => {
    const linksOf = (header: unknown) =>
      Array.from(String(header).matchAll(/<([^>]*)>; rel="([^"]*)"/g), ([, target = '', rel = '']) => ({
        rel,
        target,
      }))

    test('a find has no total and no link to the last page, and its links repeat count=none', async () => {
      const answer = await user.get(`${PATH}?limit=4&offset=4&filter=title<>'x'&count=none`)
      expect(Object.keys(json(answer) as object)).toEqual(['status', 'offset', 'data'])
      const links = linksOf(answer.headers.link)
      expect(links.map(({ rel }) => rel)).toEqual(['first', 'prev', 'next'])
      for (const { target } of links) expect(target).toContain('&count=none')
    })

    test('the last page has no link to a next page', async () => {
      const { headers } = await user.get(`${PATH}?limit=4&offset=20&count=none`)
      expect(linksOf(headers.link).map(({ rel }) => rel)).toEqual(['first', 'prev'])
    })

    const search = (url: string, cookie: string, body: object) =>
      send(url, {
        ...{ method: 'POST', path: `${PATH}/search`, headers: { ...JSON_BODY, cookie } },
        body: JSON.stringify(body),
      })

    test('a search takes count in its body; null means the total', async () => {
      const cookie = await openSession(service.url)
      const keysOf = async (body: object) =>
        Object.keys(json(await search(service.url, cookie, body)) as object)
      expect(await keysOf({ limit: 1, count: 'none' })).toEqual(['status', 'offset', 'data'])
      expect(await keysOf({ limit: 1, count: null })).toEqual(['status', 'offset', 'total', 'data'])
    })

    test.for(['', '10', 'true', 'None'])(
      'count=%s is rejected, and the message names the value',
      async (count) => {
        const answer = await user.get(`${PATH}?count=${count}`)
        expectError(answer, 400, 'bad-request')
        expect(envelope(answer).data.message).toBe(
          'count must be none, which omits the total: to set the number of records, use limit',
        )
        const cookie = await openSession(service.url)
        expectError(
          await search(service.url, cookie, { count: count === '10' ? 10 : count }),
          400,
          'bad-request',
        )
      },
    )

    test('with --compat axelor other values are ignored like unknown parameters', async () => {
      await withServer(service, { compat: 'axelor' }, async (url) => {
        const cookie = await openSession(url)
        const axelor = asUser(url, cookie)
        expect(json(await axelor.get(`${PATH}?count=10`))).toHaveProperty('total', 24)
        expect(json(await axelor.get(`${PATH}?count=none`))).not.toHaveProperty('total')
        expect(json(await search(url, cookie, { count: 10 }))).toHaveProperty('total', 24)
        expect(json(await search(url, cookie, { count: 'none' }))).not.toHaveProperty('total')
      })
    })
  })
})
