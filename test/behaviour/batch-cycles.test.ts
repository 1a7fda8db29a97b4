// A batch may change records that it creates itself; records that refer to each other need this.
import { expect, test } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { onEveryTarget } from '../targets.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

const [COMPANY, ADDRESS, PERSON, DOOR] = ['rel.Company', 'rel.Address', 'rel.Person', 'rel.Door']
const A = { $ref: 'a' }
const B = { $ref: 'b' }
const person = (ref: string, data: object = {}) => ({ op: 'create', model: PERSON, ref, data })
const company = (ref: string, data: object = {}) => ({
  ...{ op: 'create', model: COMPANY, ref },
  data: { name: ref, ...data },
})
const update = (model: string, id: unknown, version: number, data: object) => ({
  ...{ op: 'update', model, id, version, data },
})

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport)
  const batch = async (...requests: readonly object[]) => (await records().batch(requests)).data
  const rejectedBatch = async (...requests: readonly object[]) => {
    const { kind, message, details } = await expectRolledBack(() => records().batch(requests))
    return { kind, message, index: details.data?.['index'], data: details.data, errors: details.errors }
  }

  test('a batch creates two records that refer to each other, and each answer has the version of its request', async () => {
    const changes = await changesOf(async () => {
      const data = await batch(
        person('a', { name: 'A' }),
        person('b', { name: 'B', boss: A }),
        update(PERSON, A, 0, { boss: B }),
      )
      const [a, b] = [idAt(data, 0), idAt(data, 1)]
      expect(data).toMatchObject([
        { id: a, version: 0, boss: null, updatedOn: null },
        { id: b, version: 0, boss: { id: a, $version: 1, name: 'A' } },
        { id: a, version: 1, boss: { id: b, $version: 0, name: 'B' } },
      ])
      expect(data.slice(1)).toEqual([await read(PERSON, b), await read(PERSON, a)])
    })
    const [a, b] = [changes[0]?.id, changes[1]?.id]
    expect(inShort(changes)).toEqual([
      `${PERSON} ${a} create 0`,
      `${PERSON} ${b} create 0`,
      `${PERSON} ${a} update 1`,
    ])
    expect(changes[2]?.changes['boss']).toEqual({ before: null, after: { id: b } })
    expect(changes[0]?.changes).not.toHaveProperty('boss')
  })

  test('a batch may update and delete a record that it created, with a version and a Change for each request', async () => {
    const changes = await changesOf(async () => {
      const data = await batch(
        person('a', { name: '0' }),
        update(PERSON, A, 0, { name: '1' }),
        { op: 'update', model: PERSON, id: A, data: { id: A, version: 1, name: '2' } },
        { op: 'assert', model: PERSON, id: A, version: 2 },
        { op: 'create', model: COMPANY, data: { name: 'between' } },
      )
      expect(data).toMatchObject([
        ...[0, 1, 2].map((version) => ({ version, name: String(version) })),
        { id: idAt(data, 0), version: 2 },
        {},
      ])
      expect(Object.keys(data[3] ?? {})).toEqual(['id', 'version'])
      const gone = await batch(person('b'), update(PERSON, B, 0, { name: '1' }), {
        ...{ op: 'delete', model: PERSON, id: B, version: 1 },
      })
      expect(gone).toMatchObject([{ version: 0 }, { version: 1 }, idAt(gone, 0)])
    })
    expect(changes.map(({ action, version }) => `${action} ${version}`)).toEqual([
      ...['create 0', 'update 1', 'update 2', 'create 0'],
      ...['create 0', 'update 1', 'delete 2'],
    ])
  })

  test('a batch that deletes a record it created deletes its owned records and still answers each request', async () => {
    const changes = await changesOf(async () => {
      const doors = [{ code: `circle ${engine} ${transport}` }]
      const data = await batch(
        company('a', { addresses: [{ city: 'inside', doors }] }),
        { op: 'create', model: ADDRESS, ref: 'b', data: { city: 'B', company: A } },
        update(ADDRESS, B, 0, { street: 'S' }),
        { op: 'delete', model: COMPANY, id: A },
      )
      expect(data).toMatchObject([
        { version: 0, addresses: [{ city: 'inside' }, { city: 'B' }] },
        { version: 0, street: null },
        { version: 1, street: 'S' },
        idAt(data, 0),
      ])
    })
    const told = (model: string) =>
      changes.filter((each) => each.model === model).map(({ action, version }) => `${action} ${version}`)
    expect(told(COMPANY)).toEqual(['create 0', 'delete 1'])
    expect(told(ADDRESS).sort()).toEqual(['create 0', 'create 0', 'delete 1', 'delete 2', 'update 1'])
    expect(told(DOOR)).toEqual(['create 0', 'delete 1'])
  })

  test('a list sent again in a batch replaces the members that were created with the owner', async () => {
    const data = await batch(
      company('a', { addresses: [{ city: 'dropped' }] }),
      { op: 'create', model: ADDRESS, ref: 'b', data: { city: 'kept', company: A } },
      update(COMPANY, A, 0, { addresses: [B, { city: 'new' }], seat: B }),
    )
    expect(data[0]).toMatchObject({ version: 0, addresses: [{ city: 'dropped' }, { city: 'kept' }] })
    const after = await read(COMPANY, idAt(data, 0))
    expect(data[2]).toEqual(after)
    expect(after).toMatchObject({
      ...{ version: 1, seat: { city: 'kept' } },
      addresses: [{ id: idAt(data, 1), city: 'kept' }, { city: 'new' }],
    })
  })

  test('a member created in a batch belongs to the version of its owner at that request', async () => {
    const joins = (city: string) => ({ op: 'create', model: ADDRESS, data: { city, company: A } })
    const changes = await changesOf(async () => {
      const data = await batch(
        ...[company('a'), joins('0'), update(COMPANY, A, 0, { name: '1' })],
        ...[joins('1'), update(COMPANY, A, 1, { name: '2' }), joins('2')],
      )
      const cities = [0, 2, 4].map((index) => citiesOf(data[index]))
      expect(cities).toEqual([['0'], ['0', '1'], ['0', '1', '2']])
      expect(data[4]).toEqual(await read(COMPANY, idAt(data, 0)))
    })
    const own = changes.filter(({ model }) => model === COMPANY)
    expect(own.map(({ version }) => version)).toEqual([0, 1, 2])
  })

  test('a batch increments the version of an existing owner once, with other requests in between', async () => {
    const owner = await make(COMPANY, { name: 'owner' })
    const joins = { op: 'create', model: ADDRESS, data: { city: 'C', company: { id: owner.id } } }
    const changes = await changesOf(() =>
      batch(
        ...[joins, person('a'), update(PERSON, A, 0, {}), update(COMPANY, owner.id, 0, { name: 'x' })],
        ...[update(PERSON, A, 1, {}), joins, update(PERSON, A, 2, {})],
      ),
    )
    const own = changes.filter(({ model }) => model === COMPANY)
    expect(own).toMatchObject([{ id: owner.id, version: 1 }])
    expect(idsOf(await read(COMPANY, owner.id), 'addresses')).toHaveLength(2)
  })

  test('an outdated version of a record created in the batch is a conflict, and nothing is written', async () => {
    const first = [person('a'), update(PERSON, A, 0, { name: '1' })]
    const wrong = [
      update(PERSON, A, 0, { name: 'x' }),
      update(PERSON, A, 2, { name: 'x' }),
      { op: 'delete', model: PERSON, id: A, version: 0 },
      { op: 'assert', model: PERSON, id: A, version: 0 },
    ]
    for (const request of wrong)
      expect(await rejectedBatch(...first, request)).toMatchObject({
        ...{ kind: 'conflict', index: 2 },
        data: { entityName: PERSON, expected: request.version, current: 1 },
      })
    expect(await rejectedBatch(person('a'), { op: 'update', model: PERSON, id: A, data: {} })).toMatchObject({
      ...{ kind: 'bad-request', index: 1 },
      errors: { 'requests[1].version': 'is required: the version that the update is based on' },
    })
  })

  test('a record asserted in a batch may not be updated by a later request of that batch', async () => {
    const assert = { op: 'assert', model: COMPANY, id: A, version: 0 }
    const joins = { op: 'create', model: ADDRESS, data: { city: 'C', company: A } }
    expect(await batch(company('a'), assert, joins)).toHaveLength(3)
    const error = await rejectedBatch(company('a'), assert, update(COMPANY, A, 0, {}))
    expect(error).toMatchObject({ kind: 'bad-request', index: 1 })
    expect(error.message).toContain('is both asserted and changed in this batch')
  })

  test('a failing last request rolls back the whole batch of records that refer to each other', async () => {
    const code = `C${engine}${transport}`.slice(0, 16)
    await make(COMPANY, { name: 'first', code })
    const circle = [company('a'), company('b', { parent: A }), update(COMPANY, A, 0, { parent: B })]
    expect(await rejectedBatch(...circle, update(COMPANY, B, 0, { code }))).toMatchObject({
      ...{ kind: 'not-unique', index: 3 },
      errors: { 'requests[3].code': expect.any(String) },
    })
    expect(await rejectedBatch(...circle, { op: 'delete', model: COMPANY, id: A })).toMatchObject({
      ...{ kind: 'still-referenced', index: 3 },
    })
    const stale = await make(COMPANY, { name: 'base' })
    await change(COMPANY, stale.id, { version: 0, name: 'theirs' })
    expect(await rejectedBatch(...circle, update(COMPANY, stale.id, 0, { parent: A }))).toMatchObject({
      ...{ kind: 'conflict', index: 3 },
      data: { fields: { parent: { ours: A, theirs: null } } },
    })
  })

  test('a $ref as id must name a record of the same model that an earlier request created and none deleted', async () => {
    const remove = { op: 'delete', model: PERSON, id: A }
    const cases: readonly (readonly [says: string, requests: readonly object[]])[] = [
      [
        'refers to "a", which is not the ref of an earlier request',
        [{ op: 'assert', model: PERSON, id: A, version: 0 }],
      ],
      ['refers to "a", which is not the ref of an earlier request', [remove, person('a')]],
      ['refers to "a", but requests[0] creates a record of another model', [company('a'), remove]],
      ['refers to "a", which requests[1] deletes', [person('a'), remove, remove]],
      ['refers to "a", which requests[1] deletes', [person('a'), remove, update(PERSON, A, 0, {})]],
      [
        'must be a whole number from 1, or a reference such as',
        [person('a'), { ...remove, id: { ...A, id: 1 } }],
      ],
    ]
    for (const [says, requests] of cases) {
      const { kind, errors = {}, index } = await rejectedBatch(...requests)
      const [path] = Object.keys(errors)
      expect([kind, path]).toEqual(['bad-request', `requests[${String(index)}].id`])
      expect(errors[path ?? '']).toContain(says)
    }
    const other = update(PERSON, A, 0, { id: B })
    expect((await rejectedBatch(person('a'), person('b'), other)).errors).toEqual({
      'requests[2].data.id': 'must be the id of the request, {"$ref":"a"}',
    })
    expect(await rejectedBatch(person('a'), remove, person('b', { boss: A }))).toMatchObject({
      ...{ kind: 'invalid', index: 2 },
      errors: { 'requests[2].boss': expect.stringContaining('which does not exist') },
    })
  })

  test('a record created in a batch cannot be changed through the list of another record', async () => {
    const adopts = update(COMPANY, A, 0, { addresses: [B] })
    const address = { op: 'create', model: ADDRESS, ref: 'b', data: { city: 'B' } }
    const error = await rejectedBatch(company('a'), address, adopts)
    expect(error).toMatchObject({ kind: 'invalid', index: 2 })
    expect(error.message).toContain('which this request already creates')
  })

  test('a batch cannot update a role that it created, but can delete it', async () => {
    const role = { op: 'create', model: 'verso.auth.Role', ref: 'a', data: { name: `R ${transport}` } }
    expect(await rejectedBatch(role, update('verso.auth.Role', A, 0, { name: 'S' }))).toMatchObject({
      ...{ kind: 'bad-request', index: 1 },
    })
    expect(await batch(role, { op: 'delete', model: 'verso.auth.Role', id: A })).toHaveLength(2)
  })

  test('a repeated batch returns its stored answer, and a changed $ref is rejected as key-reused', async () => {
    const requests = [person('a'), person('b'), update(PERSON, A, 0, { boss: B })]
    const key = { idempotencyKey: `circle ${transport}` }
    const first = await records().batch(requests, key)
    expect(await records().batch(requests, key)).toEqual({ data: first.data, replayed: true })
    const other = requests.with(2, update(PERSON, B, 0, { boss: B }))
    const error = await expectRolledBack(() => records().batch(other, key))
    expect(error.kind).toBe('key-reused')
  })
})

function idAt(answers: readonly (WireRecord | number)[], index: number): number {
  const answer = answers[index]
  return typeof answer === 'object' ? answer.id : (answer ?? 0)
}

function citiesOf(answer: WireRecord | number | undefined): readonly unknown[] {
  const { addresses } = answer as WireRecord
  return (addresses as readonly WireRecord[]).map(({ city }) => city)
}
