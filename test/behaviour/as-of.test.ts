import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page, Records, WireRecord } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records
  /** Points in time, each with the page found then. */
  const moments: { at: string; page: Page }[] = []
  const FIELDS = 'name,company,born,rate,circles,createdOn,updatedOn,updatedBy,version'

  const pass = async () => {
    service.clock.advance(60_000)
    const at = new Date(service.clock.now()).toISOString()
    moments.push({ at, page: await records.find('rel.Person', { fields: FIELDS }) })
    service.clock.advance(60_000)
  }
  const make = async (model: string, data: object) => (await records.create(model, data)).data
  let company: WireRecord
  let circle: WireRecord
  let people: WireRecord[]

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
    company = await make('rel.Company', { name: 'C' })
    circle = await make('rel.Circle', { name: 'K' })
    await pass()
    people = []
    for (const [index, name] of ['Ada', 'Ben', 'Cem', 'Dee'].entries())
      people.push(
        await make('rel.Person', {
          ...{ name, born: `200${index}-01-01`, rate: `${index}.50` },
          ...{ company: { id: company.id }, circles: [{ id: circle.id }] },
        }),
      )
    await pass()
    const [ada, ben, cem] = people.map(({ id }) => id)
    await records.update('rel.Person', ada ?? 0, { version: 0, name: 'Zoe', circles: [], company: null })
    await records.remove('rel.Person', ben ?? 0)
    await pass()
    await records.update('rel.Person', cem ?? 0, { version: 0, name: 'Abe' })
    await records.revert('rel.Person', ben ?? 0, { version: 1, to: 0 })
    await make('rel.Person', { name: 'New' })
    await pass()
    await records.removeAll(
      'rel.Person',
      people.map(({ id }) => ({ id })),
    )
    await pass()
  })
  afterAll(() => service.close())

  test('a list with asOf equals the list found at that time', async () => {
    for (const { at, page } of moments) {
      const was = await records.find('rel.Person', { fields: FIELDS, asOf: at })
      expect({ at, total: was.total, seq: was.seq, data: was.data }).toEqual({
        at,
        ...{ total: page.total, seq: page.seq, data: page.data },
      })
    }
  })

  test('a list with asOf is filtered, sorted and paged by the values of that time', async () => {
    const { at = '' } = moments[2] ?? {}
    const namesOf = async (query: object) => {
      const { data, total } = await records.find('rel.Person', { fields: 'name', asOf: at, ...query })
      return [total, data.map(({ name }) => name)]
    }
    expect(await namesOf({ sortBy: '-name' })).toEqual([3, ['Zoe', 'Dee', 'Cem']])
    expect(await namesOf({ sortBy: 'name', offset: 1, limit: 1 })).toEqual([3, ['Dee']])
    expect(await namesOf({ filter: "name = 'Zoe'" })).toEqual([1, ['Zoe']])
    expect(await namesOf({ filter: 'rate > 1.50' })).toEqual([2, ['Cem', 'Dee']])
    expect(await namesOf({ filter: `company = ${company.id}` })).toEqual([2, ['Cem', 'Dee']])
    expect(await namesOf({ filter: 'updatedOn is not null' })).toEqual([1, ['Zoe']])
    expect(await namesOf({ limit: 0 })).toEqual([3, []])
    expect(await namesOf({ offset: 9 })).toEqual([3, []])
  })

  test('a find with q and asOf matches the values of that time', async () => {
    const { at = '' } = moments[1] ?? {}
    const found = await records.find('rel.Circle', { q: 'k', asOf: at })
    expect(found.data.map(({ id }) => id)).toEqual([circle.id])
  })

  test('a list with asOf omits the records that were archived at that time', async () => {
    const note = await make('test.Note', { title: 'N' })
    await pass()
    await records.update('test.Note', note.id, { version: 0, archived: true })
    await pass()
    const at = moments.at(-2)?.at
    expect((await records.find('test.Note', { asOf: at })).total).toBe(1)
    expect((await records.find('test.Note', { asOf: moments.at(-1)?.at })).total).toBe(0)
    expect((await records.find('test.Note', { asOf: moments.at(-1)?.at, archived: true })).total).toBe(1)
  })

  test('a list with asOf restores values of every field type', async () => {
    const values = {
      ...{ label: 'a', note: 'b\n', whole: -7, big: 2 ** 53 - 1, amount: '12345678901234567890.0123456789' },
      ...{
        price: '-1.50',
        active: true,
        day: '2024-02-29',
        at: '23:59:59',
        moment: '2024-01-02T03:04:05.678Z',
      },
      ...{
        token: '123e4567-e89b-12d3-a456-426614174000',
        state: 'sent',
        extra: { b: [1, null, 'x'], a: 1.5 },
      },
    }
    const made = await make('test.Everything', values)
    const names = Object.keys(values).join()
    await pass()
    const nothing = Object.fromEntries(Object.keys(values).map((name) => [name, null]))
    await records.update('test.Everything', made.id, { version: 0, ...nothing })
    const was = await records.find('test.Everything', { asOf: moments.at(-1)?.at, fields: names })
    expect(was.data).toEqual([{ id: made.id, version: 0, ...values }])
    const sorted = await records.find('test.Everything', {
      asOf: moments.at(-1)?.at,
      sortBy: 'amount,active',
    })
    expect(sorted.total).toBe(1)
    for (const filter of ['amount > 1', 'active = true', "day < '2025-01-01'", "at > '23:00:00'"])
      expect((await records.find('test.Everything', { asOf: moments.at(-1)?.at, filter })).total).toBe(1)
  })

  test('a list with asOf rejects filters, sorts and fields that need related records', async () => {
    const { at } = moments[1] ?? {}
    for (const query of [
      { filter: "company.name = 'C'" },
      { filter: 'circles is not empty' },
      { filter: "circles.name = 'K'" },
      { sortBy: 'company' },
      { sortBy: 'boss.name' },
      { fields: 'badge' },
    ]) {
      const error = await catchError(records.find('rel.Person', { ...query, asOf: at }))
      expect([query, error.kind]).toEqual([query, 'bad-request'])
      expect(error.message).toMatch(/^asOf: /)
    }
  })

  test('asOf of a list must be a time, not a version, and a search rejects asOf', async () => {
    for (const asOf of ['3', 'today', '']) {
      const error = await catchError(records.find('rel.Person', { asOf }))
      expect([asOf, error.kind, error.message]).toEqual([
        ...[asOf, 'bad-request'],
        'asOf must be a date and time with an offset such as 2026-03-01T12:00:00Z (write + as %2B in a URL), or a date',
      ])
    }
    const inSearch = await catchError(records.search('rel.Person', { asOf: '2026-01-01' } as object))
    expect(inSearch.message).toContain(
      'asOf is not a key of this request: use a find (GET /ws/rest/:model?asOf=…)',
    )
  })

  test('a list with asOf does not change while others write', async () => {
    const all: WireRecord[] = []
    for (let index = 0; index < 30; index++) all.push(await make('rel.Circle', { name: `x${index}` }))
    await pass()
    const at = moments.at(-1)?.at
    const expected = (await records.find('rel.Circle', { sortBy: 'name', limit: 100 })).data
    let isOver = false
    const writers = [0, 1, 2].map(async (writer) => {
      for (let round = 0; !isOver; round++) {
        const mine = all.filter((_, index) => index % 3 === writer)
        const one = mine[round % mine.length]
        if (!one) return
        const { version } = await records.read('rel.Circle', one.id).catch(() => ({ version: -1 }))
        if (version < 0) continue
        await records.update('rel.Circle', one.id, { version, name: `y${round}` })
        if (round % 5 === 0) await records.remove('rel.Circle', one.id)
        await make('rel.Circle', { name: `new ${round}` })
      }
    })
    for (let round = 0; round < 10; round++) {
      const was = await records.find('rel.Circle', { asOf: at, sortBy: 'name', limit: 100 })
      expect([was.total, was.data]).toEqual([expected.length, expected])
    }
    isOver = true
    await Promise.all(writers)
  })
})
