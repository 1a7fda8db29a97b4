import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'
import { createPeople, idsOf, type People } from './people.js'

type Name = keyof People
type Asked = readonly [fieldName: string, operator: string, value?: unknown, value2?: unknown]
const node = ([fieldName, operator, value, value2]: Asked) => ({ fieldName, operator, value, value2 })

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  let people: People

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
    people = await createPeople(records)
  })
  afterAll(() => service.close())

  /** The names of the records found, in order. */
  const namesIn = (page: Parameters<typeof idsOf>[0], model: string) => {
    const names = Object.entries(people).filter(([name]) => MODELS[name] === model)
    expect(page.total).toBe(page.data.length)
    return idsOf(page).map((found) => names.find(([, id]) => id === found)?.[0])
  }
  const search = async (model: string, data: unknown) => namesIn(await records.search(model, { data }), model)
  const filter = async (model: string, text: string) =>
    namesIn(await records.find(model, { filter: text }), model)
  const messageOf = async (call: Promise<unknown>) => {
    const { kind, message } = await catchError(call)
    expect(kind).toBe('bad-request')
    return message
  }

  describe('criteria of a search', () => {
    const isBob = node(['name', '=', 'Bob'])
    const atAcme = node(['company.name', '=', 'Acme'])
    const cases: readonly (readonly [claim: string, data: unknown, found: readonly Name[]])[] = [
      ['criteria are joined by "and" by default', { criteria: [atAcme, node(['rate', '<', 10])] }, ['emile']],
      [
        'criteria joined by "or" match if one matches',
        { operator: 'or', criteria: [atAcme, isBob] },
        ['ada', 'emile', 'bob'],
      ],
      [
        'criteria joined by "not" match unless all match',
        { operator: 'not', criteria: [atAcme, node(['name', '=', 'Ada'])] },
        ['emile', 'bob', 'zoe'],
      ],
      [
        'criteria can be nested',
        {
          criteria: [
            { operator: 'or', criteria: [isBob, atAcme] },
            { operator: 'not', criteria: [isBob] },
          ],
        },
        ['ada', 'emile'],
      ],
      [
        'an empty list of criteria matches every record',
        { criteria: [] },
        ['ada', 'emile', 'bob', 'zoe', 'nobody'],
      ],
    ]
    test.for(cases)('%s', async ([, data, found]) => {
      expect(await search('rel.Person', data)).toEqual(found)
    })

    const spellings: readonly (readonly [string, string, readonly [unknown?, unknown?], readonly Name[]])[] =
      [
        ['=', 'equals', ['12.5'], ['ada']],
        ['!=', 'notEqual', ['12.5'], ['emile', 'zoe']],
        ['<', 'lessThan', [100], ['ada', 'emile']],
        ['>', 'greaterThan', ['9.00'], ['ada', 'zoe']],
        ['<=', 'lessOrEqual', [9], ['emile']],
        ['>=', 'greaterOrEqual', ['12.50'], ['ada', 'zoe']],
        ['in', 'IN', [['9', 100]], ['emile', 'zoe']],
        ['notIn', 'NOT IN', [['9', 100]], ['ada']],
        ['between', 'BETWEEN', [9, 12.5], ['ada', 'emile']],
        ['notBetween', 'NOT BETWEEN', [9, 12.5], ['zoe']],
        ['isNull', 'IS NULL', [], ['bob', 'nobody']],
        ['notNull', 'IS NOT NULL', [], ['ada', 'emile', 'zoe']],
      ]
    test.for(spellings)('the operator %s can be spelled %s', async ([operator, other, values, found]) => {
      for (const spelled of [operator, other])
        expect(await search('rel.Person', { criteria: [node(['rate', spelled, ...values])] })).toEqual(found)
    })

    test('like and notLike ignore case and accents, and their wildcards can be escaped', async () => {
      const like = async (operator: string, value: string) =>
        search('rel.Person', { criteria: [node(['name', operator, value])] })
      for (const spelled of ['like', 'LIKE']) expect(await like(spelled, 'EMI')).toEqual(['emile'])
      for (const spelled of ['notLike', 'NOT LIKE'])
        expect(await like(spelled, 'émi')).toEqual(['ada', 'bob', 'zoe'])
      expect(await like('like', '%b')).toEqual(['bob'])
      expect(await like('like', 'b%')).toEqual(['bob'])
      expect(await like('like', 'b_b')).toEqual(['bob'])
      expect(await like('like', '%')).toEqual(['ada', 'emile', 'bob', 'zoe'])
      expect(await like('like', '0\\%')).toEqual(['zoe'])
      expect(await like('like', 'o%0%')).toEqual([])
    })

    test('in [] matches no record and notIn [] every record, null or not', async () => {
      expect(await search('rel.Person', { criteria: [node(['name', 'in', []])] })).toEqual([])
      expect(await search('rel.Person', { criteria: [node(['company.name', 'notIn', []])] })).toHaveLength(5)
    })

    test('a comparison with null matches no record', async () => {
      for (const operator of ['=', '!=', '<', '>='])
        expect(await search('rel.Person', { criteria: [node(['name', operator, null])] })).toEqual([])
      const isNull = { operator: 'not', criteria: [node(['name', '=', null])] }
      expect(await search('rel.Person', isNull)).toEqual([])
    })
  })

  describe('paths of a search', () => {
    const cases: readonly (readonly [model: string, asked: Asked, found: readonly Name[]])[] = [
      ['rel.Person', ['company', '=', 'Acme'], ['ada', 'emile']],
      ['rel.Person', ['company', 'like', 'zen'], ['bob']],
      ['rel.Person', ['company', 'isNull'], ['zoe', 'nobody']],
      ['rel.Person', ['company.founded', 'isNull'], ['bob', 'zoe', 'nobody']],
      ['rel.Person', ['company.parent.name', '=', 'Acme'], ['bob']],
      ['rel.Person', ['boss.boss.name', '=', 'Ada'], ['bob']],
      ['rel.Person', ['boss.company.addresses.city', '=', 'Rome'], ['emile', 'bob']],
      ['rel.Person', ['badge.number', '=', 'B-0007'], ['ada']],
      ['rel.Person', ['badge', 'isNull'], ['emile', 'bob', 'zoe', 'nobody']],
      ['rel.Person', ['boss.badge', 'notNull'], ['emile']],
      ['rel.Person', ['circles.name', 'in', ['Red', 'Blue']], ['ada', 'emile']],
      ['rel.Person', ['circles', 'isEmpty'], ['bob', 'zoe', 'nobody']],
      ['rel.Person', ['circles.members.name', 'notNull'], ['ada', 'emile']],
      ['rel.Badge', ['holder.circles', '=', 'Blue'], ['badge']],
      ['rel.Circle', ['members.company', '=', 'Acme'], ['red', 'blue']],
      ['rel.Circle', ['members', 'notEmpty'], ['red', 'blue']],
      ['rel.Company', ['addresses.doors.code', 'like', 'd'], ['acme']],
      ['rel.Company', ['addresses.street', 'isNull'], ['acme']],
      ['rel.Company', ['people.name', '!=', 'Ada'], ['acme', 'zenith']],
      ['rel.Company', ['seat.company.name', '=', 'Acme'], ['zenith']],
      ['rel.Address', ['company.people.boss', '=', 'Ada'], ['oslo', 'rome']],
      ['rel.Address', ['doors', 'isEmpty'], ['rome']],
      ['rel.Person', ['createdBy.name', '=', 'Ada'], ['ada', 'emile', 'bob', 'zoe', 'nobody']],
    ]
    test.for(cases)(
      'a search over relations returns each record once: %s %j',
      async ([model, asked, found]) => {
        expect(await search(model, { criteria: [node(asked)] })).toEqual(found)
      },
    )

    test('a relation is compared by id, by an object with an id, or by several ids', async () => {
      const { acme, zenith, red } = people
      const ask = async (...asked: Asked) => search('rel.Person', { criteria: [node(asked)] })
      expect(await ask('company', '=', zenith)).toEqual(['bob'])
      expect(await ask('company', '=', { id: zenith, version: 7, name: 'whatever' })).toEqual(['bob'])
      expect(await ask('company', 'in', [acme, zenith])).toEqual(['ada', 'emile', 'bob'])
      expect(await ask('company.id', '!=', acme)).toEqual(['bob'])
      expect(await ask('circles', '=', red)).toEqual(['ada', 'emile'])
      expect(await ask('circles', 'notIn', [red])).toEqual(['ada'])
    })
  })

  describe('_domain of a search', () => {
    test('_domain is a condition as text, with parameters from _domainContext', async () => {
      const _domain = 'self.company.name = :company.name and self.id in :ids'
      const _domainContext = { company: { name: 'Acme' }, ids: [people.ada, people.bob], unused: 1 }
      expect(await search('rel.Person', { _domain, _domainContext })).toEqual(['ada'])
      const member = { _domain: ':circle member of self.circles', _domainContext: { circle: people.blue } }
      expect(await search('rel.Person', member)).toEqual(['ada'])
    })

    test('_domain and criteria must both match, also if "or" joins the criteria', async () => {
      const criteria = [node(['name', '=', 'Bob']), node(['name', '=', 'Ada'])]
      expect(await search('rel.Person', { operator: 'or', criteria, _domain: 'rate is null' })).toEqual([
        'bob',
      ])
    })

    test('a missing parameter of _domain is rejected with its column', async () => {
      const data = { _domain: 'name = :nmae', _domainContext: { name: 'Ada' } }
      expect(await messageOf(records.search('rel.Person', { data }))).toMatch(
        /^_domain, column 8: .*nmae.*did you mean "name"/,
      )
    })
  })

  describe('find', () => {
    const cases: readonly (readonly [filter: string, found: readonly Name[]])[] = [
      ["company.name = 'Acme' and (rate < 10 or name = 'Bob')", ['emile']],
      ["name = 'Bob' or company.name = 'Acme' and rate > 10", ['ada', 'bob']],
      ["not name = 'Bob' and company is not null", ['ada', 'emile']],
      ['self.circles[].name LIKE "blu"', ['ada']],
      ["name in ('Ada', 'Bob', 'it''s')", ['ada', 'bob']],
      ['born between "1800-01-01" and "1830-01-01"', ['ada']],
      ['isActive is not true', ['emile', 'bob', 'zoe', 'nobody']],
      ['circles is empty and boss is null', ['zoe', 'nobody']],
    ]
    test.for(cases)('a find matches the expected records with filter=%s', async ([text, found]) => {
      expect(await filter('rel.Person', text)).toEqual(found)
    })

    const faults: readonly (readonly [filter: string, message: RegExp])[] = [
      ["nme = 'Ada'", /^filter, column 1: .*rel\.Person has no field "nme" \(did you mean "name"\?\)/],
      ["name = 'Ada' and rate == 5", /^filter, column 23: use = /],
      ["name = 'Ada", /^filter, column 8: this text has no closing quote/],
      ['rate < 10 and (name is null', /^filter, column 15: this parenthesis has no closing "\)"/],
      ['rate < "ten"', /^filter, column 1: rate: value must be a decimal number/],
      [' ', /^filter is empty/],
    ]
    test.for(faults)('a find rejects filter=%s with the column of the error', async ([text, message]) => {
      expect(await messageOf(records.find('rel.Person', { filter: text }))).toMatch(message)
    })

    test('a find takes fields and sortBy as comma-separated texts', async () => {
      const page = await records.find('rel.Person', {
        ...{ fields: 'name, company.name', sortBy: '-company,-name', filter: 'company is not null' },
      })
      expect(page.data).toEqual([
        { id: people.bob, version: 0, name: 'Bob', 'company.name': 'Zenith' },
        { id: people.emile, version: 0, name: 'Émile', 'company.name': 'Acme' },
        { id: people.ada, version: 0, name: 'Ada', 'company.name': 'Acme' },
      ])
    })

    const words: readonly (readonly [q: string, found: readonly Name[]])[] = [
      ['emile', ['emile']],
      ['ÉMILE', ['emile']],
      ['  zoe   100 ', ['zoe']],
      ['100 zoe', ['zoe']],
      ['zoe 200', []],
      ['%', ['zoe']],
      ['_', []],
      ['\\', []],
      ['', ['ada', 'emile', 'bob', 'zoe', 'nobody']],
    ]
    test.for(words)(
      'a find with q=%s matches records that contain every word, without wildcards',
      async ([q, found]) => {
        expect(namesIn(await records.find('rel.Person', { q }), 'rel.Person')).toEqual(found)
      },
    )

    test('q of a find searches every list field, and the filter must match, too', async () => {
      const find = async (query: object) => namesIn(await records.find('rel.Company', query), 'rel.Company')
      expect(await find({ q: 'z nith' })).toEqual(['zenith'])
      expect(await find({ q: 'a' })).toEqual(['acme'])
      expect(await find({ q: 'e' })).toEqual(['acme', 'zenith'])
      expect(await find({ q: 'e', filter: 'parent is null' })).toEqual(['acme'])
    })
  })

  test('a search without a body equals a find', async () => {
    expect(await records.search('rel.Person')).toEqual(await records.find('rel.Person'))
  })

  test('a search or find omits archived records unless it asks for them', async () => {
    const make = async (title: string, archived: boolean) =>
      (await records.create('test.Note', { title, archived })).data.id
    const [old, current] = [await make('a note', true), await make('a note', false)]
    const criteria = [node(['title', 'like', 'note'])]
    const found = async (data: object) => idsOf(await records.search('test.Note', { data }))
    expect(await found({ criteria })).toEqual([current])
    expect(await found({ criteria, _archived: false })).toEqual([current])
    expect(await found({ criteria, _archived: true })).toEqual([old, current])
    const finding = async (archived: unknown) =>
      idsOf(await records.find('test.Note', { filter: "title like 'note'", archived }))
    expect([await finding(undefined), await finding('false'), await finding('true')]).toEqual([
      ...[[current], [current]],
      [old, current],
    ])
  })

  test('pages of a search have no gaps and no overlaps, also if several members of a list match', async () => {
    const ids: number[] = []
    for (let number = 0; number < 23; number++) {
      const addresses = Array.from({ length: 1 + (number % 4) }, () => ({ city: 'Paged' }))
      ids.push((await records.create('rel.Company', { name: `P${100 + number}`, addresses })).data.id)
    }
    for (const sortBy of [undefined, ['-founded'], ['name', 'code']]) {
      const seen: number[] = []
      for (let offset = 0; offset < ids.length; offset += 5) {
        const data = { criteria: [node(['addresses.city', '=', 'Paged'])] }
        const page = await records.search('rel.Company', { offset, limit: 5, data, sortBy })
        expect([page.offset, page.total]).toEqual([offset, ids.length])
        seen.push(...idsOf(page))
      }
      expect(seen).toEqual(ids)
    }
  })
})

const MODELS: Readonly<Record<string, string>> = {
  ...{ ada: 'rel.Person', emile: 'rel.Person', bob: 'rel.Person', zoe: 'rel.Person', nobody: 'rel.Person' },
  ...{ acme: 'rel.Company', zenith: 'rel.Company', oslo: 'rel.Address', rome: 'rel.Address' },
  ...{ red: 'rel.Circle', blue: 'rel.Circle', badge: 'rel.Badge' },
}
