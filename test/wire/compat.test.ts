// Existing clients with and without --compat: two servers on one database.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertRows } from '../../src/store/records/write.js'
import { HttpClient } from '../http-client.js'
import { countAnew, onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { openSession, send } from './exchange.js'

const COMPANIES = '/ws/rest/rel.Company'
const PEOPLE = '/ws/rest/rel.Person'

interface Body {
  readonly status: number
  readonly total?: number
  readonly errors?: object
  readonly data: Readonly<Record<string, unknown>>
}

const bodyOf = ({ text }: { text: string }): Body => JSON.parse(text) as Body
/** The records of a successful response. */
const recordsOf = ({ text }: { text: string }) => (JSON.parse(text) as { data: readonly object[] }).data

async function ask(client: HttpClient, ...request: Parameters<HttpClient['request']>) {
  const response = await client.request(...request)
  return { status: response.status, text: await response.text() }
}

onEveryEngine((engine) => {
  let strict: Service
  let loose: Service
  let contract: HttpClient
  let axelor: HttpClient

  beforeAll(async () => {
    strict = await startService(engine)
    loose = await startService(engine, {
      location: strict.location,
      http: { compat: 'axelor', basicAuth: true },
    })
    contract = await HttpClient.login(strict.url, USERNAME, PASSWORD)
    axelor = await HttpClient.login(loose.url, USERNAME, PASSWORD)
    await ask(contract, 'PUT', COMPANIES, { data: { name: 'One', code: 'ONE' } })
    await ask(contract, 'POST', `${COMPANIES}/1`, { data: { version: 0, name: 'Once' } })
    await ask(contract, 'PUT', PEOPLE, { data: { name: 'P', company: { id: 1 } } })
  })
  afterAll(async () => {
    await loose.close()
    await strict.close()
  })

  describe('errors with --compat', () => {
    const rejected: readonly (readonly [status: number, method: string, path: string, body?: unknown])[] = [
      [400, 'GET', `${COMPANIES}?limit=many`],
      [400, 'POST', `${COMPANIES}/1`, { data: { name: 'no version' } }],
      [
        400,
        'POST',
        `${COMPANIES}/search`,
        { data: { criteria: [{ fieldName: 'x', operator: '=', value: 1 }] } },
      ],
      [400, 'POST', `${COMPANIES}/search`, { sortBy: ['nothing'] }],
      [400, 'POST', `${COMPANIES}/updateMass`, { records: [{ name: 'x' }] }],
      [400, 'POST', `${COMPANIES}/removeAll`, {}],
      [404, 'GET', '/ws/rest/no.Model'],
      [404, 'GET', '/ws/meta/fields/no.Model'],
      [404, 'GET', `${COMPANIES}/999`],
      [404, 'DELETE', `${COMPANIES}/999`],
      [409, 'POST', `${COMPANIES}/1`, { data: { version: 0, name: 'stale' } }],
      [409, 'PUT', COMPANIES, { data: { name: 'Two', code: 'ONE' } }],
      [409, 'DELETE', `${COMPANIES}/1`],
      [409, 'POST', `${COMPANIES}/removeAll`, { records: [{ id: 1, version: 0 }] }],
      [422, 'PUT', COMPANIES, { data: { code: 'no name' } }],
      [422, 'PUT', PEOPLE, { data: { born: 'yesterday' } }],
      [422, 'PUT', PEOPLE, { data: { company: { id: 999 } } }],
    ]

    test.for(rejected)(
      'with --compat, an error of %s is HTTP 200 with status -1 and the same data: %s %s',
      async ([status, method, path, body]) => {
        const [one, two] = [await ask(contract, method, path, body), await ask(axelor, method, path, body)]
        const [said, answered] = [bodyOf(one), bodyOf(two)]
        expect([one.status, two.status, answered.status]).toEqual([status, 200, -1])
        expect(answered.errors).toEqual(said.errors)
        expect({ ...answered.data, requestId: '' }).toEqual({ ...said.data, requestId: '' })
      },
    )

    test('with --compat, a stale If-Match is HTTP 200 with status -1', async () => {
      const headers = { 'if-match': '"0"' }
      const one = await ask(contract, 'POST', `${COMPANIES}/1`, { data: { name: 'x' } }, headers)
      const two = await ask(axelor, 'POST', `${COMPANIES}/1`, { data: { name: 'x' } }, headers)
      expect([one.status, two.status, bodyOf(two).status]).toEqual([412, 200, -1])
      expect(bodyOf(two).data['kind']).toBe('stale-match')
    })

    test('with --compat, malformed JSON is HTTP 200 with status -1', async () => {
      const answer = await send(loose.url, {
        ...{ method: 'PUT', path: COMPANIES, body: '{"data":' },
        headers: { cookie: await openSession(loose.url), 'content-type': 'application/json' },
      })
      expect([answer.status, bodyOf(answer).status]).toEqual([200, -1])
    })

    test('with --compat, an error as problem+json keeps its HTTP status', async () => {
      const { status } = await ask(axelor, 'GET', `${COMPANIES}/999`, undefined, {
        accept: 'application/problem+json',
      })
      expect(status).toBe(404)
    })
  })

  describe('other HTTP statuses with --compat', () => {
    test('with --compat, 401, 403, 405, 413, 415, 421 and errors outside of records keep their HTTP status', async () => {
      const cookie = await openSession(loose.url)
      const json = { 'content-type': 'application/json' }
      const asked = [
        { method: 'GET', path: COMPANIES, headers: {} },
        {
          method: 'PUT',
          path: COMPANIES,
          headers: { cookie, ...json, origin: 'https://evil.example' },
          body: '{}',
        },
        { method: 'PATCH', path: COMPANIES, headers: { cookie } },
        {
          method: 'PUT',
          path: COMPANIES,
          headers: { cookie, ...json },
          body: JSON.stringify('x'.repeat(3e6)),
        },
        { method: 'PUT', path: COMPANIES, headers: { cookie, 'content-type': 'text/plain' }, body: '{}' },
        { method: 'GET', path: COMPANIES, headers: { cookie, host: 'evil.example' } },
        { method: 'GET', path: '/ws/nothing', headers: { cookie } },
        { method: 'POST', path: '/callback', headers: json, body: '{"username":' },
        { method: 'DELETE', path: '/ws/rest/com.axelor.meta.db.MetaModel/1', headers: { cookie } },
      ]
      const statuses: number[] = []
      for (const request of asked) statuses.push((await send(loose.url, request)).status)
      expect(statuses).toEqual([401, 403, 405, 413, 415, 421, 404, 400, 403])
    })
  })

  describe('values of existing clients', () => {
    const sent: readonly (readonly [what: string, data: object, becomes: object])[] = [
      ['unknown fields', { name: 'A', cid: null, attrs_x: 1, _original: {} }, { name: 'A' }],
      ['a negative id', { id: -3, name: 'B' }, { name: 'B' }],
      [
        'numbers and dates as texts',
        { isActive: 'true', born: '2026-01-02T10:00:00Z' },
        { isActive: true, born: '2026-01-02' },
      ],
      ['empty text for null', { born: '', rate: '' }, { born: null, rate: null }],
      [
        'a reference with more than an id',
        { company: { id: 1, name: 'is not written' } },
        { company: { id: 1, $version: 1, name: 'Once' } },
      ],
      [
        'an edited copy',
        { company: { id: 1, $version: 1, name: 'nor this' } },
        { company: { id: 1, $version: 1, name: 'Once' } },
      ],
      ['a bare id', { company: 1 }, { company: { id: 1, $version: 1, name: 'Once' } }],
      ['null for a list', { circles: null }, { circles: [] }],
      [
        'a new related record with an id of 0',
        { company: { id: 0, name: 'New' } },
        { company: { $version: 0, name: 'New' } },
      ],
    ]

    test.for(sent)('with --compat, a create accepts %s', async ([, data, becomes]) => {
      const made = await ask(axelor, 'PUT', PEOPLE, { data })
      expect([made.status, bodyOf(made).status]).toEqual([200, 0])
      expect(recordsOf(made)[0]).toMatchObject(becomes)
    })

    const rejected = sent.filter(([what]) => what !== 'an edited copy')

    test.for(rejected)('without --compat, a create rejects %s', async ([, data]) => {
      expect([400, 422]).toContain((await ask(contract, 'PUT', PEOPLE, { data })).status)
    })

    test('with --compat, a list is not emptied by a value that is not a list', async () => {
      const { status } = bodyOf(await ask(axelor, 'PUT', PEOPLE, { data: { circles: 'none' } }))
      expect(status).toBe(-1)
    })
  })

  describe('unusual ids and values', () => {
    const strange: readonly (readonly [what: string, method: string, path: string, body: object])[] = [
      ['a text', 'POST', COMPANIES, { data: { id: '1', version: 1, name: 'x' } }],
      ['a text without a version', 'POST', COMPANIES, { data: { id: '1', name: 'x' } }],
      ['true', 'POST', COMPANIES, { data: { id: true, name: 'x' } }],
      ['an object', 'POST', COMPANIES, { records: [{ id: {}, name: 'x' }] }],
      ['the text of another record', 'POST', `${COMPANIES}/1`, { data: { id: '2', version: 1, name: 'x' } }],
      [
        'a text in a list',
        'POST',
        `${COMPANIES}/1`,
        { data: { version: 1, addresses: [{ id: '1', city: 'x' }] } },
      ],
      ['a text in a reference', 'PUT', PEOPLE, { data: { company: { id: '1', name: 'x' } } }],
      ['digits that were lost', 'PUT', PEOPLE, { data: { name: 2 ** 65 } }],
      ['a date with noise', 'PUT', PEOPLE, { data: { born: '2024-01-31Tnoise' } }],
      [
        'a condition beside criteria',
        'POST',
        `${PEOPLE}/updateMass`,
        { data: { criteria: [], name: 'P' }, records: [{ name: 'x' }] },
      ],
    ]

    test.for(strange)(
      'with --compat, %s is rejected, and nothing is written',
      async ([, method, path, body]) => {
        const stateOf = async () => [
          (await ask(contract, 'GET', `${COMPANIES}?limit=1000`)).text,
          (await ask(contract, 'GET', `${PEOPLE}?limit=1000`)).text,
        ]
        const before = await stateOf()
        expect(bodyOf(await ask(axelor, method, path, body)).status).toBe(-1)
        expect(await stateOf()).toEqual(before)
      },
    )

    test('with --compat, a search with more than 500 unknown fields is rejected', async () => {
      const fields = Array.from({ length: 501 }, (_, index) => `unknown${index}`)
      expect(bodyOf(await ask(axelor, 'POST', `${PEOPLE}/search`, { fields })).status).toBe(-1)
    })
  })

  test('with --compat, a search without a limit answers at most 10,000 records', async () => {
    const { app } = strict
    const table = app.tables.of(app.catalog.get('test.Note'))
    const rows = Array.from({ length: 10_050 }, (_, index) => ({ title: `Note ${index}`, createdOn: null }))
    await app.db.transaction((tx) => insertRows(tx, table, rows))
    await countAnew({ app }, 'test.Note')
    const lengths: (readonly [number | undefined, number])[] = []
    for (const body of [
      { fields: ['title'] },
      { limit: null },
      { limit: 0 },
      { limit: -1 },
      { limit: 20_000 },
      { limit: '5' },
      undefined,
    ]) {
      const answer = await ask(axelor, 'POST', '/ws/rest/test.Note/search', body)
      lengths.push([bodyOf(answer).total, recordsOf(answer).length])
    }
    expect(lengths).toEqual([10_000, 10_000, 10_000, 10_000, 10_000, 5, 40].map((length) => [10_050, length]))
    expect(recordsOf(await ask(contract, 'POST', '/ws/rest/test.Note/search', {})).length).toBe(40)
  })

  test('with --compat, criteria without an operator are combined with or, but only at the root', async () => {
    const is = (value: string) => ({ fieldName: 'name', operator: '=', value })
    const total = async (user: HttpClient, data: object) =>
      bodyOf(await ask(user, 'POST', `${COMPANIES}/search`, { data })).total
    const both = { criteria: [is('Once'), is('New')] }
    expect([await total(axelor, both), await total(contract, both)]).toEqual([2, 0])
    const nested = { criteria: [{ operator: 'and', ...both }] }
    expect(await total(axelor, nested)).toBe(0)
  })
})
