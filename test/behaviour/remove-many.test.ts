// A delete of several records in one request deletes all of them, or none.
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/model/definition/define-model.js'
import { openDatabase } from '../../src/store/open.js'
import { models } from '../models.js'
import {
  enter,
  preparedLocation,
  onEveryEngine,
  onEveryTarget,
  catchError,
  startService,
} from '../targets.js'
import * as mutants from '../mutants/records.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

const [COMPANY, ADDRESS, PERSON, CIRCLE] = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Circle']
const Node = defineModel({
  name: 'rel.Node',
  fields: {
    name: { type: 'string' },
    parent: { type: 'many-to-one', target: 'rel.Node' },
    children: { type: 'one-to-many', target: 'rel.Node', mappedBy: 'parent', owned: true },
  },
})

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport, {
    models: [...models, { file: 'node.ts', definition: Node }],
  })
  const removeAll = async (model: string, all: readonly unknown[]) =>
    (await records().removeAll(model, all)).data
  const isThere = async (model: string, id: number) =>
    (await records().search(model, { data: { criteria: [{ fieldName: 'id', operator: '=', value: id }] } }))
      .total === 1

  test('a delete of several records makes one Change for each and answers with their versions', async () => {
    const [a, b, c] = [await make(PERSON, {}), await make(PERSON, {}), await make(PERSON, {})]
    await change(PERSON, b.id, { version: 0, name: 'B' })
    const changes = await changesOf(async () => {
      const sent = [{ id: c.id }, { id: b.id, version: 1, name: 'ignored' }, { id: a.id, version: null }]
      expect(await removeAll(PERSON, sent)).toEqual([
        { id: c.id, version: 0 },
        { id: b.id, version: 1 },
        { id: a.id, version: 0 },
      ])
    })
    expect(inShort(changes)).toEqual([
      `${PERSON} ${c.id} delete 1`,
      `${PERSON} ${b.id} delete 2`,
      `${PERSON} ${a.id} delete 1`,
    ])
    for (const { id } of [a, b, c]) expect((await catchError(read(PERSON, id))).kind).toBe('not-found')
  })

  test('a delete of several records also checks a $version', async () => {
    const person = await make(PERSON, {})
    await change(PERSON, person.id, { version: 0, name: 'changed' })
    const error = await expectRolledBack(() => removeAll(PERSON, [{ id: person.id, $version: 0 }]))
    expect(error.kind).toBe('conflict')
    expect(await removeAll(PERSON, [{ id: person.id, $version: 1 }])).toEqual([{ id: person.id, version: 1 }])
  })

  test('one outdated version rejects the whole delete as a conflict', async () => {
    const [a, b] = [await make(PERSON, { name: 'a' }), await make(PERSON, { name: 'b' })]
    await change(PERSON, b.id, { version: 0, name: 'newer' })
    const stale = [
      { id: a.id, version: 0 },
      { id: b.id, version: 0 },
    ]
    const error = await expectRolledBack(() => removeAll(PERSON, stale))
    expect(error).toMatchObject({
      kind: 'conflict',
      details: {
        data: { entityId: b.id, expected: 0, current: 1, mergeable: false, theirs: { name: 'newer' } },
      },
    })
    expect([await isThere(PERSON, a.id), await isThere(PERSON, b.id)]).toEqual([true, true])
  })

  test('one missing or referenced record rejects the whole delete', async () => {
    const [a, b] = [await make(COMPANY, { name: 'a' }), await make(COMPANY, { name: 'b' })]
    const gone = await expectRolledBack(() => removeAll(COMPANY, [a, { id: 987_654 }]))
    expect(gone.kind).toBe('not-found')
    const person = await make(PERSON, { company: { id: b.id } })
    const error = await expectRolledBack(() => removeAll(COMPANY, [a, b]))
    expect(error).toMatchObject({
      kind: 'still-referenced',
      details: { data: { entityId: b.id, references: [{ entityName: PERSON, ids: [person.id] }] } },
    })
  })

  test('records that refer to each other can be deleted together', async () => {
    const boss = await make(PERSON, { name: 'boss' })
    const other = await make(PERSON, { name: 'other', boss: { id: boss.id } })
    await change(PERSON, boss.id, { version: 0, boss: { id: other.id } })
    expect((await catchError(records().remove(PERSON, boss.id))).kind).toBe('still-referenced')
    expect(await removeAll(PERSON, [{ id: boss.id }, { id: other.id }])).toHaveLength(2)
  })

  test("a delete of several members increments their owner's version once", async () => {
    const cities = ['A', 'B', 'C'].map((city) => ({ city }))
    const company = await make(COMPANY, { name: 'owner', addresses: cities })
    const [a = { id: 0 }, b = { id: 0 }, c = { id: 0 }] = idsOf(company, 'addresses')
    const changes = await changesOf(() => removeAll(ADDRESS, [b, a]))
    expect(inShort(changes).toSorted()).toEqual(
      [
        `${ADDRESS} ${a.id} delete 1`,
        `${ADDRESS} ${b.id} delete 1`,
        `${COMPANY} ${company.id} update 1`,
      ].sort(),
    )
    expect(idsOf(await read(COMPANY, company.id), 'addresses')).toEqual([c])
  })

  test('a delete of several linked records increments the version of the linking record once', async () => {
    const circles = [await make(CIRCLE, { name: 'x' }), await make(CIRCLE, { name: 'y' })]
    const ids = circles.map(({ id }) => ({ id }))
    const person = await make(PERSON, { circles: ids })
    const changes = await changesOf(() => removeAll(CIRCLE, ids))
    expect(inShort(changes)).toContain(`${PERSON} ${person.id} update 1`)
    expect(changes).toHaveLength(3)
  })

  test.for(['owner first', 'member first'])(
    'an owner and its member deleted together, %s, have one Change each',
    async (order) => {
      const owner = await make(Node.name, { name: 'owner', children: [{ name: 'member' }] })
      const [member = { id: 0 }] = idsOf(owner, 'children')
      const both = [
        { id: owner.id, version: 0 },
        { id: member.id, version: 0 },
      ]
      const changes = await changesOf(async () => {
        expect(await removeAll(Node.name, order === 'owner first' ? both : both.toReversed())).toHaveLength(2)
      })
      expect(inShort(changes).toSorted()).toEqual(
        [`${Node.name} ${owner.id} delete 1`, `${Node.name} ${member.id} delete 1`].toSorted(),
      )
      const ofOwner = changes.find(({ id }) => id === owner.id)
      expect(ofOwner?.changes['children']).toEqual({ before: [member], after: null })
    },
  )

  test('a delete repeated under its idempotency key returns the first answer', async () => {
    const [a, b] = [await make(PERSON, {}), await make(PERSON, {})]
    const options = { idempotencyKey: `remove ${transport}` }
    const sent = [{ id: a.id }, { id: b.id, version: 0 }]
    const first = await records().removeAll(PERSON, sent, options)
    expect(await records().removeAll(PERSON, sent, options)).toEqual({ data: first.data, replayed: true })
    expect((await catchError(records().removeAll(PERSON, sent.slice(1), options))).kind).toBe('key-reused')
  })

  test('a delete of no valid record, of one twice, or of 1,001 is rejected', async () => {
    const { id } = await make(PERSON, {})
    const many = Array.from({ length: 1_001 }, (_, index) => ({ id: index + 1 }))
    for (const sent of [
      [id],
      [{ id: String(id) }],
      [{}],
      [null],
      [{ id, version: '0' }],
      [{ id }, { id }],
      many,
    ])
      expect((await expectRolledBack(() => removeAll(PERSON, sent))).kind).toBe('bad-request')
    expect((await expectRolledBack(() => removeAll(PERSON, [{ id: 0 }]))).kind).toBe('not-found')
  })
})

describe('mutants of the delete', () => {
  onEveryEngine((engine) => {
    test('a mutant without a transaction around a delete is caught', async () => {
      const location = await preparedLocation(engine)
      const options = { poolSize: 4, statementTimeoutMs: 10_000 }
      const database = mutants.readCheckWrite(await openDatabase(location.url, options))
      const service = await startService(engine, { location, database })
      try {
        const records = await enter(service, 'direct')
        const { data: a } = await records.create(COMPANY, { name: 'a' })
        const { data: b } = await records.create(COMPANY, { name: 'b' })
        await records.create(PERSON, { company: { id: b.id } })
        expect((await catchError(records.removeAll(COMPANY, [a, b]))).kind).toBe('still-referenced')
        expect((await records.find(COMPANY)).data).toEqual([])
      } finally {
        await service.close()
        location.remove()
      }
    })
  })
})
