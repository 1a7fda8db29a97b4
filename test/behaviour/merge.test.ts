import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Records } from '../../src/wire.js'
import { models } from '../models.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const CONTACT = 'crm.Contact'
const COMPANY = 'rel.Company'
const ADDRESS = 'rel.Address'
const PERSON = 'rel.Person'
const PLACE = 'test.Place'
const MERGE = { merge: 'fields' } as const

const Place = defineModel({
  name: PLACE,
  fields: {
    street: { type: 'string' },
    zip: { type: 'string' },
    city: { type: 'string' },
    note: { type: 'string' },
  },
  mergeGroups: [['street', 'zip', 'city']],
})

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, {
      models: [...models, { file: 'test/behaviour/merge.test.ts', definition: Place }],
    })
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  /** Creates a record and updates it once, so it is at version 1. */
  const changed = async (model: string, before: object, change: object): Promise<number> => {
    const { data } = await records.create(model, before)
    await records.update(model, data.id, { version: 0, ...change })
    return data.id
  }

  describe('merges on request', () => {
    test('a merge writes the fields that nobody else changed on top of newer versions', async () => {
      const id = await changed(CONTACT, { firstName: 'A', lastName: 'B' }, { firstName: 'A2', notes: 'n' })
      const { data } = await records.update(CONTACT, id, { version: 0, lastName: 'B2' }, MERGE)
      expect(data).toMatchObject({ version: 2, firstName: 'A2', lastName: 'B2', notes: 'n' })
      // Computed from the fields of both.
      expect(data['fullName']).toBe('A2 B2')
      expect(await records.read(CONTACT, id)).toEqual(data)
    })

    test('a merge accepts a version 30 updates old as well as the current one', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'A' })
      for (let version = 0; version < 30; version++)
        await records.update(CONTACT, data.id, { version, email: `e${version}` })
      const old = await records.update(CONTACT, data.id, { version: 0, firstName: 'B' }, MERGE)
      expect(old.data).toMatchObject({ version: 31, firstName: 'B', email: 'e29' })
      const current = await records.update(CONTACT, data.id, { version: 31, email: 'new' }, MERGE)
      expect(current.data).toMatchObject({ version: 32, firstName: 'B', email: 'new' })
    })

    test('an outdated update is not merged unless the request asks for it', async () => {
      const id = await changed(CONTACT, {}, { firstName: 'A' })
      const error = await catchError(records.update(CONTACT, id, { version: 0, lastName: 'B' }))
      expect(error).toMatchObject({ kind: 'conflict', details: { data: { mergeable: true } } })
    })

    test('a field that both sides changed differently is a conflict, and nothing is written', async () => {
      const id = await changed(CONTACT, { firstName: 'A' }, { firstName: 'theirs' })
      const before = await records.read(CONTACT, id)
      const data = { version: 0, firstName: 'ours', lastName: 'B' }
      const error = await catchError(records.update(CONTACT, id, data, MERGE))
      expect(error).toMatchObject({
        kind: 'conflict',
        details: { data: { expected: 0, current: 1, mergeable: false } },
      })
      expect(error.details.data?.['fields']).toMatchObject({
        firstName: { base: 'A', ours: 'ours', theirs: 'theirs', verdict: 'clash' },
        lastName: { verdict: 'ours' },
      })
      expect(await records.read(CONTACT, id)).toEqual(before)
    })

    test('a field that both sides changed to the same value is no conflict', async () => {
      const id = await changed(CONTACT, { phones: { a: 1, b: 2 } }, { phones: { b: 3, a: 4 }, notes: 'n' })
      const data = { version: 0, phones: { a: 4, b: 3 }, lastName: 'B' }
      expect((await records.update(CONTACT, id, data, MERGE)).data).toMatchObject({
        version: 2,
        lastName: 'B',
        notes: 'n',
        phones: { a: 4, b: 3 },
      })
    })

    test('a field sent unchanged that others changed is a conflict, not silently dropped', async () => {
      const id = await changed(CONTACT, { firstName: 'A' }, { firstName: 'A2' })
      const data = { version: 0, firstName: 'A', lastName: 'B' }
      const error = await catchError(records.update(CONTACT, id, data, MERGE))
      expect(error.details.data?.['fields']).toMatchObject({ firstName: { verdict: 'theirs' } })
    })

    test('a field changed and changed back by others is no conflict', async () => {
      const id = await changed(CONTACT, { firstName: 'A' }, { firstName: 'A2' })
      await records.update(CONTACT, id, { version: 1, firstName: 'A' })
      const { data } = await records.update(CONTACT, id, { version: 0, firstName: 'B' }, MERGE)
      expect(data).toMatchObject({ version: 3, firstName: 'B' })
    })

    test('a merge from a future version, or from one without a change log, is a conflict without a base', async () => {
      const id = await changed(CONTACT, {}, { firstName: 'A' })
      expect(await catchError(records.update(CONTACT, id, { version: 7, notes: 'n' }, MERGE))).toMatchObject({
        kind: 'conflict',
        details: { data: { baseKnown: false } },
      })
      await service.app.db.transaction((tx) =>
        tx.run('delete from verso_log where model = ? and record = ?', [CONTACT, id]),
      )
      expect(await catchError(records.update(CONTACT, id, { version: 0, notes: 'n' }, MERGE))).toMatchObject({
        kind: 'conflict',
        details: { data: { baseKnown: false } },
      })
    })

    test('a secret is never merged: an outdated update of one is a conflict', async () => {
      const id = await changed(CONTACT, {}, { firstName: 'A' })
      expect((await catchError(records.update(CONTACT, id, { version: 0, pin: '1' }, MERGE))).kind).toBe(
        'conflict',
      )
    })

    test('a merge accepts the version in If-Match, and a clash is rejected as stale-match', async () => {
      const id = await changed(CONTACT, {}, { firstName: 'A' })
      const merged = await records.update(CONTACT, id, { lastName: 'B' }, { ...MERGE, ifMatch: 0 })
      expect(merged.data).toMatchObject({ version: 2, firstName: 'A', lastName: 'B' })
      const error = await catchError(
        records.update(CONTACT, id, { firstName: 'C' }, { ...MERGE, ifMatch: 0 }),
      )
      expect(error.kind).toBe('stale-match')
    })

    test('a merging save of several records merges all of them or writes none', async () => {
      const one = await changed(CONTACT, {}, { firstName: 'A' })
      const two = await changed(CONTACT, {}, { firstName: 'A' })
      const merged = await records.save(
        CONTACT,
        [
          { firstName: 'new' },
          { id: one, version: 0, lastName: 'B' },
          { id: two, version: 1, lastName: 'B' },
        ],
        MERGE,
      )
      expect(merged.data).toMatchObject([
        { version: 0, firstName: 'new' },
        { version: 2, firstName: 'A', lastName: 'B' },
        { version: 2, firstName: 'A', lastName: 'B' },
      ])
      const again = [
        { id: one, version: 0, notes: 'n' },
        { id: two, version: 0, firstName: 'other' },
      ]
      const error = await catchError(records.save(CONTACT, again, MERGE))
      expect(error).toMatchObject({ kind: 'conflict', details: { data: { entityId: two, current: 2 } } })
      expect(await records.read(CONTACT, one)).toMatchObject({ version: 2, notes: null })
    })

    test('a merged record that violates a unique constraint is rejected as not-unique', async () => {
      const code = `m${engine === 'sqlite' ? 's' : 'p'}${transport === 'http' ? 'h' : 'd'}`
      const id = await changed('test.Limited', { code, number: 1, country: 'XA' }, { country: 'XB' })
      await records.create('test.Limited', { code: `${code}2`, number: 2, country: 'XB' })
      const error = await catchError(records.update('test.Limited', id, { version: 0, number: 2 }, MERGE))
      expect(error.kind).toBe('not-unique')
      expect(await records.read('test.Limited', id)).toMatchObject({ version: 1, number: 1 })
    })

    test('the merge option is part of the idempotency key', async () => {
      const id = await changed(CONTACT, {}, { firstName: 'A' })
      const data = { version: 0, lastName: 'B' }
      const options = { ...MERGE, idempotencyKey: `merge-${id}` }
      const first = await records.update(CONTACT, id, data, options)
      expect(await records.update(CONTACT, id, data, options)).toEqual({ data: first.data, replayed: true })
      const strict = { idempotencyKey: `merge-${id}` }
      expect((await catchError(records.update(CONTACT, id, data, strict))).kind).toBe('key-reused')
    })

    test('a role is not merged: an outdated update of one is a conflict', async () => {
      const { data } = await records.create(ROLE_MODEL, { name: `merged ${transport}` })
      await records.update(ROLE_MODEL, data.id, { version: 0, name: `renamed ${transport}` })
      const error = await catchError(
        records.update(ROLE_MODEL, data.id, { version: 0, description: 'T' }, MERGE),
      )
      expect(error.kind).toBe('conflict')
    })
  })

  describe('merges of relations', () => {
    test('a reference is merged like any other field', async () => {
      const company = (await records.create(COMPANY, { name: 'C' })).data.id
      const id = await changed(PERSON, { name: 'P' }, { name: 'P2' })
      const merged = await records.update(PERSON, id, { version: 0, company: { id: company } }, MERGE)
      expect(merged.data).toMatchObject({ version: 2, name: 'P2', company: { id: company } })
      const data = { version: 1, company: null }
      expect((await catchError(records.update(PERSON, id, data, MERGE))).kind).toBe('conflict')
    })

    test('a list that others added to is a conflict if sent, and is kept if not sent', async () => {
      const { data } = await records.create(COMPANY, { name: 'C', addresses: [{ city: 'Oslo' }] })
      const [oslo] = data['addresses'] as { id: number }[]
      await records.create(ADDRESS, { city: 'Rome', company: { id: data.id } })
      const sent = { version: 0, addresses: [{ id: oslo?.id }] }
      expect((await catchError(records.update(COMPANY, data.id, sent, MERGE))).kind).toBe('conflict')
      const merged = await records.update(COMPANY, data.id, { version: 0, name: 'C2' }, MERGE)
      expect(merged.data).toMatchObject({ version: 2, name: 'C2' })
      expect(merged.data['addresses']).toHaveLength(2)
    })

    test('a list that nobody else changed is replaced on top of other changes', async () => {
      const { data } = await records.create(COMPANY, { name: 'C', addresses: [{ city: 'Oslo' }] })
      await records.update(COMPANY, data.id, { version: 0, name: 'C2' })
      const sent = { version: 0, addresses: [{ city: 'Rome' }] }
      const merged = await records.update(COMPANY, data.id, sent, MERGE)
      expect(merged.data).toMatchObject({ version: 2, name: 'C2', addresses: [{ city: 'Rome' }] })
    })

    test('a nested record is not merged: an outdated version of it is a conflict', async () => {
      const { data } = await records.create(COMPANY, { name: 'C', addresses: [{ city: 'Oslo' }] })
      const [oslo] = data['addresses'] as { id: number }[]
      await records.update(ADDRESS, oslo?.id ?? 0, { version: 0, street: 'Main' })
      const sent = { version: 0, addresses: [{ id: oslo?.id, version: 0, city: 'Bergen' }] }
      const error = await catchError(records.update(COMPANY, data.id, sent, MERGE))
      expect(error).toMatchObject({ kind: 'conflict', details: { data: { entityName: ADDRESS } } })
    })
  })

  describe('merge groups', () => {
    const at = { street: 'Main 1', zip: '1000', city: 'Oslo', note: 'n' }

    test('different fields of one merge group changed by two users are a conflict', async () => {
      const id = await changed(PLACE, at, { zip: '2000' })
      const error = await catchError(records.update(PLACE, id, { version: 0, street: 'Side 2' }, MERGE))
      expect(error.details.data).toMatchObject({
        mergeable: false,
        fields: { street: { verdict: 'clash' }, zip: { verdict: 'clash', ours: '1000' } },
      })
      const strict = await catchError(records.update(PLACE, id, { version: 0, street: 'Side 2' }))
      expect(strict.details.data).toEqual(error.details.data)
    })

    test('a merge group is merged with other fields, and if both sides wrote the same', async () => {
      const id = await changed(PLACE, at, { zip: '2000', city: 'Bergen' })
      const other = await records.update(PLACE, id, { version: 0, note: 'n2' }, MERGE)
      expect(other.data).toMatchObject({ version: 2, zip: '2000', note: 'n2' })
      const same = await records.update(PLACE, id, { version: 0, zip: '2000' }, MERGE)
      expect(same.data).toMatchObject({ version: 3, street: 'Main 1', zip: '2000', city: 'Bergen' })
    })
  })

  describe('patches', () => {
    test('a patch changes the named fields and clears those that are null', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'A', lastName: 'B', notes: 'n' })
      const patch = { firstName: 'A2', notes: null }
      const patched = await records.update(CONTACT, data.id, patch, { patch: true, ifMatch: 0 })
      expect(patched.data).toMatchObject({ version: 1, firstName: 'A2', lastName: 'B', notes: null })
    })

    test('a patch merges a JSON field member by member at every depth', async () => {
      const phones = { home: { no: 1, since: 2 }, work: [1, 2], old: 'x' }
      const { data } = await records.create(CONTACT, { phones })
      const patch = { phones: { home: { no: 5, kind: null }, work: [3], old: null, made: { a: null, b: 1 } } }
      const patched = await records.update(CONTACT, data.id, patch, { patch: true, ifMatch: 0 })
      const expected = { home: { no: 5, since: 2 }, work: [3], made: { b: 1 } }
      expect(patched.data['phones']).toEqual(expected)
      const replaced = await records.update(CONTACT, data.id, { version: 1, phones: { a: 1 } })
      expect(replaced.data['phones']).toEqual({ a: 1 })
      const list = await records.update(CONTACT, data.id, { phones: [1] }, { patch: true, ifMatch: 2 })
      expect(list.data['phones']).toEqual([1])
      const anew = await records.update(CONTACT, data.id, { phones: { b: 1 } }, { patch: true, ifMatch: 3 })
      expect(anew.data['phones']).toEqual({ b: 1 })
    })

    test('an outdated patch is a conflict with the value it would have made, and can be merged', async () => {
      const id = await changed(CONTACT, { phones: { a: 1, b: 2 } }, { notes: 'n' })
      const options = { patch: true, ifMatch: 0 }
      const error = await catchError(records.update(CONTACT, id, { phones: { a: null } }, options))
      expect(error.kind).toBe('stale-match')
      expect(error.details.data?.['fields']).toMatchObject({
        phones: { base: { a: 1, b: 2 }, ours: { b: 2 }, verdict: 'ours' },
      })
      const merged = await records.update(CONTACT, id, { phones: { a: null } }, { ...options, ...MERGE })
      expect(merged.data).toMatchObject({ version: 2, notes: 'n', phones: { b: 2 } })
    })

    test('a patch of a JSON value that others changed is a conflict, unless both have the same result', async () => {
      const id = await changed(CONTACT, { phones: { a: 1 } }, { phones: { a: 1, b: 2 } })
      const options = { patch: true, ifMatch: 0, ...MERGE }
      expect((await catchError(records.update(CONTACT, id, { phones: { c: 3 } }, options))).kind).toBe(
        'stale-match',
      )
      const same = await records.update(CONTACT, id, { phones: { b: 2 }, notes: 'n' }, options)
      expect(same.data).toMatchObject({ version: 2, phones: { a: 1, b: 2 }, notes: 'n' })
    })

    test('a patch that makes a JSON value too large is rejected as invalid', async () => {
      const half = 'x'.repeat(600_000)
      const { data } = await records.create(CONTACT, { phones: { a: half } })
      const options = { patch: true, ifMatch: 0 }
      const error = await catchError(records.update(CONTACT, data.id, { phones: { b: half } }, options))
      expect(error).toMatchObject({
        kind: 'invalid',
        details: { errors: { phones: expect.stringMatching(/at most/) as string } },
      })
    })
  })
})
