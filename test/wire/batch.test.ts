// Batches: exact responses, also in the compatibility mode of existing clients.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, envelope, json, JSON_BODY, only, openSession, send, type Answer } from './exchange.js'

const [CONTACT, PERSON] = ['crm.Contact', 'rel.Person']
const JSON_TYPE = 'application/json; charset=utf-8'

onEveryEngine((engine) => {
  let service: Service
  let axelorService: Service
  let cookies: readonly string[]
  beforeAll(async () => {
    service = await startService(engine)
    axelorService = await startService(engine, { http: { compat: 'axelor' } })
    cookies = [await openSession(service.url), await openSession(axelorService.url)]
  })
  afterAll(async () => {
    await service.close()
    await axelorService.close()
  })

  const ask = ({ url }: Service, path: string, body: unknown, headers: object = {}, method = 'POST') => {
    const cookie = cookies[url === service.url ? 0 : 1]
    const sent = { method, path, headers: { cookie, ...JSON_BODY, ...headers }, body: JSON.stringify(body) }
    return send(url, sent)
  }
  const batch = (to: Service, requests: readonly unknown[], headers: object = {}) =>
    ask(to, '/ws/batch', { requests }, headers)
  const make = async (to: Service, model: string, data: object) =>
    only(await ask(to, `/ws/rest/${model}`, { data }, {}, 'PUT'))
  const dataOf = (answer: Answer) => (json(answer) as { data: readonly Record<string, unknown>[] }).data

  test('a batch answers the results in the order of the requests', async () => {
    const [kept, gone] = [await make(service, CONTACT, {}), await make(service, CONTACT, {})]
    const answer = await batch(service, [
      { op: 'assert', model: CONTACT, id: kept.id, version: 0 },
      { op: 'delete', model: CONTACT, id: gone.id },
      { op: 'create', model: 'rel.Circle', data: { name: 'C' } },
    ])
    expect([answer.status, answer.headers['content-type']], answer.text).toEqual([200, JSON_TYPE])
    expect(answer.headers.etag).toBeUndefined()
    expect(answer.headers['idempotency-replayed']).toBeUndefined()
    const circle = JSON.stringify(dataOf(answer)[2])
    expect(answer.text).toBe(`{"status":0,"data":[{"id":${kept.id},"version":0},${gone.id},${circle}]}`)
  })

  test('a repeated batch answers the same text and says so', async () => {
    const requests = [{ op: 'create', model: CONTACT, data: { firstName: 'once', pin: 'secret 4711' } }]
    const key = { 'idempotency-key': 'batch' }
    const first = await batch(service, requests, key)
    const again = await batch(service, requests, key)
    expect([again.text, again.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
    expect(first.text).not.toContain('4711')
    const stored = await service.app.db.reader.all('select * from verso_idempotency')
    expect(JSON.stringify(stored)).not.toContain('4711')
    const other = await batch(service, [{ ...requests[0], data: { firstName: 'other' } }], key)
    expect(envelope(other)).toMatchObject({ status: -1, data: { kind: 'key-reused' } })
    expect(envelope(other).data).not.toHaveProperty('index')
  })

  test('a repeated batch that arrives while the first one runs waits for its response', async () => {
    const requests = [{ op: 'create', model: CONTACT, data: { firstName: 'at once' } }]
    const key = { 'idempotency-key': 'batch at once' }
    const answers = await Promise.all(Array.from({ length: 5 }, () => batch(service, requests, key)))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const replayed = answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true')
    expect(replayed).toHaveLength(4)
  })

  test('a conflict in a batch has the usual details and the index', async () => {
    const { id } = await make(service, CONTACT, { firstName: 'base' })
    await ask(service, `/ws/rest/${CONTACT}/${id}`, { data: { version: 0, firstName: 'theirs' } })
    const stale = { op: 'update', model: CONTACT, id, version: 0, data: { firstName: 'ours' } }
    const answer = await batch(service, [{ op: 'create', model: PERSON, data: {} }, stale])
    const alone = await ask(service, `/ws/rest/${CONTACT}/${id}`, { data: { version: 0, firstName: 'ours' } })
    expect(answer.status).toBe(409)
    expect({ ...envelope(answer).data, requestId: '' }).toEqual({
      ...{ ...envelope(alone).data, requestId: '' },
      index: 1,
    })
  })

  test('a batch answers Preference-Applied if it merged something, also to a repeat', async () => {
    const prefer = { prefer: 'merge=fields' }
    const { id } = await make(service, CONTACT, { firstName: 'base' })
    const update = (data: object, version?: number) => ({ op: 'update', model: CONTACT, id, version, data })
    const current = await batch(service, [update({ firstName: 'theirs' }, 0)], prefer)
    expect([current.status, current.headers['preference-applied']]).toEqual([200, undefined])
    const requests = [{ op: 'create', model: PERSON, data: {} }, update({ version: 0, lastName: 'ours' })]
    expect((await batch(service, requests)).status).toBe(409)
    const key = { ...prefer, 'idempotency-key': 'batch merged' }
    for (const replayed of [undefined, 'true']) {
      const { status, headers } = await batch(service, requests, key)
      expect([status, headers['preference-applied'], headers['idempotency-replayed']]).toEqual([
        ...[200, 'merge=fields', replayed],
      ])
    }
    const clash = await batch(service, [update({ firstName: 'ours' }, 0)], prefer)
    expect([clash.status, clash.headers['preference-applied']]).toEqual([409, undefined])
    expect(envelope(clash).data['index']).toBe(0)
  })

  test('a batch answers both versions of a record that it creates and updates, also with --compat', async () => {
    const requests = [
      { op: 'create', model: PERSON, ref: 'a', data: { name: 'A' } },
      { op: 'update', model: PERSON, id: { $ref: 'a' }, data: { version: 0, boss: { $ref: 'a' } } },
      { op: 'assert', model: PERSON, id: { $ref: 'a' }, version: 1 },
    ]
    for (const to of [service, axelorService]) {
      const answer = await batch(to, requests)
      const [first, second, third] = dataOf(answer)
      expect([answer.status, answer.headers['preference-applied']], answer.text).toEqual([200, undefined])
      expect([first?.['version'], second?.['version']]).toEqual([0, 1])
      expect(second).toMatchObject({ id: first?.['id'], boss: { id: first?.['id'], $version: 1 } })
      expect(third).toEqual({ id: first?.['id'], version: 1 })
    }
  })

  test('field errors of a batch have their path, and are checked after the shapes of all requests', async () => {
    const wrong = { op: 'create', model: CONTACT, data: { firstName: 5 } }
    const fields = await batch(service, [{ op: 'create', model: PERSON, data: {} }, wrong, wrong])
    expect([fields.status, envelope(fields).status, envelope(fields).errors]).toEqual([
      ...[422, -4],
      { 'requests[1].firstName': 'must be text', 'requests[2].firstName': 'must be text' },
    ])
    expect(envelope(fields).data['index']).toBe(1)
    const shapes = await batch(service, [wrong, { op: 'assert', model: CONTACT, id: 0 }, { op: 'x' }])
    expect([shapes.status, envelope(shapes).status, envelope(shapes).data['index']]).toEqual([400, -1, 1])
    expect(Object.keys(envelope(shapes).errors ?? {})).toEqual([
      ...['requests[1].id', 'requests[1].version', 'requests[2].op', 'requests[2].model'],
    ])
    for (const place of [
      'requests[1].version is required',
      'requests[2].op must be one of create, update, delete, assert',
    ])
      expect(envelope(shapes).data.message).toContain(place)
  })

  test('an error of a batch as problem+json has the index', async () => {
    const answer = await batch(service, [{ op: 'delete', model: CONTACT, id: 987_654 }], {
      accept: 'application/problem+json',
    })
    expect(answer.headers['content-type']).toContain('application/problem+json')
    expect(json(answer)).toMatchObject({ status: 404, kind: 'not-found', index: 0 })
  })

  test('with --compat, a batch accepts the values of existing clients, and resolves refs', async () => {
    const { id } = await make(axelorService, PERSON, {})
    const answer = await batch(axelorService, [
      { op: 'create', model: PERSON, ref: 'a', data: { id: -1, name: 5, unknown: true, rate: '' } },
      {
        ...{ op: 'create', model: PERSON },
        data: {
          boss: { $ref: 'a' },
          circles: [
            { id: -2, name: 'C' },
            { id: null, name: 'D' },
          ],
        },
      },
      { op: 'update', model: PERSON, id, data: { id, version: 0, boss: { id: { $ref: 'a' } } } },
    ])
    expect(answer.status, answer.text).toBe(200)
    const [first, second, third] = dataOf(answer)
    expect(first).toMatchObject({ name: '5', rate: null })
    expect(second).toMatchObject({ boss: { id: first?.['id'] }, circles: [{ name: 'C' }, { name: 'D' }] })
    expect(third).toMatchObject({ version: 1, boss: { id: first?.['id'] } })
  })

  test('with --compat, errors of a batch are HTTP 200 with status -1', async () => {
    const faults: readonly object[] = [
      { op: 'x' },
      { op: 'create', model: 'no.Model', data: {} },
      { op: 'update', model: PERSON, id: 987_654, version: 0, data: {} },
      { op: 'create', model: PERSON, data: { born: 'yesterday' } },
    ]
    for (const fault of faults) {
      const requests = [{ op: 'create', model: PERSON, data: {} }, fault]
      const [one, two] = [await batch(service, requests), await batch(axelorService, requests)]
      expect(one.status).toBeGreaterThanOrEqual(400)
      expect([two.status, envelope(two).status, envelope(two).data['index']]).toEqual([200, -1, 1])
      expect({ ...envelope(two).data, requestId: '' }).toEqual({ ...envelope(one).data, requestId: '' })
    }
    const forbidden = await batch(axelorService, [
      { op: 'create', model: 'com.axelor.meta.db.MetaModel', data: {} },
    ])
    expect(forbidden.status).toBe(403)
  })

  test('OPTIONS of /ws/batch lists POST and OPTIONS, and GET is 405', async () => {
    const answer = await send(service.url, {
      ...{ method: 'OPTIONS', path: '/ws/batch', headers: { cookie: cookies[0] } },
    })
    expect([answer.status, answer.headers.allow]).toEqual([204, 'POST, OPTIONS'])
    const trailing = await ask(service, '/ws/batch/', {
      requests: [{ op: 'create', model: PERSON, data: {} }],
    })
    expect(trailing.status).toBe(200)
    expect((await asUser(service.url, cookies[0] ?? '').get('/ws/batch')).status).toBe(405)
  })
})
