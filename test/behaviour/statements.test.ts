// The number of statements does not depend on the number of records or of their related records.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { CountingDatabase } from '../counting-database.js'
import {
  identityIn,
  preparedLocation,
  onEveryEngine,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { withRelatedOneByOne } from '../mutants/records.js'

const COUNT = 40

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: CountingDatabase
  let service: Service
  let records: Records
  let mutant: Records
  const people: number[] = []
  const companies: number[] = []

  beforeAll(async () => {
    location = await preparedLocation(engine)
    db = new CountingDatabase(await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 }))
    service = await startService(engine, { location, database: db })
    // Loads the permissions first: HTTP loads them with the session.
    const by = await service.app.authorizer.resolvePrincipal(await identityIn(service))
    records = recordsForPrincipal(service.app, by)
    mutant = recordsForPrincipal({ ...service.app, db: withRelatedOneByOne(db) }, by)
    for (let index = 0; index < COUNT; index++) await createPerson(index)
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  /** Creates a person with a company, two addresses, a boss, two circles and a badge. */
  async function createPerson(index: number): Promise<void> {
    const boss = people.at(-1)
    const { data } = await records.create('rel.Person', {
      ...{ name: `P${index}`, circles: [{ name: `A${index}` }, { name: `B${index}` }] },
      company: { name: `C${index}`, addresses: [{ city: 'Oslo' }, { city: 'Rome', doors: [{}, {}] }] },
      ...(boss === undefined ? {} : { boss: { id: boss } }),
    })
    await records.create('rel.Badge', { holder: { id: data.id } })
    people.push(data.id)
    companies.push((data['company'] as { readonly id: number }).id)
  }

  type Ask = (records: Records, limit: number) => Promise<unknown>
  const fields = [
    'name',
    'company',
    'boss',
    'badge',
    'company.parent.name',
    'boss.company.name',
    'boss.badge',
  ]
  const criteria = [{ fieldName: 'company.addresses.city', operator: '=', value: 'Rome' }]
  const pages: readonly (readonly [claim: string, ask: Ask, count: number])[] = [
    ['a page with the list fields', (from, limit) => from.find('rel.Person', { limit }), 1],
    [
      'a page with related records over two levels',
      (from, limit) =>
        from.search('rel.Person', { limit, fields, sortBy: ['boss.name'], data: { criteria } }),
      1,
    ],
    [
      'a page with lists of records',
      (from, limit) => from.search('rel.Person', { limit, fields: ['circles', 'company.addresses'] }),
      // Lists can have any length: the first statement measures the page.
      2,
    ],
    [
      'a page with a filter, a sort and search words',
      (from, limit) =>
        from.find('rel.Person', {
          limit,
          fields,
          filter: "circles.name like 'a%'",
          sortBy: '-company',
          q: 'p',
        }),
      1,
    ],
  ]
  describe.each(pages)('%s', (claim, ask, count) => {
    const takesAsMany = async (from: Records) => {
      for (const limit of [1, COUNT]) {
        const shown: unknown[] = []
        const statements = await db.statementsOf(async () => shown.push(await ask(from, limit)))
        expect(shown).toMatchObject([{ total: COUNT, data: { length: limit } }])
        expect(statements).toHaveLength(count)
      }
    }
    const many = count === 1 ? 'one statement' : `${count} statements`
    test(`${claim} takes ${many}, with one record or with ${COUNT}`, () => takesAsMany(records))
    test(`a mutant that loads related records one by one takes more statements for ${claim}`, () =>
      expect(takesAsMany(mutant)).rejects.toThrow(`to have a length of ${count} but got ${2 * count}`))
  })

  const related = { addresses: ['city', 'street', 'doors.code'], people: ['name', 'circles', 'badge.number'] }
  const single: readonly (readonly [claim: string, ask: (records: Records) => Promise<unknown>])[] = [
    ['a read of one record', (from) => from.read('rel.Company', companies[3] ?? 0)],
    [
      'a fetch of one record',
      (from) => from.fetch('rel.Person', people[3] ?? 0, { fields: ['boss.boss.company.name', 'circles'] }),
    ],
    [
      'a fetch of one record with lists in lists',
      (from) => from.fetch('rel.Company', companies[3] ?? 0, { related }),
    ],
  ]
  describe.each(single)('%s', (claim, ask) => {
    const takesOne = async (from: Records) => {
      expect(await db.statementsOf(() => ask(from))).toHaveLength(1)
    }
    test(`${claim} takes one statement`, () => takesOne(records))
    test(`a mutant that loads related records one by one takes more statements for ${claim}`, () =>
      expect(takesOne(mutant)).rejects.toThrow('to have a length of 1 but got 2'))
  })

  test('an empty page takes one more statement, for the total', async () => {
    const past = () => records.search('rel.Person', { offset: COUNT, fields, data: { criteria } })
    expect(await db.statementsOf(past)).toHaveLength(2)
  })
})
