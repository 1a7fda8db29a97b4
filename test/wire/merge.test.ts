// `Prefer: merge=fields` and PATCH on the wire: headers, content types, statuses.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  envelope,
  expectError,
  json,
  JSON_BODY,
  only,
  openSession,
  PATCH_BODY,
  rawRequest,
  send,
  sendRaw,
  withServer,
  type Answer,
  type User,
} from './exchange.js'

const CONTACT = 'crm.Contact'
const CONTACTS = `/ws/rest/${CONTACT}`
const MERGE = { prefer: 'merge=fields' }

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let user: User

  beforeAll(async () => {
    service = await startService(engine)
    cookie = await openSession(service.url)
    user = asUser(service.url, cookie)
  })
  afterAll(() => service.close())

  /** A record whose first name has changed since version 0. */
  const stale = async (): Promise<string> => {
    const { id } = only(await user.create(CONTACT, { firstName: 'A', phones: { a: 1 } }))
    only(await user.ask('POST', `${CONTACTS}/${id}`, { version: 0, firstName: 'A2' }))
    return `${CONTACTS}/${id}`
  }
  const patch = (path: string, body: unknown, headers: Record<string, string> = {}, url = service.url) =>
    send(url, {
      method: 'PATCH',
      path,
      headers: { cookie, ...PATCH_BODY, ...headers },
      body: JSON.stringify(body),
    })

  describe('Prefer: merge=fields', () => {
    const asked = [
      'merge=fields',
      'Merge=Fields',
      'merge="fields"',
      ' merge = fields ',
      'merge=fields; why=because',
      'respond-async, merge=fields, wait=10',
      'x="a, merge=no", merge=fields',
      'merge=fields, merge=none',
    ]
    test.for(asked)('Prefer: %j merges, and is confirmed in Preference-Applied', async (prefer) => {
      const path = await stale()
      const answer = await user.ask('POST', path, { version: 0, lastName: 'B' }, { prefer })
      expect(only(answer)).toMatchObject({ version: 2, firstName: 'A2', lastName: 'B' })
      expect(answer.headers['preference-applied']).toBe('merge=fields')
      expect(answer.headers.etag).toMatch(/^"2\./)
    })

    const notAsked = [
      'merge',
      'merge=',
      'merge=all',
      'merges=fields',
      'x="merge=fields"',
      'merge=none, merge=fields',
      '"',
      ',;=',
    ]
    test.for(notAsked)('Prefer: %j does not merge: an outdated update is a conflict', async (prefer) => {
      const answer = await user.ask('POST', await stale(), { version: 0, lastName: 'B' }, { prefer })
      expectError(answer, 409, 'conflict')
      expect(answer.headers['preference-applied']).toBeUndefined()
    })

    test('several Prefer headers count as one', async () => {
      const path = await stale()
      const body = JSON.stringify({ data: { version: 0, lastName: 'B' } })
      const lines = `content-length: ${body.length}\r\nprefer: respond-async\r\nprefer: merge=fields`
      const head = rawRequest(`POST ${path} HTTP/1.1`, { ...JSON_BODY, cookie }).replace(
        '\r\n\r\n',
        `\r\n${lines}\r\n\r\n`,
      )
      const answer = await sendRaw(service.url, head + body)
      expect([answer.status, answer.headers['preference-applied']]).toEqual([200, 'merge=fields'])
    })

    test('Preference-Applied is not sent if there was nothing to merge', async () => {
      const answer = await user.ask('POST', await stale(), { version: 1, lastName: 'B' }, MERGE)
      expect(only(answer).version).toBe(2)
      expect(answer.headers['preference-applied']).toBeUndefined()
    })

    test('a clash in a merge is 409, and 412 if If-Match named the version', async () => {
      const path = await stale()
      expectError(await user.ask('POST', path, { version: 0, firstName: 'B' }, MERGE), 409, 'conflict')
      const headers = { ...MERGE, 'if-match': '"0"' }
      const answer = await user.ask('POST', path, { firstName: 'B' }, headers)
      expectError(answer, 412, 'stale-match')
      expect(envelope(answer).data).toMatchObject({ expected: 0, current: 1, mergeable: false })
      const merged = await user.ask('POST', path, { lastName: 'B' }, headers)
      expect([merged.status, merged.headers['preference-applied']]).toEqual([200, 'merge=fields'])
    })

    test('merge=fields applies to a save of one record and of several', async () => {
      const path = await stale()
      const id = Number(path.split('/').at(-1))
      const one = await user.ask('POST', CONTACTS, { id, version: 0, lastName: 'B' }, MERGE)
      expect([only(one).version, one.headers['preference-applied']]).toEqual([2, 'merge=fields'])
      const several = (records: object[]) =>
        send(service.url, {
          ...{ method: 'POST', path: CONTACTS, headers: { cookie, ...JSON_BODY, ...MERGE } },
          body: JSON.stringify({ records }),
        })
      const merged = await several([{ firstName: 'new' }, { id, version: 0, notes: 'n' }])
      expect([merged.status, merged.headers['preference-applied']]).toEqual([200, 'merge=fields'])
      expect(json(merged)).toMatchObject({
        data: [{ version: 0 }, { version: 3, lastName: 'B', notes: 'n' }],
      })
      const current = await several([{ id, version: 3, notes: 'n2' }])
      expect([current.status, current.headers['preference-applied']]).toEqual([200, undefined])
    })

    test('a repeated merge answers the same text and Preference-Applied', async () => {
      const path = await stale()
      const headers = { ...MERGE, 'idempotency-key': `wire${path}` }
      const ask = () => user.ask('POST', path, { version: 0, lastName: 'B' }, headers)
      const [first, second] = [await ask(), await ask()]
      expect(second.text).toBe(first.text)
      expect(second.headers).toMatchObject({
        'idempotency-replayed': 'true',
        'preference-applied': 'merge=fields',
      })
      const strict = { 'idempotency-key': headers['idempotency-key'] }
      expectError(await user.ask('POST', path, { version: 0, lastName: 'B' }, strict), 422, 'key-reused')
    })
  })

  describe('PATCH', () => {
    test('PATCH takes the bare fields and answers like an update', async () => {
      const path = await stale()
      const answer = await patch(path, { lastName: 'B', phones: { b: 2 } }, { 'if-match': '"1"' })
      expect(only(answer)).toMatchObject({
        version: 2,
        firstName: 'A2',
        lastName: 'B',
        phones: { a: 1, b: 2 },
      })
      expect(answer.headers.etag).toMatch(/^"2\./)
      expect(await user.get(path)).toMatchObject({ status: 200, text: answer.text })
    })

    test('PATCH takes its version from If-Match or from the fields, and rejects a missing one with 400', async () => {
      const path = await stale()
      const { etag = '' } = (await user.get(path)).headers
      expect(only(await patch(path, { lastName: 'B' }, { 'if-match': etag })).version).toBe(2)
      expect(only(await patch(path, { version: 2, lastName: 'C' })).version).toBe(3)
      expectError(await patch(path, { version: 2, lastName: 'C' }), 409, 'conflict')
      expectError(await patch(path, { version: 2, lastName: 'C' }, { 'if-match': '"3"' }), 400, 'bad-request')
      const forgotten = await patch(path, { lastName: 'C' })
      expectError(forgotten, 400, 'bad-request')
      expect(forgotten.text).toContain('as If-Match: \\"3\\" or as')
      expectError(await patch(path, { lastName: 'C' }, { 'if-match': '*' }), 400, 'bad-request')
    })

    test('an outdated PATCH is 412, unless it can be merged', async () => {
      const path = await stale()
      const named = { 'if-match': '"0"' }
      expectError(await patch(path, { lastName: 'B' }, named), 412, 'stale-match')
      const merged = await patch(path, { lastName: 'B' }, { ...named, ...MERGE })
      expect(only(merged)).toMatchObject({ version: 2, firstName: 'A2', lastName: 'B' })
      expect(merged.headers['preference-applied']).toBe('merge=fields')
      expectError(await patch(path, { firstName: 'B' }, { ...named, ...MERGE }), 412, 'stale-match')
    })

    test('PATCH can change fields that are named like parts of the envelope', async () => {
      const { id } = only(await user.create('test.Order', { count: 'a', offset: 1 }))
      const answer = await patch(
        `/ws/rest/test.Order/${id}`,
        { offset: 2, select: 'x' },
        { 'if-match': '"0"' },
      )
      expect(only(answer)).toMatchObject({ count: 'a', offset: 2, select: 'x' })
    })

    test('PATCH rejects bodies that are not objects, unknown fields and missing records', async () => {
      const path = await stale()
      const named = { 'if-match': '"1"' }
      for (const body of [[], null, 'x', 1]) expectError(await patch(path, body, named), 400, 'bad-request')
      expectError(await patch(path, { id: 999_999, firstName: 'B' }, named), 400, 'bad-request')
      const unknown = await patch(path, { firstNam: 'B', email: 5 }, named)
      expectError(unknown, 422, 'invalid')
      expect(Object.keys(envelope(unknown).errors ?? {})).toEqual(['firstNam', 'email'])
      expectError(await patch(`${CONTACTS}/999999999`, {}, named), 404, 'not-found')
      expectError(await patch('/ws/rest/crm.Nothing/1', {}, named), 404, 'unknown-model')
    })

    test.for([
      'application/json',
      'application/json-patch+json',
      'application/x-www-form-urlencoded',
      'text/plain',
    ])('PATCH as %s is 415 with Accept-Patch', async (type) => {
      const answer = await patch(
        await stale(),
        { lastName: 'B' },
        { 'if-match': '"1"', 'content-type': type },
      )
      expectError(answer, 415, 'media-type')
      expect(answer.headers['accept-patch']).toBe('application/merge-patch+json')
      expect(answer.text).toContain('Send the body of a PATCH as application/merge-patch+json')
    })

    test('PATCH in another character set is 415 with Accept-Patch', async () => {
      const type = { 'content-type': 'application/merge-patch+json; charset=latin1' }
      const answer = await patch(await stale(), { lastName: 'B' }, { 'if-match': '"1"', ...type })
      expectError(answer, 415, 'media-type')
      expect(answer.headers['accept-patch']).toBe('application/merge-patch+json')
    })

    test.for(['Application/Merge-Patch+JSON', 'application/merge-patch+json; charset=utf-8'])(
      'PATCH is accepted as %s',
      async (type) => {
        const answer = await patch(
          await stale(),
          { lastName: 'B' },
          { 'if-match': '"1"', 'content-type': type },
        )
        expect(only(answer).version).toBe(2)
      },
    )

    test('the content type of PATCH is rejected for POST and PUT', async () => {
      const path = await stale()
      const as = (method: string, path: string): Promise<Answer> =>
        send(service.url, {
          method,
          path,
          headers: { cookie, ...PATCH_BODY },
          body: '{"data":{"version":1}}',
        })
      for (const answer of [await as('POST', path), await as('PUT', CONTACTS), await as('POST', CONTACTS)]) {
        expectError(answer, 415, 'media-type')
        expect(answer.headers['accept-patch']).toBeUndefined()
      }
      expectError(await as('PATCH', CONTACTS), 405, 'method')
    })

    test('OPTIONS of a record lists PATCH and Accept-Patch', async () => {
      const { headers } = await user.ask('OPTIONS', `${CONTACTS}/1`)
      expect(headers).toMatchObject({
        allow: 'GET, POST, PATCH, DELETE, HEAD, OPTIONS',
        'accept-patch': 'application/merge-patch+json',
      })
      expect((await user.ask('OPTIONS', CONTACTS)).headers['accept-patch']).toBeUndefined()
    })

    test('a repeated PATCH answers the same text; the same key for an update is rejected', async () => {
      const path = await stale()
      const headers = { 'if-match': '"1"', 'idempotency-key': `patch${path}` }
      const [first, second] = [
        await patch(path, { lastName: 'B' }, headers),
        await patch(path, { lastName: 'B' }, headers),
      ]
      expect([second.text, second.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
      expectError(await user.ask('POST', path, { lastName: 'B' }, headers), 422, 'key-reused')
    })

    test('with --compat, PATCH and merge=fields work with the values and errors of existing clients', async () => {
      const path = await stale()
      await withServer(service, { compat: 'axelor' }, async (url) => {
        const named = { 'if-match': '"0"' }
        const rejected = await patch(path, { lastName: 'B' }, named, url)
        expect([rejected.status, envelope(rejected)]).toMatchObject([
          200,
          { status: -1, data: { kind: 'stale-match' } },
        ])
        const merged = await patch(path, { lastName: 'B', unknown: 1 }, { ...named, ...MERGE }, url)
        expect(only(merged)).toMatchObject({ version: 2, firstName: 'A2', lastName: 'B' })
        expect(merged.headers['preference-applied']).toBe('merge=fields')
        const id = Number(path.split('/').at(-1))
        const put = await send(url, {
          ...{ method: 'PUT', path: CONTACTS, headers: { cookie, ...JSON_BODY, ...MERGE } },
          body: JSON.stringify({ data: { id, version: 1, notes: 'n' } }),
        })
        expect([only(put).version, put.headers['preference-applied']]).toEqual([3, 'merge=fields'])
        expectError(await patch(path, {}, { ...named, ...JSON_BODY }, url), 415, 'media-type')
      })
    })
  })
})
