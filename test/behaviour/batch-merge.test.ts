// Batches whose updates may be merged with concurrent changes of others.
import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { forgettingChanges } from '../mutants/merge.js'
import {
  enter,
  preparedLocation,
  onEveryEngine,
  onEveryTarget,
  startService,
  type Engine,
} from '../targets.js'
import { inShort, useRelatedService } from './related-service.js'

const [CONTACT, COMPANY, PERSON, ROLE] = ['crm.Contact', 'rel.Company', 'rel.Person', 'verso.auth.Role']
const MERGE = { merge: 'fields' } as const

onEveryTarget((engine, transport) => {
  const { records, make, change, read, changesOf, expectRolledBack } = useRelatedService(engine, transport)
  const merged = async (...requests: readonly object[]) => (await records().batch(requests, MERGE)).data
  const rejectedBatch = async (...requests: readonly object[]) => {
    const { kind, details } = await expectRolledBack(() => records().batch(requests, MERGE))
    return { kind, data: details.data }
  }
  const update = (model: string, id: number, data: object, version = 0) => ({
    ...{ op: 'update', model, id, version, data },
  })
  /** Creates a record and updates it once, so it is at version 1. */
  const changed = async (model: string, before: object, after: object) => {
    const { id } = await make(model, before)
    await change(model, id, { version: 0, ...after })
    return id
  }

  test('a merging batch writes fields nobody else changed, along with up-to-date updates and creates', async () => {
    const id = await changed(CONTACT, { firstName: 'A', lastName: 'B' }, { firstName: 'A2' })
    const company = await changed(COMPANY, { name: 'C' }, { name: 'C2' })
    const current = await make(PERSON, {})
    const changes = await changesOf(async () => {
      const data = await merged(
        update(CONTACT, id, { lastName: 'B2' }),
        { op: 'create', model: 'rel.Address', ref: 'a', data: { city: 'S' } },
        update(PERSON, current.id, { name: 'now' }),
        { op: 'update', model: COMPANY, id: company, data: { version: 0, seat: { $ref: 'a' } } },
      )
      expect(data).toMatchObject([
        { version: 2, fullName: 'A2 B2' },
        { version: 0 },
        { version: 1, name: 'now' },
        { version: 2, name: 'C2', seat: { city: 'S' } },
      ])
      expect(data[3]).toEqual(await read(COMPANY, company))
    })
    expect(inShort(changes)[0]).toBe(`${CONTACT} ${id} update 2`)
    expect(Object.keys(changes[0]?.changes ?? {})).toContain('lastName')
    expect(changes[0]?.changes).not.toHaveProperty('firstName')
  })

  test('one clashing field rejects the whole merging batch, and the conflict has the index of its request', async () => {
    const [fine, clash] = [
      await changed(CONTACT, { firstName: 'A' }, { firstName: 'A2' }),
      await changed(CONTACT, { firstName: 'A' }, { firstName: 'theirs' }),
    ]
    const first = update(CONTACT, fine, { lastName: 'B' })
    expect(await rejectedBatch(first, update(CONTACT, clash, { firstName: 'ours' }))).toMatchObject({
      kind: 'conflict',
      data: { index: 1, expected: 0, current: 1, fields: { firstName: { verdict: 'clash' } } },
    })
    expect(await merged(first)).toMatchObject([{ version: 2 }])
  })

  test('a delete or an assert with an outdated version is a conflict even in a merging batch', async () => {
    const id = await changed(PERSON, {}, { name: 'newer' })
    for (const op of ['delete', 'assert'])
      expect(await rejectedBatch({ op, model: PERSON, id, version: 0 })).toMatchObject({
        ...{ kind: 'conflict', data: { index: 0 } },
      })
  })

  test('a merging batch does not merge nested records or roles: an outdated version is a conflict', async () => {
    const company = await changed(COMPANY, { name: 'C' }, { founded: '2001-01-01' })
    const inside = { company: { id: company, version: 0, name: 'inside' } }
    expect(await rejectedBatch({ op: 'create', model: PERSON, data: inside })).toMatchObject({
      ...{ kind: 'conflict', data: { index: 0, entityName: COMPANY } },
    })
    const role = await changed(ROLE, { name: `Role ${transport}` }, { name: `Role 1 ${transport}` })
    expect(await rejectedBatch(update(ROLE, role, { permissions: [] }))).toMatchObject({
      ...{ kind: 'conflict', data: { index: 0, entityName: ROLE } },
    })
  })

  test('an update of a record created in the merging batch must name its current version', async () => {
    const change = (version: number, data: object) => ({
      ...{ op: 'update', model: PERSON, id: { $ref: 'a' }, version, data },
    })
    const made = { op: 'create', model: PERSON, ref: 'a', data: {} }
    expect(await merged(made, change(0, { name: '1' }), change(1, { rate: '2' }))).toMatchObject([
      ...[{ version: 0 }, { version: 1 }, { version: 2, name: '1', rate: '2.00' }],
    ])
    expect(await rejectedBatch(made, change(0, { name: '1' }), change(0, { rate: '2' }))).toMatchObject({
      ...{ kind: 'conflict', data: { index: 2 } },
    })
  })

  test('a batch merges only on request, and the merge option is part of the idempotency key', async () => {
    const id = await changed(CONTACT, {}, { firstName: 'A' })
    const requests = [update(CONTACT, id, { lastName: 'B' })]
    const strict = await expectRolledBack(() => records().batch(requests))
    expect(strict).toMatchObject({ kind: 'conflict', details: { data: { mergeable: true } } })
    const key = { idempotencyKey: `merge ${engine} ${transport}` }
    const first = await records().batch(requests, { ...key, ...MERGE })
    expect(await records().batch(requests, { ...key, ...MERGE })).toEqual({
      ...{ data: first.data, replayed: true },
    })
    expect((await expectRolledBack(() => records().batch(requests, key))).kind).toBe('key-reused')
  })

  test('concurrent merging batches that change different fields of the same records all succeed', async () => {
    const fields = ['firstName', 'lastName', 'email', 'notes']
    const [one, two] = [await make(CONTACT, {}), await make(CONTACT, {})]
    const all = fields.map((name, index) => {
      const requests = [one, two].map(({ id }) => update(CONTACT, id, { [name]: name }))
      return merged(...(index % 2 === 0 ? requests : requests.reverse()))
    })
    await Promise.all(all)
    for (const { id } of [one, two])
      expect(await read(CONTACT, id)).toMatchObject({
        version: fields.length,
        ...Object.fromEntries(fields.map((name) => [name, name])),
      })
  })
})

describe('concurrent edits in a merging batch', () => {
  onEveryEngine((engine) => {
    test('a merging batch keeps the edits of others, and a mutant that forgets changes is caught', async () => {
      expect(await survivesMerge(engine)).toBe(true)
      expect(await survivesMerge(engine, forgettingChanges)).toBe(false)
    })
  })
})

async function survivesMerge(
  engine: Engine,
  mutant: (db: Database) => Database = (db) => db,
): Promise<boolean> {
  const location = await preparedLocation(engine)
  const database = mutant(await openDatabase(location.url, { poolSize: 4, statementTimeoutMs: 10_000 }))
  const service = await startService(engine, { location, database })
  try {
    const records = await enter(service, 'direct')
    const { id } = (await records.create(CONTACT, { firstName: 'base' })).data
    await records.update(CONTACT, id, { version: 0, firstName: 'theirs' })
    const clash = { op: 'update', model: CONTACT, id, version: 0, data: { firstName: 'ours' } }
    await Promise.allSettled([records.batch([clash], MERGE)])
    return (await records.read(CONTACT, id))['firstName'] === 'theirs'
  } finally {
    await service.close()
    location.remove()
  }
}
