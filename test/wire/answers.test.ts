// Every successful response and every common error of the record operations, as exact text.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, expectError, json, only, openSession, send, type User } from './exchange.js'

const CONTACT = 'crm.Contact'
const CONTACTS = '/ws/rest/crm.Contact'
const JSON_TYPE = 'application/json; charset=utf-8'
const ETAG = /^"(\d+)\.[A-Za-z0-9_-]{16}"$/

onEveryEngine((engine) => {
  let service: Service
  let user: User

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
  })
  afterAll(() => service.close())

  describe('create, read, update, delete', () => {
    test('a create answers the whole record, its keys in the order of the model', async () => {
      const answer = await user.create(CONTACT, {
        firstName: 'Ada',
        lastName: 'Lovelace',
        email: 'ada@example.org',
      })
      const { id, createdOn } = only(answer)
      expect(createdOn).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(answer.text).toBe(
        `{"status":0,"data":[{"id":${id},"version":0,"firstName":"Ada","lastName":"Lovelace",` +
          `"fullName":"Ada Lovelace","email":"ada@example.org","notes":null,"phones":null,` +
          `"createdOn":"${String(createdOn)}","createdBy":{"id":1,"$version":0,"name":"Ada"},"updatedOn":null,"updatedBy":null}]}`,
      )
      expect(answer.headers).toMatchObject({
        'content-type': JSON_TYPE,
        'content-length': String(Buffer.byteLength(answer.text)),
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, no-cache',
        etag: expect.stringMatching(/^"0\./),
      })
    })

    test('a read answers the same text and ETag as the write before it', async () => {
      const created = await user.create(CONTACT, { firstName: 'Grace', phones: [{ b: 1, a: 2 }] })
      const { id } = only(created)
      const read = await user.get(`${CONTACTS}/${id}`)
      expect([read.status, read.text, read.headers.etag]).toEqual([200, created.text, created.headers.etag])
      const updated = await user.ask('POST', `${CONTACTS}/${id}`, { id, version: 0, lastName: 'Hopper' })
      const again = await user.get(`${CONTACTS}/${id}`)
      expect([again.status, again.text, again.headers.etag]).toEqual([
        200,
        updated.text,
        updated.headers.etag,
      ])
    })

    test('an update answers the record with the next version and the changes', async () => {
      const { id, createdOn } = only(await user.create(CONTACT, { firstName: 'Alan' }))
      const answer = await user.ask('POST', `${CONTACTS}/${id}`, { id, version: 0, lastName: 'Turing' })
      const { updatedOn } = only(answer)
      expect(answer.text).toBe(
        `{"status":0,"data":[{"id":${id},"version":1,"firstName":"Alan","lastName":"Turing",` +
          `"fullName":"Alan Turing","email":null,"notes":null,"phones":null,` +
          `"createdOn":"${String(createdOn)}","createdBy":{"id":1,"$version":0,"name":"Ada"},` +
          `"updatedOn":"${String(updatedOn)}","updatedBy":{"id":1,"$version":0,"name":"Ada"}}]}`,
      )
      expect(answer.headers.etag).toMatch(/^"1\./)
    })

    test('a delete answers the id of the record', async () => {
      const { id } = only(await user.create(CONTACT, {}))
      const answer = await user.ask('DELETE', `${CONTACTS}/${id}`)
      expect([answer.status, answer.headers['content-type'], answer.text]).toEqual([
        200,
        JSON_TYPE,
        `{"status":0,"data":[${id}]}`,
      ])
      expectError(await user.get(`${CONTACTS}/${id}`), 404, 'not-found')
    })

    test('a delete takes its version from the query (409) or If-Match (412), and rejects a mismatch with 400', async () => {
      const { id } = only(await user.create(CONTACT, {}))
      await user.ask('POST', `${CONTACTS}/${id}`, { version: 0 })
      expectError(await user.ask('DELETE', `${CONTACTS}/${id}?version=0`), 409, 'conflict')
      expectError(
        await user.ask('DELETE', `${CONTACTS}/${id}`, undefined, { 'if-match': '"0"' }),
        412,
        'stale-match',
      )
      expectError(
        await user.ask('DELETE', `${CONTACTS}/${id}?version=1`, undefined, { 'if-match': '"0"' }),
        400,
        'bad-request',
      )
      expect(
        (await user.ask('DELETE', `${CONTACTS}/${id}?version=1`, undefined, { 'if-match': '"1"' })).status,
      ).toBe(200)
    })
  })

  describe('ETags', () => {
    test('the ETag of a record begins with its version and changes with the body', async () => {
      const first = await user.create(CONTACT, { firstName: 'A' })
      const second = await user.create(CONTACT, { firstName: 'B' })
      expect(ETAG.exec(first.headers.etag ?? '')?.[1]).toBe('0')
      expect(first.headers.etag).not.toBe(second.headers.etag)
    })

    test('If-None-Match compares the whole ETag: 304 without a body, or the record', async () => {
      const created = await user.create(CONTACT, { firstName: 'A' })
      const etag = created.headers.etag ?? ''
      const path = `${CONTACTS}/${only(created).id}`
      for (const header of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const answer = await user.get(path, { 'if-none-match': header })
        expect([header, answer.status, answer.text, answer.headers.etag]).toEqual([header, 304, '', etag])
      }
      for (const header of ['"0"', '"0.AAAAAAAAAAAAAAAA"', etag.slice(1, -1), '']) {
        const answer = await user.get(path, { 'if-none-match': header })
        expect([header, answer.status, answer.text]).toEqual([header, 200, created.text])
      }
    })

    test('If-Match compares only the version in the ETag', async () => {
      const created = await user.create(CONTACT, { firstName: 'A' })
      const path = `${CONTACTS}/${only(created).id}`
      const tags = [created.headers.etag ?? '', '"1"', '"2.whatever"', 'W/"3"', ' "4" ']
      for (const [version, tag] of tags.entries()) {
        const answer = await user.ask('POST', path, { firstName: `A${version}` }, { 'if-match': tag })
        expect([tag, only(answer)['version']]).toEqual([tag, version + 1])
      }
      const stale = await user.ask('POST', path, { firstName: 'B' }, { 'if-match': '"4"' })
      expectError(stale, 412, 'stale-match')
      expect(json(stale)).toMatchObject({ data: { expected: 4, current: 5, entityName: CONTACT } })
    })
  })

  describe('errors', () => {
    test('a conflict is 409 with both versions, the fields and their verdicts', async () => {
      const created = only(await user.create(CONTACT, { firstName: 'A' }))
      const theirs = only(await user.ask('POST', `${CONTACTS}/${created.id}`, { version: 0, firstName: 'B' }))
      const answer = await user.ask('POST', `${CONTACTS}/${created.id}`, { version: 0, firstName: 'C' })
      expect(answer.status).toBe(409)
      expect(json(answer)).toEqual({
        status: -1,
        data: {
          kind: 'conflict',
          title: 'Not the current version',
          message: `crm.Contact ${created.id} is at version 1, not 0: read it again and retry; nothing was changed`,
          requestId: answer.headers['x-request-id'],
          entityName: CONTACT,
          entityId: created.id,
          expected: 0,
          current: 1,
          baseKnown: true,
          mergeable: false,
          fields: { firstName: { base: 'A', ours: 'C', theirs: 'B', verdict: 'clash' } },
          changedBy: { id: 1, $version: 0, name: 'Ada' },
          changedOn: theirs['updatedOn'],
          theirs,
        },
      })
    })

    test('an error answers status and data with kind, title, message and requestId', async () => {
      const answer = await user.get(`${CONTACTS}/0`)
      const requestId = String(answer.headers['x-request-id'])
      expect([answer.status, answer.headers['content-type']]).toEqual([404, JSON_TYPE])
      expect(answer.text).toBe(
        `{"status":-1,"data":{"kind":"not-found","title":"Not found",` +
          `"message":"This crm.Contact does not exist: ids are whole numbers from 1","requestId":"${requestId}"}}`,
      )
    })

    test('field errors are 422 with status -4, one entry for each field', async () => {
      const answer = await user.create('test.Limited', { code: 'x', number: 11, colour: 'red' })
      const requestId = String(answer.headers['x-request-id'])
      expect(answer.status).toBe(422)
      expect(answer.text).toBe(
        `{"status":-4,"errors":{"code":"must have at least 2 characters","number":"must be at most 10",` +
          `"colour":"is not a field of test.Limited"},"data":{"kind":"invalid","title":"Invalid values",` +
          `"message":"test.Limited was not written: code must have at least 2 characters; number must be at most 10; ` +
          `colour is not a field of test.Limited","requestId":"${requestId}"}}`,
      )
    })

    test('a duplicate value is 409 and names its field or its unique set', async () => {
      expect((await user.create('test.Limited', { code: 'AB', number: 1 })).status).toBe(200)
      const field = await user.create('test.Limited', { code: 'AB' })
      expectError(field, 409, 'not-unique')
      expect(json(field)).toMatchObject({
        status: -1,
        errors: { code: 'is already used by another record' },
        data: {
          message: 'Another test.Limited has the same code; nothing was changed',
          entityName: 'test.Limited',
          fields: ['code'],
        },
      })
      const set = await user.create('test.Limited', { code: 'CD', number: 1 })
      expectError(set, 409, 'not-unique')
      expect(json(set)).toMatchObject({ data: { fields: ['country', 'number'] } })
    })

    test('Accept: application/problem+json answers an error as problem+json with the HTTP status', async () => {
      const answer = await user.get('/ws/rest/crm.Nothing', {
        accept: 'application/problem+json, application/json',
      })
      const requestId = String(answer.headers['x-request-id'])
      expect([answer.status, answer.headers['content-type']]).toEqual([404, 'application/problem+json'])
      expect(answer.text).toBe(
        `{"type":"urn:verso:unknown-model","title":"No such model","status":404,` +
          `"detail":"There is no model \\"crm.Nothing\\"","instance":"urn:verso:request:${requestId}","kind":"unknown-model"}`,
      )
      const faults = await user.create('test.Limited', {}, { accept: 'application/problem+json' })
      expect(json(faults)).toMatchObject({ status: 422, kind: 'invalid', errors: { code: 'is required' } })
    })

    test('without a session every path below /ws is 401, existing or not', async () => {
      for (const path of [
        CONTACTS,
        `${CONTACTS}/1`,
        '/ws/rest/crm.Nothing',
        '/ws/rest',
        '/ws',
        '/ws/nothing/at/all',
      ]) {
        const answer = await send(service.url, { path })
        expectError(answer, 401, 'unauthenticated')
        expect(answer.headers['www-authenticate']).toBe('Session realm="verso", Bearer realm="verso"')
      }
      expectError(await user.get('/ws/nothing'), 404, 'not-found')
      expectError(await send(service.url, { path: '/nothing' }), 404, 'not-found')
    })
  })
})
