// Saves of several records, mass updates, copies and verification: exact responses.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  envelope,
  expectError,
  json,
  JSON_BODY,
  OK,
  only,
  openSession,
  send,
  type Answer,
} from './exchange.js'

const CONTACTS = '/ws/rest/crm.Contact'
const JSON_TYPE = 'application/json; charset=utf-8'

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let keys = 0
  beforeAll(async () => {
    service = await startService(engine)
    cookie = await openSession(service.url)
  })
  afterAll(() => service.close())

  const post = (path: string, body: unknown, headers: object = {}, method = 'POST'): Promise<Answer> =>
    send(service.url, {
      method,
      path,
      headers: { cookie, ...JSON_BODY, ...headers },
      body: JSON.stringify(body),
    })
  const get = (path: string) => asUser(service.url, cookie).get(path)
  const make = async (data: object) => only(await post(CONTACTS, { data }, {}, 'PUT'))
  const newKey = () => ({ 'idempotency-key': `many-${++keys}` })
  const replayed = (answer: Answer) => answer.headers['idempotency-replayed']
  const expectPlain = (answer: Answer) => {
    expect([answer.status, answer.headers['content-type']], answer.text).toEqual([200, JSON_TYPE])
    expect(answer.headers.etag).toBeUndefined()
  }

  test('a save of several records answers them in order', async () => {
    const there = await make({ firstName: 'There' })
    const records = [{ firstName: 'New' }, { id: there.id, version: 0, firstName: 'Changed' }]
    const answer = await post(CONTACTS, { records, fields: ['firstName'] })
    expectPlain(answer)
    const { data } = json(answer) as { data: { id: number }[] }
    expect(answer.text).toBe(
      `{"status":0,"data":[{"id":${data[0]?.id},"version":0,"firstName":"New"},{"id":${there.id},"version":1,"firstName":"Changed"}]}`,
    )
  })

  test('PUT creates several records', async () => {
    const answer = await post(
      CONTACTS,
      { records: [{ firstName: 'A' }, { firstName: 'B', id: null }] },
      {},
      'PUT',
    )
    expectPlain(answer)
    expect(json(answer)).toMatchObject({
      status: 0,
      data: [{ firstName: 'A', version: 0 }, { firstName: 'B' }],
    })
  })

  test('a save of one record answers like a create or an update, with its ETag', async () => {
    const made = await post(CONTACTS, { data: { firstName: 'One' } })
    const record = only(made)
    expect(made.headers.etag).toMatch(/^"0\./)
    const changed = await post(CONTACTS, { data: { ...record, firstName: 'Two' } })
    expect(only(changed)).toMatchObject({ id: record.id, version: 1, firstName: 'Two' })
    expect(changed.headers.etag).toBe((await get(`${CONTACTS}/${record.id}`)).headers.etag)
    const byTag = await post(CONTACTS, { data: { id: record.id, firstName: 'Three' } }, { 'if-match': '"1"' })
    expect(only(byTag)['version']).toBe(2)
    const stale = await post(CONTACTS, { data: { id: record.id, firstName: 'X' } }, { 'if-match': '"1"' })
    expectError(stale, 412, 'stale-match')
    const part = await post(`${CONTACTS}/${record.id}`, { data: { version: 2 }, fields: ['email'] })
    expect(part.text).toBe(`{"status":0,"data":[{"id":${record.id},"version":3,"email":null}]}`)
  })

  test('a repeated write of several records answers the same text, whatever happened to the records', async () => {
    const [a, b] = [await make({ firstName: 'Replay' }), await make({ firstName: 'Replay' })]
    const data = { criteria: [{ fieldName: 'firstName', operator: '=', value: 'Replay' }] }
    const writes = [
      [
        '',
        {
          records: [
            { id: a.id, version: 0, notes: 'x' },
            { id: b.id, version: 0 },
          ],
        },
      ],
      ['/updateMass', { data, records: [{ firstName: 'Replayed' }], expected: 2 }],
      ['/removeAll', { records: [{ id: b.id, version: 2 }, { id: a.id }] }],
    ] as const
    for (const [path, body] of writes) {
      const key = newKey()
      const first = await post(CONTACTS + path, body, key)
      const second = await post(CONTACTS + path, body, key)
      expect([first.status, replayed(first)], first.text).toEqual([200, undefined])
      expect([second.status, second.text, replayed(second)]).toEqual([200, first.text, 'true'])
      const other = { ...body, records: body.records.slice(0, 1), expected: 1 }
      expectError(await post(CONTACTS + path, other, key), 422, 'key-reused')
    }
  })

  test('updateMass answers the number of changed records', async () => {
    await make({ firstName: 'Mass', email: 'old@x.org' })
    await make({ firstName: 'Mass', email: 'new@x.org' })
    const answer = await post(`${CONTACTS}/updateMass`, {
      data: { _domain: 'self.firstName = :name', _domainContext: { name: 'Mass' } },
      records: [{ email: 'new@x.org' }],
    })
    expectPlain(answer)
    expect(answer.text).toBe('{"status":0,"total":1,"data":[]}')
    const unexpected = await post(`${CONTACTS}/updateMass`, {
      ...{ data: { _domain: "firstName = 'Mass'" }, records: [{ email: null }], expected: 3 },
    })
    expectError(unexpected, 409, 'conflict')
    expect(envelope(unexpected).data).toMatchObject({
      ...{ message: '2 records match, not 3; nothing was changed', expected: 3, current: 2 },
    })
  })

  test('removeAll answers the ids with their last versions', async () => {
    const [a, b] = [await make({}), await make({})]
    const answer = await post(`${CONTACTS}/removeAll`, { records: [{ id: b.id }, { id: a.id, version: 0 }] })
    expectPlain(answer)
    expect(answer.text).toBe(`{"status":0,"data":[{"id":${b.id},"version":0},{"id":${a.id},"version":0}]}`)
  })

  test('a delete answers an object with Prefer: return=representation', async () => {
    const remove = async (prefer: string) => {
      const { id } = await make({})
      const answer = await send(service.url, {
        ...{
          method: 'DELETE',
          path: `${CONTACTS}/${id}`,
          headers: { cookie, ...(prefer === '' ? {} : { prefer }) },
        },
      })
      return [answer.text.replace(String(id), 'ID'), answer.headers['preference-applied']]
    }
    const object = ['{"status":0,"data":[{"id":ID}]}', 'return=representation']
    expect(await remove('return=representation')).toEqual(object)
    expect(await remove('respond-async, return=representation')).toEqual(object)
    for (const other of ['', 'return=minimal'])
      expect(await remove(other)).toEqual(['{"status":0,"data":[ID]}', undefined])
  })

  test('copy, details and verify answer their exact text', async () => {
    const record = await make({ firstName: 'Ada', lastName: 'L', email: 'a@x.org', pin: '1' })
    const copied = await get(`${CONTACTS}/${record.id}/copy`)
    expect(copied.text).toBe(
      '{"status":0,"data":[{"firstName":"Ada","lastName":"L","email":"a@x.org","notes":null,"phones":null}]}',
    )
    const details = await get(`${CONTACTS}/${record.id}/details`)
    expect(details.text).toBe(`{"status":0,"data":[{"id":${record.id},"version":0,"fullName":"Ada L"}]}`)
    const email = await get(`${CONTACTS}/${record.id}/details?name=email`)
    expect(email.text).toBe(`{"status":0,"data":[{"id":${record.id},"version":0,"email":"a@x.org"}]}`)
    expect((await post(`${CONTACTS}/verify`, { data: record })).text).toBe(OK)
    await post(`${CONTACTS}/${record.id}`, { data: { version: 0 } })
    expectError(await post(`${CONTACTS}/verify`, { data: record }), 409, 'conflict')
    const { id } = only(await post('/ws/rest/test.Everything', { data: {} }))
    expect(only(await get(`/ws/rest/test.Everything/${id}/details`))).toEqual({ id, version: 0 })
  })

  test('several domains of a search are combined by its operator', async () => {
    for (const lastName of ['D1', 'D2', 'D3']) await make({ firstName: 'Domain', lastName })
    const search = async (data: object) =>
      (json(await post(`${CONTACTS}/search`, { data })) as { total: number }).total
    const named = (lastName: string) => ({ domain: 'self.lastName = :last', context: { last: lastName } })
    const of = { domain: "firstName = 'Domain'", context: null }
    expect(await search({ _domains: [of, named('D1')] })).toBe(1)
    expect(await search({ operator: 'or', _domains: [named('D1'), named('D2')] })).toBe(2)
    expect(
      await search({ operator: 'or', _domains: [named('D1'), named('D2')], _domain: "lastName = 'D2'" }),
    ).toBe(1)
    expect(await search({ _domains: [named('D1'), named('D2')] })).toBe(0)
  })
})
