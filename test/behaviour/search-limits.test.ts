// Rejected searches, and the exact limits of a search.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SearchRequest } from '../../src/model/query/search.js'
import type { Page, Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const MODEL = 'rel.Person'

const times = <T>(count: number, item: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => item(index))
const isNamed = (index: number) => ({ fieldName: 'name', operator: '!=', value: `no ${index}` })

function nested(levels: number, operator: string): object {
  let node: object = { criteria: [isNamed(0)] }
  for (let level = 1; level < levels; level++) node = { operator, criteria: [node] }
  return node
}

/** To-one relations that are null for a person, each listed after the relation that it goes through. */
function relations(count: number): readonly string[] {
  const [company, person] = [
    ['seat', 'parent', 'updatedBy'],
    ['company', 'boss', 'badge', 'keeper', 'updatedBy'],
  ]
  const onwards: Readonly<Record<string, readonly string[]>> = {
    ...{ company, parent: company, person, boss: person, holder: person },
    ...{ seat: ['company', 'updatedBy'], badge: ['holder', 'updatedBy'] },
  }
  const paths: string[][] = [['person']]
  for (const path of paths) {
    if (paths.length > count) break
    paths.push(...(onwards[path.at(-1) ?? ''] ?? []).map((name) => [...path, name]))
  }
  return paths.slice(1, count + 1).map((path) => path.slice(1).join('.'))
}

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let ids: readonly number[]

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
    const make = async (name: string) => (await records.create(MODEL, { name })).data.id
    ids = [await make('Ada'), await make('Bob')]
  })
  afterAll(() => service.close())

  const idsOf = async (call: Promise<Page>) => (await call).data.map(({ id }) => id)
  const search = async (request: SearchRequest) => idsOf(records.search(MODEL, request))
  const rejectionOf = async (call: Promise<unknown>) => {
    const { kind, message } = await catchError(call)
    expect(kind).toBe('bad-request')
    return message
  }
  const searchRejection = async (request: SearchRequest) => rejectionOf(records.search(MODEL, request))

  describe('searches that are not understood', () => {
    const cases: readonly (readonly [data: unknown, message: RegExp])[] = [
      [{ name: 'Ada' }, /^data has unknown keys: name \(known keys: criteria, operator, _domain/],
      [{ criteria: [], _domainAction: 'self.id = 1' }, /^data has unknown keys: _domainAction/],
      [{ criterias: [isNamed(0)] }, /^data has unknown keys: criterias/],
      [isNamed(0), /^data has unknown keys: fieldName, value/],
      [5, /^data must be an object/],
      [[isNamed(0)], /^data must be an object/],
      [{ criteria: isNamed(0) }, /^data: criteria must be a list/],
      [{ operator: 'xor', criteria: [isNamed(0)] }, /^data: "xor" is not one of "and", "or", "not"/],
      [
        { criteria: [{ fieldName: 'name', operator: 'startsWith', value: 'A' }] },
        /"startsWith" is not an operator/,
      ],
      [{ criteria: [{ fieldName: 'name', operator: '=' }] }, /name: value is required/],
      [{ criteria: [{ fieldName: 'name', operator: 'like', value: null }] }, /name: value must not be null/],
      [{ criteria: [{ fieldName: 'name', operator: 'in', value: 'Ada' }] }, /name: value must be a list/],
      [
        { criteria: [{ fieldName: 'name', operator: 'in', value: ['Ada', null] }] },
        /value\[1\] must not be null/,
      ],
      [{ criteria: [{ fieldName: 'born', operator: 'between', value: '2001-01-01' }] }, /value2 is required/],
      [
        { criteria: [{ fieldName: 'born', operator: '=', value: '2001-02-30' }] },
        /born: value must be a date/,
      ],
      [
        { criteria: [{ fieldName: 'company', operator: 'in', value: [1, 'Acme'] }] },
        /must be an id, because the other values/,
      ],
      [{ criteria: [{ fieldName: 'circles', operator: 'isNull' }] }, /use isEmpty/],
      [{ criteria: [{ fieldName: 'company', operator: 'isEmpty' }] }, /use isNull/],
      [
        { criteria: [{ fieldName: 'rate', operator: 'like', value: '1' }] },
        /"like" does not apply to type decimal/,
      ],
      [{ criteria: [{ fieldName: 'name.x', operator: 'isNull' }] }, /rel\.Person\.name is not a relation/],
      [
        { criteria: [{ fieldName: 'Name', operator: 'isNull' }] },
        /has no field "Name" \(did you mean "name"/,
      ],
      [{ _domain: 5 }, /^_domain must be a single text/],
      [
        { _domain: 'name = :p', _domainContext: [] },
        /^_domainContext must be an object; _domain, column 8: /,
      ],
    ]
    test.for(cases)('a search with the data %j is rejected as bad-request', async ([data, message]) => {
      expect(await searchRejection({ data })).toMatch(message)
    })

    test('a rejected search reports all errors at once, also of fields and sortBy', async () => {
      const data = { criteria: [{ ...isNamed(0), fieldName: 'a' }], _domain: 'b ==' }
      expect(await searchRejection({ offset: -1, limit: 'x', fields: ['c'], sortBy: ['d'], data })).toMatch(
        /^_domain, column 3: .*; offset .*; limit .*; fields: .*"c".*; sortBy: .*"d".*; data.criteria\[0\]: .*"a"/,
      )
    })

    test('a search by a secret field is rejected as an unknown field', async () => {
      for (const operator of ['=', 'like', 'isNull']) {
        const data = { criteria: [{ fieldName: 'pin', operator, value: '1' }] }
        expect(await rejectionOf(records.search('rel.Door', { data }))).toMatch(
          /rel\.Door has no field "pin"/,
        )
      }
      expect(await rejectionOf(records.find('rel.Address', { filter: "doors.pin like '1'" }))).toMatch(
        /rel\.Door has no field "pin"/,
      )
    })

    test('a search or find whose body or query has the wrong shape is rejected as bad-request', async () => {
      expect(await rejectionOf(records.search(MODEL, [] as SearchRequest))).toMatch(/must be an object/)
      for (const filter of ['', ['a', 'b']].slice(0, transport === 'http' ? 1 : 2))
        expect(await rejectionOf(records.find(MODEL, { filter }))).toMatch(
          /^filter (is empty|must be a single text)/,
        )
      expect(await rejectionOf(records.find(MODEL, { q: 'x'.repeat(101) }))).toMatch(
        /^q must be a single text of at most/,
      )
      expect(await rejectionOf(records.find(MODEL, { q: 'a b c d e f g h i' }))).toMatch(
        /^q must have at most 8 words/,
      )
      expect(await idsOf(records.find(MODEL, { q: 'a a a a d d d d' }))).toEqual([ids[0]])
    })
  })

  describe('limits of a search', () => {
    test.for(['and', 'or'])('a search takes 16 levels of "%s", and rejects 17', async (operator) => {
      expect(await search({ data: nested(16, operator) })).toEqual(ids)
      expect(await searchRejection({ data: nested(17, operator) })).toMatch(/nested deeper than 16 levels/)
    })

    test('a filter takes 16 levels of parentheses or not, and rejects 17', async () => {
      const text = (levels: number) => `${'('.repeat(levels)}name is not null${')'.repeat(levels)}`
      expect(await idsOf(records.find(MODEL, { filter: text(16) }))).toEqual(ids)
      expect(await rejectionOf(records.find(MODEL, { filter: text(17) }))).toMatch(
        /^filter, column 17: must not be nested deeper than 16 levels/,
      )
      expect(await idsOf(records.find(MODEL, { filter: `${'not '.repeat(16)}name is not null` }))).toEqual(
        ids,
      )
      expect(await rejectionOf(records.find(MODEL, { filter: `${'not '.repeat(17)}name is null` }))).toMatch(
        /nested deeper than 16 levels/,
      )
    })

    test('a search takes 64 conditions in criteria and _domain together, and rejects 65', async () => {
      const criteria = times(64, isNamed)
      expect(await search({ data: { criteria } })).toEqual(ids)
      expect(await searchRejection({ data: { criteria: times(65, isNamed) } })).toMatch(
        /at most 64 conditions/,
      )
      expect(await searchRejection({ data: { criteria, _domain: 'name is not null' } })).toMatch(
        /at most 64 conditions, not 65/,
      )
      const domain = (count: number) => times(count, () => 'name is not null').join(' and ')
      expect(await search({ data: { criteria: times(40, isNamed), _domain: domain(24) } })).toEqual(ids)
      expect(await searchRejection({ data: { criteria: times(40, isNamed), _domain: domain(25) } })).toMatch(
        /at most 64 conditions, not 65/,
      )
      expect(await idsOf(records.find(MODEL, { filter: domain(64), q: 'a a a a a a a a' }))).toEqual([ids[0]])
      expect(await rejectionOf(records.find(MODEL, { filter: domain(65) }))).toMatch(/at most 64 conditions/)
    })

    test('a search takes 1,000 values in a list, and rejects 1,001', async () => {
      const among = (count: number) => ({
        criteria: [
          { fieldName: 'name', operator: 'in', value: [...times(count - 1, (index) => `n${index}`), 'Bob'] },
        ],
      })
      expect(await search({ data: among(1_000) })).toEqual([ids[1]])
      expect(await searchRejection({ data: among(1_001) })).toMatch(
        /name: value must have at most 1000 items/,
      )
    })

    test('a search takes 8 sort keys, and rejects 9', async () => {
      const keys = ['-rate', 'born', 'isActive', 'company', 'boss.name', 'badge', 'keeper', '-name', 'id']
      expect(await search({ sortBy: keys.slice(0, 8) })).toEqual([...ids].reverse())
      expect(await searchRejection({ sortBy: keys })).toMatch(/sortBy must have at most 8 keys/)
    })

    test('a search takes a pattern of 256 characters by code point, and rejects 257', async () => {
      const pattern = (count: number) => ({
        criteria: [{ fieldName: 'name', operator: 'notLike', value: '😀'.repeat(count) }],
      })
      expect(await search({ data: pattern(256) })).toEqual(ids)
      expect(await searchRejection({ data: pattern(257) })).toMatch(
        /name: value must have at most 256 characters/,
      )
    })

    test('a search takes 500 fields, and rejects 501', async () => {
      const fields = Array.from({ length: 500 }, () => 'name')
      expect((await records.search(MODEL, { fields, limit: 1 })).data).toHaveLength(1)
      expect(await searchRejection({ fields: [...fields, 'name'] })).toMatch(
        /fields must name at most 500 fields/,
      )
    })

    test('the fields of a search may go over 200 relations, and more are rejected', async () => {
      const paths = relations(100)
      const steps = paths.map((path) => path.split('.').length)
      const within = paths.filter(
        (_, index) => steps.slice(0, index + 1).reduce((sum, each) => sum + each, 0) <= 200,
      )
      const fields = within.map((path) => `${path}.version`)
      const { data } = await records.search(MODEL, { fields, limit: 1 })
      expect(data).toEqual([
        { id: ids[0], version: 0, ...Object.fromEntries(fields.map((name) => [name, null])) },
      ])
      const more = paths.slice(0, within.length + 1).map((path) => `${path}.version`)
      expect(await searchRejection({ fields: more })).toMatch(/fields follow more than 200 relations/)
    })

    test('the conditions and the order of a search may go over 32 relations, and 33 are rejected', async () => {
      const over = (from: number, to: number) => ({
        criteria: relations(to)
          .slice(from)
          .map((path) => ({ fieldName: `${path}.version`, operator: 'isNull' })),
      })
      expect(await search({ data: over(0, 32) })).toEqual(ids)
      expect(await searchRejection({ data: over(0, 33) })).toMatch(/at most 32 relations/)
      const sortBy = relations(32)
        .slice(-1)
        .map((path) => `${path}.version`)
      expect(await search({ data: over(0, 31), sortBy })).toEqual(ids)
      const further = relations(33)
        .slice(-1)
        .map((path) => `${path}.version`)
      expect(await searchRejection({ data: over(0, 32), sortBy: further })).toMatch(/at most 32 relations/)
      expect(await search({ data: over(0, 32), sortBy })).toEqual(ids)
    })

    test('a search takes a path of 8 steps, and rejects 9', async () => {
      const path = times(8, () => 'boss').join('.')
      const ask = (start: string) => ({
        data: { criteria: [{ fieldName: `${start}.name`, operator: 'isNull' }] },
      })
      expect(await search(ask(path))).toEqual(ids)
      expect(await searchRejection(ask(`boss.${path}`))).toMatch(/follows more than 8 relations/)
    })

    test('a search takes a filter of 10,000 characters, and rejects 10,001', async () => {
      const text = 'name is not null'
      const padded = (length: number) => ({ data: { _domain: text.padEnd(length) } })
      expect(await search(padded(10_000))).toEqual(ids)
      expect(await searchRejection(padded(10_001))).toMatch(/_domain is too long: at most 10000 characters/)
    })
  })
})
