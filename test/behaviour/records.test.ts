import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const CONTACT = 'crm.Contact'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine)
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  describe('create and read', () => {
    test('a new record has an id, version 0, its computed fields, createdOn and createdBy', async () => {
      const { data } = await records.create(CONTACT, {
        firstName: 'Ada',
        lastName: 'Lovelace',
        email: 'ada@example.org',
      })
      expect(data).toEqual({
        id: expect.any(Number),
        version: 0,
        firstName: 'Ada',
        lastName: 'Lovelace',
        fullName: 'Ada Lovelace',
        email: 'ada@example.org',
        notes: null,
        phones: null,
        createdOn: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        createdBy: { id: 1, $version: 0, name: 'Ada' },
        updatedOn: null,
        updatedBy: null,
      })
    })

    test('the answer to a write equals a read', async () => {
      const { data: created } = await records.create(CONTACT, {
        firstName: 'Grace',
        phones: [{ b: 1, a: [null, 'x'] }],
      })
      expect(await records.read(CONTACT, created.id)).toEqual(created)
      const { data: updated } = await records.update(CONTACT, created.id, { version: 0, lastName: 'Hopper' })
      expect(await records.read(CONTACT, created.id)).toEqual(updated)
    })

    test('a contact without values is created, and its computed full name is null', async () => {
      const { data } = await records.create(CONTACT, {})
      expect(data).toMatchObject({ version: 0, firstName: null, fullName: null, email: null })
    })

    test('a record as read can be sent back', async () => {
      const { data: created } = await records.create(CONTACT, { firstName: 'Mary', lastName: 'Shelley' })
      const { data: updated } = await records.update(CONTACT, created.id, created)
      expect(updated).toMatchObject({ version: 1, fullName: 'Mary Shelley', createdOn: created['createdOn'] })
    })

    test('a create with an id or a version is rejected as bad-request', async () => {
      for (const data of [{ id: 5 }, { version: 0 }, { id: 5, version: 0 }]) {
        expect(await catchError(records.create(CONTACT, data))).toMatchObject({ kind: 'bad-request' })
      }
      expect((await records.create(CONTACT, { id: null, version: null })).data.version).toBe(0)
    })

    test('a secret is accepted and never returned', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'S', pin: '1234', password: 'open sesame' })
      expect(Object.keys(data)).not.toContain('pin')
      expect(Object.keys(data)).not.toContain('password')
      const updated = await records.update(CONTACT, data.id, { version: 0, pin: '9999' })
      expect(JSON.stringify(updated)).not.toContain('9999')
    })
  })

  describe('update', () => {
    test('an update increments the version by one and changes only the fields sent', async () => {
      const { data: before } = await records.create(CONTACT, { firstName: 'Alan', email: 'alan@example.org' })
      const { data: after } = await records.update(CONTACT, before.id, {
        id: before.id,
        version: 0,
        lastName: 'Turing',
      })
      expect(after).toEqual({
        ...before,
        version: 1,
        lastName: 'Turing',
        fullName: 'Alan Turing',
        updatedOn: expect.any(String),
        updatedBy: { id: 1, $version: 0, name: 'Ada' },
      })
    })

    test('an undefined value counts as absent in an update and in a create', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan', email: 'alan@example.org' })
      const { data: after } = await records.update(CONTACT, data.id, { version: 0, email: undefined })
      expect(after['email']).toBe('alan@example.org')
      expect((await records.create('test.Limited', { code: 'UN', country: undefined })).data['country']).toBe(
        'FR',
      )
    })

    test('a null in an update clears the field', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan', email: 'alan@example.org' })
      const { data: after } = await records.update(CONTACT, data.id, {
        version: 0,
        email: null,
        firstName: null,
      })
      expect(after).toMatchObject({ email: null, firstName: null, fullName: null })
    })

    test('an update that changes nothing succeeds and increments the version', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan' })
      expect((await records.update(CONTACT, data.id, { version: 0 })).data.version).toBe(1)
      expect((await records.update(CONTACT, data.id, { version: 1, firstName: 'Alan' })).data.version).toBe(2)
    })

    test('an update without a version, or with an invalid one, is rejected as bad-request', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan' })
      for (const version of [undefined, null, -1, 1.5, '0', true, [], 2 ** 53]) {
        const error = await catchError(records.update(CONTACT, data.id, { version, lastName: 'Turing' }))
        expect(error.kind, `version ${JSON.stringify(version)}`).toBe('bad-request')
      }
      expect(await records.read(CONTACT, data.id)).toEqual(data)
    })

    test('an update with another id than its path is rejected as bad-request', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan' })
      for (const id of [data.id + 1, String(data.id), 0]) {
        expect(await catchError(records.update(CONTACT, data.id, { id, version: 0 }))).toMatchObject({
          kind: 'bad-request',
        })
      }
    })

    test('If-Match replaces the version of an update; two different versions are rejected as bad-request', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'Alan' })
      const first = await records.update(CONTACT, data.id, { lastName: 'A' }, { ifMatch: 0 })
      expect(first.data.version).toBe(1)
      const both = await records.update(CONTACT, data.id, { version: 1, lastName: 'B' }, { ifMatch: 1 })
      expect(both.data.version).toBe(2)
      const differing = records.update(CONTACT, data.id, { version: 2, lastName: 'C' }, { ifMatch: 1 })
      expect(await catchError(differing)).toMatchObject({ kind: 'bad-request' })
      const stale = records.update(CONTACT, data.id, { lastName: 'C' }, { ifMatch: 1 })
      expect(await catchError(stale)).toMatchObject({
        kind: 'stale-match',
        details: { data: { expected: 1, current: 2 } },
      })
    })
  })

  describe('delete', () => {
    test('a delete answers with the id, and the record is not-found afterwards', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'A' })
      expect((await records.remove(CONTACT, data.id)).data).toBe(data.id)
      expect(await catchError(records.read(CONTACT, data.id))).toMatchObject({ kind: 'not-found' })
      expect(await catchError(records.update(CONTACT, data.id, { version: 0 }))).toMatchObject({
        kind: 'not-found',
      })
      expect(await catchError(records.remove(CONTACT, data.id))).toMatchObject({ kind: 'not-found' })
    })

    test('a delete with an outdated version is a conflict, or stale-match with If-Match', async () => {
      const { data } = await records.create(CONTACT, { firstName: 'A' })
      await records.update(CONTACT, data.id, { version: 0, firstName: 'B' })
      expect(await catchError(records.remove(CONTACT, data.id, { version: 0 }))).toMatchObject({
        kind: 'conflict',
        details: { data: { expected: 0, current: 1 } },
      })
      expect(await catchError(records.remove(CONTACT, data.id, { ifMatch: 0 }))).toMatchObject({
        kind: 'stale-match',
      })
      expect((await records.remove(CONTACT, data.id, { version: 1 })).data).toBe(data.id)
    })

    test('the id of a deleted record is not used again', async () => {
      const { data: first } = await records.create(CONTACT, { firstName: 'A' })
      await records.remove(CONTACT, first.id)
      const { data: second } = await records.create(CONTACT, { firstName: 'B' })
      expect(second.id).toBeGreaterThan(first.id)
    })
  })

  test('a missing record is not-found, and a missing model unknown-model', async () => {
    expect(await catchError(records.find('crm.Nothing'))).toMatchObject({ kind: 'unknown-model' })
    expect(await catchError(records.find('verso.auth.Users'))).toMatchObject({ kind: 'unknown-model' })
    expect(await catchError(records.create('__proto__', {}))).toMatchObject({ kind: 'unknown-model' })
    expect(await catchError(records.read(CONTACT, 999_999_999))).toMatchObject({ kind: 'not-found' })
    expect(await catchError(records.update(CONTACT, 999_999_999, { version: 0 }))).toMatchObject({
      kind: 'not-found',
    })
  })
})
