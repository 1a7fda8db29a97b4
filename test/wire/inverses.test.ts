// Existing clients send a record back as they read it, with its inverse relations: unchanged ones are accepted, changed ones are rejected.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { grantee, rootOf } from '../permissions/office-fixture.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'

type Data = Readonly<Record<string, unknown>>
interface Body {
  readonly status: number
  readonly errors?: Data
  readonly data: readonly Data[]
}

async function post(client: HttpClient, path: string, body: object, headers = {}): Promise<Body> {
  const response = await client.request('POST', path, body, headers)
  return JSON.parse(await response.text()) as Body
}

const COMPANY = '/ws/rest/rel.Company'
const PERSON = '/ws/rest/rel.Person'
const CIRCLE = '/ws/rest/rel.Circle'
const written = (field: string) => `is the inverse of ${field}: change that field instead`

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
  })
  afterAll(async () => {
    await loose.close()
    await strict.close()
  })

  /** A company with two people, one of whom has a badge and is in a circle. */
  const makeRecords = async () => {
    const root = rootOf(strict)
    const make = async (model: string, data: object) => (await root.create(model, data)).data.id
    const company = await make('rel.Company', { name: 'C' })
    const circle = await make('rel.Circle', { name: 'K' })
    const one = await make('rel.Person', {
      ...{ name: 'One', rate: '1.50', company: { id: company }, circles: [{ id: circle }] },
    })
    const two = await make('rel.Person', { name: 'Two', company: { id: company } })
    const stranger = await make('rel.Person', { name: 'Stranger' })
    const badge = await make('rel.Badge', { holder: { id: one } })
    return { company, circle, one, two, stranger, badge }
  }
  const readOf = async (model: string, id: number) => rootOf(strict).read(model, id)

  test('with --compat, a save accepts an unchanged inverse relation; without it, the save is rejected', async () => {
    const { company, circle, one, two, stranger, badge } = await makeRecords()
    const people = [{ id: two }, { id: one }]
    const same: readonly (readonly [path: string, id: number, sent: object, holder: string])[] = [
      [COMPANY, company, { people }, 'rel.Person.company'],
      [COMPANY, company, { people: [one, two] }, 'rel.Person.company'],
      [COMPANY, company, { people: [{ id: one, $version: 0, name: 'One' }, two] }, 'rel.Person.company'],
      [
        COMPANY,
        company,
        {
          people: [
            { id: one, version: 0 },
            { id: two, version: 7 },
          ],
        },
        'rel.Person.company',
      ],
      [
        ...([COMPANY, company] as const),
        {
          people: [
            { id: one, version: 0, name: 'One', rate: 1.5, company: { id: company }, circles: [circle] },
            { id: two, version: 0, circles: null, boss: null, badge: null, born: '', createdOn: '2020' },
          ],
        },
        'rel.Person.company',
      ],
      [CIRCLE, circle, { members: [{ id: one }] }, 'rel.Person.circles'],
      [CIRCLE, circle, { members: { id: one } }, 'rel.Person.circles'],
      [PERSON, one, { badge: { id: badge } }, 'rel.Badge.holder'],
      [PERSON, one, { badge }, 'rel.Badge.holder'],
      [
        PERSON,
        one,
        { badge: { id: badge, version: 0, number: 'is given', holder: { id: one } } },
        'rel.Badge.holder',
      ],
      [PERSON, stranger, { badge: null }, 'rel.Badge.holder'],
    ]
    const model = (path: string) => path.slice('/ws/rest/'.length)
    for (const [index, [path, id, sent, holder]] of same.entries()) {
      const { version } = await readOf(model(path), id)
      const data = { id, version, name: `saved ${index}`, ...sent }
      const [name = ''] = Object.keys(sent)
      const rejected = await post(contract, path, { data })
      expect(rejected.status, JSON.stringify(sent)).toBe(-4)
      expect(rejected.errors).toMatchObject({ [name]: written(holder) })
      expect(await post(axelor, path, { data }), JSON.stringify(sent)).toMatchObject({ status: 0 })
      // The record is saved, and no other record changes.
      expect(await readOf(model(path), id)).toMatchObject({ version: version + 1, name: `saved ${index}` })
    }
    expect((await readOf('rel.Person', two)).version).toBe(0)
    expect((await readOf('rel.Badge', badge)).version).toBe(0)
  })

  test('with --compat, a record can be sent back as it was fetched, with its inverse relations', async () => {
    const { company, one, two } = await makeRecords()
    const related = { people: ['name', 'born', 'rate', 'isActive', 'company', 'circles', 'badge'] }
    const { data } = await post(axelor, `${COMPANY}/${company}/fetch`, {
      ...{ fields: ['name', 'addresses', 'people'], related },
    })
    const [record = {}] = data
    expect(record['people']).toMatchObject([{ id: one, version: 0 }, { id: two }])
    const saved = await post(axelor, COMPANY, { data: { ...record, name: 'Sent back' } })
    expect(saved).toMatchObject({ status: 0, data: [{ id: company, version: 1, name: 'Sent back' }] })
  })

  test('with --compat, a changed inverse relation is rejected with its owning field, and nothing is saved', async () => {
    const { company, circle, one, two, stranger, badge } = await makeRecords()
    const both = [{ id: one }, { id: two }]
    const changed: readonly (readonly [path: string, id: number, sent: object, holder: string])[] = [
      ...[
        [],
        null,
        [{ id: one }],
        [{ id: one }, { id: one }],
        [...both, { id: stranger }],
        [{ id: one }, { id: stranger }],
        [...both, { id: 987_654 }],
        [...both, { name: 'New' }],
        [{ id: one, version: 0, name: 'Edited' }, { id: two }],
        [{ id: one, version: 0, rate: '1.51' }, { id: two }],
        [{ id: one, version: 0, born: '2000-01-01' }, { id: two }],
        [{ id: one, version: 0, company: null }, { id: two }],
        [{ id: one, version: 0, company: { id: company, version: 0, name: 'Edited' } }, { id: two }],
        [{ id: one, version: 0, circles: [] }, { id: two }],
        [{ id: one, version: 0, badge: null }, { id: two }],
        'x',
      ].map((people) => [COMPANY, company, { people }, 'rel.Person.company'] as const),
      [CIRCLE, circle, { members: [] }, 'rel.Person.circles'],
      [CIRCLE, circle, { members: [{ id: two }] }, 'rel.Person.circles'],
      [PERSON, one, { badge: null }, 'rel.Badge.holder'],
      [PERSON, one, { badge: { id: badge + 1 } }, 'rel.Badge.holder'],
      [PERSON, one, { badge: {} }, 'rel.Badge.holder'],
      [PERSON, one, { badge: [{ id: badge }] }, 'rel.Badge.holder'],
      [PERSON, one, { badge: { id: badge, version: 0, holder: null } }, 'rel.Badge.holder'],
      [PERSON, two, { badge: { id: badge } }, 'rel.Badge.holder'],
    ]
    for (const [path, id, sent, holder] of changed) {
      const [name = ''] = Object.keys(sent)
      const rejected = await post(axelor, path, { data: { id, version: 0, name: 'Never', ...sent } })
      expect(rejected, JSON.stringify(sent)).toMatchObject({
        status: -1,
        errors: { [name]: written(holder) },
      })
      expect(await readOf(path.slice('/ws/rest/'.length), id)).toMatchObject({ version: 0 })
    }
  })

  test('with --compat, the same rule holds for nested records, several records, batches and new records', async () => {
    const { company, one, two } = await makeRecords()
    const boss = (people: unknown) => ({
      ...{ id: two, version: 0, company: { id: company, version: 0, name: 'C', people } },
    })
    const unchanged = [{ id: one }, { id: two }]
    const save = async (people: unknown, version: number) =>
      post(axelor, PERSON, { data: { id: one, version, name: 'One', boss: boss(people) } })
    expect(await save([{ id: one }], 0)).toMatchObject({
      ...{ status: -1, errors: { 'boss.company.people': written('rel.Person.company') } },
    })
    expect(await save(unchanged, 0)).toMatchObject({ status: 0 })
    const many = async (people: unknown) =>
      post(axelor, COMPANY, {
        records: [
          { name: 'New', people: [] },
          { id: company, version: 0, people },
        ],
      })
    expect(await many([])).toMatchObject({ status: -1, errors: { 'records[1].people': expect.anything() } })
    expect(await many(unchanged)).toMatchObject({ status: 0, data: [{ name: 'New' }, { version: 1 }] })
    const batch = async (people: unknown) =>
      post(axelor, '/ws/batch', {
        requests: [{ op: 'update', model: 'rel.Company', id: company, version: 1, data: { people } }],
      })
    expect(await batch([{ id: one }])).toMatchObject({ status: -1 })
    expect(await batch(unchanged)).toMatchObject({ status: 0 })
    expect(await post(axelor, COMPANY, { data: { name: 'New', people: null } })).toMatchObject({ status: 0 })
    const filled = await post(axelor, COMPANY, { data: { name: 'New', people: unchanged } })
    expect(filled).toMatchObject({ status: -1, errors: { people: written('rel.Person.company') } })
    const mass = await post(axelor, `${COMPANY}/updateMass`, {
      ...{ data: { criteria: [{ fieldName: 'id', operator: '=', value: company }] } },
      records: [{ people: unchanged }],
    })
    const message = 'cannot be set in a mass update: send a reference as an id only'
    expect(mass).toMatchObject({ status: -1, errors: { people: message } })
  })

  describe('hidden records', () => {
    test('an inverse relation is compared with the records that the user may read, and reveals no others', async () => {
      const { company, one, two, stranger } = await makeRecords()
      const read = { model: 'rel.Person', canRead: true }
      const { client } = await grantee(loose, [
        { model: 'rel.Company', canRead: true, canUpdate: true },
        { ...read, condition: `id != ${two}`, readable: ['name', 'company'] },
        { ...read, condition: `id = ${stranger}`, readable: ['rate'] },
      ])
      const save = async (people: unknown, version: number) =>
        post(client, COMPANY, { data: { id: company, version, name: 'Theirs', people } })
      // A hidden, an unrelated and a missing record get the same error.
      const rejections = []
      for (const id of [two, stranger, 987_654]) rejections.push(await save([{ id: one }, { id }], 0))
      for (const { status, errors } of rejections)
        expect([status, errors]).toEqual([-1, { people: written('rel.Person.company') }])
      // Guessing hidden values of a visible record gets the same error, too.
      for (const rate of ['1.50', '9.99'])
        expect((await save([{ id: one, version: 0, rate }], 0)).errors).toEqual(rejections[0]?.errors)
      expect(await save([{ id: one, version: 0, name: 'One' }], 0)).toMatchObject({ status: 0 })
    })
  })
})
