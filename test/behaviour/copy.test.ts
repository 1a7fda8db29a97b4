// A copy is data that creates another record with the same content.
import { expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Values } from '../../src/model/values/value.js'
import { models } from '../models.js'
import { onEveryTarget, catchError } from '../targets.js'
import { inShort, useRelatedService } from './related-service.js'

const [COMPANY, PERSON, NODE, PLAN] = ['rel.Company', 'rel.Person', 'rel.Node', 'rel.Plan']
const Node = defineModel({
  name: NODE,
  fields: {
    name: { type: 'string' },
    parent: { type: 'many-to-one', target: NODE },
    children: { type: 'one-to-many', target: NODE, mappedBy: 'parent', owned: true },
  },
})
const Plan = defineModel({
  name: PLAN,
  fields: {
    long: { type: 'string', unique: true, length: 10 },
    short: { type: 'string', unique: true, length: 7 },
    chosen: { type: 'string', unique: true, selection: ['a', 'b'] },
    place: { type: 'integer', unique: true },
    country: { type: 'enum', selection: ['FR', 'DE'], required: true },
    year: { type: 'integer' },
    line: { type: 'string' },
    row: { type: 'integer' },
    steps: { type: 'one-to-many', target: 'rel.PlanStep', mappedBy: 'plan', owned: true },
  },
  unique: [
    ['country', 'year'],
    ['row', 'line'],
  ],
  archived: true,
})
const PlanStep = defineModel({
  name: 'rel.PlanStep',
  fields: { plan: { type: 'many-to-one', target: PLAN }, rank: { type: 'integer' } },
  unique: [['plan', 'rank']],
})

onEveryTarget((engine, transport) => {
  const more = [Node, Plan, PlanStep].map((definition) => ({ file: 'copy.ts', definition }))
  const { records, make, read, changesOf } = useRelatedService(engine, transport, {
    models: [...models, ...more],
  })
  const copy = (model: string, id: number) => records().copy(model, id)
  const names = (values: Values) => Object.keys(values)

  test('a copy has all writable fields, without id, version and system fields', async () => {
    const full = {
      ...{ label: 'L', note: 'N', whole: 1, big: 2, amount: '1.5000000000', price: '2.50', active: false },
      ...{ day: '2024-01-31', at: '12:00:00', moment: '2024-01-31T12:00:00.000Z', state: 'sent' },
      ...{ token: '00000000-0000-4000-8000-000000000000', extra: { a: [1, null] } },
    }
    const { id } = await make('test.Everything', full)
    expect(await copy('test.Everything', id)).toEqual(full)
  })

  test('a copy includes owned records at every level, without their ids', async () => {
    const company = await make(COMPANY, {
      ...{ name: 'First', code: 'ONE' },
      addresses: [{ city: 'A', doors: [{ code: `d1${transport}`, pin: 'secret' }, {}] }, { city: 'B' }],
    })
    const copied = await copy(COMPANY, company.id)
    expect(copied).toEqual({
      ...{ code: 'ONE (copy)', name: 'First', founded: null, seat: null, parent: null },
      addresses: [
        { city: 'A', street: null, doors: [{ code: `d1${transport} (copy)` }, { code: null }] },
        { city: 'B', street: null, doors: [] },
      ],
    })
    const second = await make(COMPANY, copied)
    expect(await copy(COMPANY, second.id)).toMatchObject({ addresses: [{ city: 'A' }, { city: 'B' }] })
    expect(await read(COMPANY, company.id)).toEqual(company)
  })

  test('requesting a copy writes nothing', async () => {
    const { id } = await make(COMPANY, { name: 'looked at', addresses: [{ city: 'A' }] })
    expect(inShort(await changesOf(() => copy(COMPANY, id)))).toEqual([])
  })

  test('a copy keeps references and links, but clears a one-to-one reference and a sequence number', async () => {
    const company = await make(COMPANY, { name: 'Employer' })
    const person = await make(PERSON, { name: 'P', company: { id: company.id }, circles: [{ name: 'C' }] })
    const copied = await copy(PERSON, person.id)
    expect(copied).toMatchObject({ company: { id: company.id }, circles: person['circles'] })
    expect(await make(PERSON, copied)).toMatchObject({ company: { id: company.id } })
    const badge = await make('rel.Badge', { holder: { id: person.id } })
    const another = await copy('rel.Badge', badge.id)
    expect(another).toEqual({ holder: null })
    expect((await make('rel.Badge', another))['number']).not.toBe(badge['number'])
  })

  test('a copy has no secrets and no computed fields; creating it computes them again', async () => {
    const { id } = await make('crm.Contact', {
      firstName: 'A',
      lastName: 'B',
      pin: '1',
      password: 'long enough!',
    })
    const copied = await copy('crm.Contact', id)
    expect(names(copied)).toEqual(['firstName', 'lastName', 'email', 'notes', 'phones'])
    expect(await make('crm.Contact', copied)).toMatchObject({ fullName: 'A B' })
  })

  test('a copy marks or clears unique values, so that it can be created', async () => {
    const plan = await make(PLAN, {
      ...{ long: '🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂', short: 'short', chosen: 'a', place: 5, country: 'FR', year: 2024 },
      ...{ line: 'L', row: 3, archived: true, steps: [{ rank: 1 }, { rank: 2 }] },
    })
    const copied = await copy(PLAN, plan.id)
    expect(copied).toEqual({
      ...{ long: '🙂🙂🙂 (copy)', short: null, chosen: null, place: null },
      ...{ country: 'FR', year: null, line: 'L (copy)', row: 3, steps: [{ rank: 1 }, { rank: 2 }] },
    })
    expect(await make(PLAN, copied)).toMatchObject({ version: 0, year: null })
  })

  test('a tree of 8 levels is copied whole, and a copy of 9 levels is rejected', async () => {
    const nested = (levels: number): object => (levels === 1 ? {} : { children: [nested(levels - 1)] })
    const tree = await make(NODE, nested(8))
    const depthOf = (node: Values): number => 1 + Math.max(0, ...(node['children'] as Values[]).map(depthOf))
    expect(depthOf(await copy(NODE, tree.id))).toBe(8)
    await make(NODE, { name: 'above', children: [{ id: tree.id, version: 0 }] })
    const { parent } = await read(NODE, tree.id)
    const error = await catchError(copy(NODE, (parent as { id: number }).id))
    expect(error).toMatchObject({ kind: 'bad-request', message: expect.stringMatching(/too large to copy/) })
  })

  test('a copy of records that own each other, or of more than 1,000 records, is rejected', async () => {
    const a = await make(NODE, { name: 'a' })
    const b = await make(NODE, { name: 'b', parent: { id: a.id } })
    await records().update(NODE, a.id, { version: 1, parent: { id: b.id } })
    expect((await catchError(copy(NODE, a.id))).kind).toBe('bad-request')
    const wide = await make(NODE, { children: Array.from({ length: 999 }, () => ({ name: 'leaf' })) })
    expect((await copy(NODE, wide.id))['children']).toHaveLength(999)
    await make(NODE, { name: 'one more', parent: { id: wide.id } })
    expect((await catchError(copy(NODE, wide.id))).kind).toBe('bad-request')
  })

  test('a copy of a missing record is not-found, and of a missing model unknown-model', async () => {
    expect((await catchError(copy(COMPANY, 987_654))).kind).toBe('not-found')
    expect((await catchError(copy('rel.Nothing', 1))).kind).toBe('unknown-model')
  })
})
