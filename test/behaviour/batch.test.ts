// Batches of requests about records of any model.
import { expect, test } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { onEveryTarget, catchError } from '../targets.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

const [COMPANY, ADDRESS, PERSON, CIRCLE] = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Circle']

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf } = useRelatedService(engine, transport)
  const batch = async (...requests: readonly object[]) => (await records().batch(requests)).data

  test('a batch answers each request at its index: the record, the id, or the id with the version', async () => {
    const [changed, removed, seen] = [
      await make(COMPANY, { name: 'changed' }),
      await make(PERSON, { name: 'removed' }),
      await make(CIRCLE, { name: 'seen' }),
    ]
    const changes = await changesOf(async () => {
      const data = await batch(
        { op: 'assert', model: CIRCLE, id: seen.id, version: 0 },
        { op: 'delete', model: PERSON, id: removed.id, version: 0 },
        { op: 'update', model: COMPANY, id: changed.id, version: 0, data: { name: 'changed 1' } },
        { op: 'create', model: PERSON, data: { name: 'made', company: { id: changed.id } } },
      )
      expect(data).toEqual([
        { id: seen.id, version: 0 },
        removed.id,
        await read(COMPANY, changed.id),
        await read(PERSON, idAt(data, 3)),
      ])
      expect(data[3]).toMatchObject({ company: { id: changed.id, $version: 1, name: 'changed 1' } })
    })
    expect(inShort(changes)).toEqual([
      `${PERSON} ${removed.id} delete 1`,
      `${COMPANY} ${changed.id} update 1`,
      expect.stringMatching(/^rel\.Person [0-9]+ create 0$/),
    ])
    expect((await read(CIRCLE, seen.id)).version).toBe(0)
  })

  test('the version of a batched update may be in its data, as the record was read', async () => {
    const company = await make(COMPANY, { name: 'as read' })
    const [first] = await batch({ op: 'update', model: COMPANY, id: company.id, data: company })
    expect(first).toMatchObject({ version: 1 })
    const both = { id: company.id, version: 1, data: { id: company.id, version: 1, name: 'both' } }
    expect(await batch({ op: 'update', model: COMPANY, ...both })).toMatchObject([
      { version: 2, name: 'both' },
    ])
  })

  test('a batched delete without a version deletes the record at any version', async () => {
    const person = await make(PERSON, {})
    await change(PERSON, person.id, { version: 0, name: 'newer' })
    expect(await batch({ op: 'delete', model: PERSON, id: person.id })).toEqual([person.id])
  })

  test('later requests of a batch refer to created records by $ref, in references, lists and nested records', async () => {
    const data = await batch(
      { op: 'create', model: COMPANY, ref: 'a', data: { name: 'A' } },
      { op: 'create', model: CIRCLE, ref: 'c_1.x-Y', data: { name: 'C' } },
      { op: 'create', model: ADDRESS, ref: 'b', data: { city: 'B', company: { $ref: 'a' } } },
      { op: 'create', model: PERSON, ref: 'p', data: { name: 'P', company: { id: { $ref: 'a' } } } },
      {
        ...{ op: 'create', model: PERSON },
        data: {
          name: 'Q',
          boss: { name: 'between', boss: { $ref: 'p' }, circles: [{ $ref: 'c_1.x-Y' }] },
          circles: [{ name: 'D' }, { $ref: 'c_1.x-Y' }],
        },
      },
    )
    const [a, c, b, p, q] = data.map((_, index) => idAt(data, index))
    expect(idsOf(await read(COMPANY, a ?? 0), 'addresses')).toEqual([{ id: b }])
    // The answer includes the member that a later request adds to the list; the version stays 0.
    expect(data[0]).toEqual(await read(COMPANY, a ?? 0))
    expect(data[0]).toMatchObject({ version: 0 })
    expect(await read(PERSON, p ?? 0)).toMatchObject({ company: { id: a } })
    const last = await read(PERSON, q ?? 0)
    expect(idsOf(last, 'circles')).toContainEqual({ id: c })
    const between = await read(PERSON, (last['boss'] as WireRecord).id)
    expect(between).toMatchObject({ boss: { id: p }, circles: [{ id: c }] })
  })

  test('a batched update may refer to created records by $ref', async () => {
    const [company, person] = [await make(COMPANY, { name: 'there' }), await make(PERSON, {})]
    const changes = await changesOf(async () => {
      const data = await batch(
        { op: 'create', model: ADDRESS, ref: 'seat', data: { city: 'S' } },
        { op: 'create', model: CIRCLE, ref: 'circle', data: { name: 'C' } },
        { op: 'update', model: COMPANY, id: company.id, version: 0, data: { seat: { $ref: 'seat' } } },
        { op: 'update', model: PERSON, id: person.id, version: 0, data: { circles: [{ $ref: 'circle' }] } },
      )
      expect(data[2]).toMatchObject({ version: 1, seat: { id: idAt(data, 0), city: 'S' } })
      expect(data[3]).toMatchObject({ version: 1, circles: [{ id: idAt(data, 1), name: 'C' }] })
    })
    expect(changes.map(({ action, version }) => `${action} ${version}`)).toEqual([
      ...['create 0', 'create 0', 'update 1', 'update 1'],
    ])
  })

  test('a JSON value that looks like a $ref is stored unchanged', async () => {
    const [made] = await batch({
      op: 'create',
      model: 'crm.Contact',
      ref: 'a',
      data: { phones: { $ref: 'a' } },
    })
    expect(made).toMatchObject({ phones: { $ref: 'a' } })
  })

  test("several requests that change one owned list increment the owner's version once", async () => {
    const company = await make(COMPANY, { name: 'owner', addresses: [{ city: 'old' }] })
    const [old] = idsOf(company, 'addresses')
    const changes = await changesOf(async () => {
      const data = await batch(
        { op: 'update', model: COMPANY, id: company.id, version: 0, data: { name: 'owner 1' } },
        { op: 'create', model: ADDRESS, data: { city: 'new', company: { id: company.id } } },
        { op: 'delete', model: ADDRESS, id: old?.id },
      )
      expect(data[0]).toMatchObject({ version: 1, addresses: [{ id: idAt(data, 1), city: 'new' }] })
      expect(data[0]).toEqual(await read(COMPANY, company.id))
    })
    const own = changes.filter(({ model }) => model === COMPANY)
    expect(own).toMatchObject([{ version: 1, changes: { name: {}, addresses: {} } }])
  })

  test('a batch that updates an owner and deletes a member answers with the list without that member', async () => {
    const address = await make(ADDRESS, { city: 'A', doors: [{ code: `${engine} ${transport} 1` }] })
    const [out] = idsOf(address, 'doors')
    const data = await batch(
      { op: 'update', model: ADDRESS, id: address.id, version: 0, data: { street: 'S' } },
      { op: 'delete', model: 'rel.Door', id: out?.id },
    )
    expect(data[0]).toMatchObject({ version: 1, street: 'S', doors: [] })
  })

  test('a batch deletes a referenced record along with the record that refers to it, in either order', async () => {
    const make2 = async () => {
      const company = await make(COMPANY, { name: 'needed' })
      return [company, await make(PERSON, { company: { id: company.id } })] as const
    }
    const [[a, p], [b, q]] = [await make2(), await make2()]
    const gone = await batch(
      { op: 'delete', model: COMPANY, id: a.id },
      { op: 'delete', model: PERSON, id: p.id },
      { op: 'update', model: PERSON, id: q.id, version: 0, data: { company: null } },
      { op: 'delete', model: COMPANY, id: b.id, version: 0 },
    )
    expect([gone[0], gone[1], gone[3]]).toEqual([a.id, p.id, b.id])
  })

  test('a batch that only asserts writes nothing', async () => {
    const circle = await make(CIRCLE, { name: 'C' })
    const changes = await changesOf(async () => {
      const assert = { op: 'assert', model: CIRCLE, id: circle.id, version: 0 }
      expect(await batch(assert)).toEqual([{ id: circle.id, version: 0 }])
    })
    expect(changes).toEqual([])
  })

  test('a batch repeated under its idempotency key returns the first answer and writes nothing', async () => {
    const company = await make(COMPANY, { name: 'once' })
    const gone = await make(PERSON, {})
    const contact = {
      op: 'create',
      model: 'crm.Contact',
      data: { firstName: 'F', pin: '1', password: 'pw 1' },
    }
    const sent = [
      { op: 'update', model: COMPANY, id: company.id, version: 0, data: { name: 'once 1' } },
      { op: 'create', model: PERSON, ref: 'p', data: { name: 'made once' } },
      { op: 'create', model: PERSON, data: { boss: { $ref: 'p' } } },
      { op: 'delete', model: PERSON, id: gone.id },
      contact,
    ]
    const options = { idempotencyKey: `batch ${transport}` }
    const first = await records().batch(sent, options)
    expect(first.replayed).toBe(false)
    const changes = await changesOf(async () => {
      expect(await records().batch(sent, options)).toEqual({ data: first.data, replayed: true })
    })
    expect(changes).toEqual([])
    const others = [
      sent.slice(0, 4),
      [sent[3], ...sent.slice(1, 3), sent[0], contact],
      sent.with(3, { ...sent[3], version: 0 } as never),
      sent.with(1, { ...sent[1], data: { name: 'made twice' } } as never),
      sent.with(4, { ...contact, data: { ...contact.data, pin: '2' } }),
      sent.with(4, { ...contact, data: { ...contact.data, password: 'pw 2' } }),
    ]
    for (const other of others) {
      expect((await catchError(records().batch(other, options))).kind).toBe('key-reused')
    }
    // A rejected batch leaves its idempotency key free.
    const again = { idempotencyKey: `batch again ${transport}` }
    const stale = { op: 'delete', model: COMPANY, id: company.id, version: 0 }
    expect((await catchError(records().batch([stale], again))).kind).toBe('conflict')
    expect((await records().batch([{ ...stale, version: 1 }], again)).data).toEqual([company.id])
  })
})

function idAt(answers: readonly (WireRecord | number)[], index: number): number {
  const answer = answers[index]
  return typeof answer === 'object' ? answer.id : (answer ?? 0)
}
