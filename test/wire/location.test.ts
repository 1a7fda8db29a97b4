// `Location`: the path of a record that a request has created.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { asUser, json, JSON_BODY, only, openSession, send, withServer, type User } from './exchange.js'

const CONTACT = 'crm.Contact'
const LIST = `/ws/rest/${CONTACT}`

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

  const upload = (request: object) => {
    const body = [
      ...['--b', 'content-disposition: form-data; name="request"', '', JSON.stringify(request)],
      ...['--b', 'content-disposition: form-data; name="file"; filename="a.txt"', '', 'content', '--b--', ''],
    ].join('\r\n')
    const headers = { cookie, 'content-type': 'multipart/form-data; boundary=b' }
    return send(service.url, { method: 'POST', path: '/ws/rest/doc.Folder/upload', headers, body })
  }

  test('a create has the path of the new record, which can be read there', async () => {
    for (const method of ['PUT', 'POST']) {
      const created = await user.ask(method, LIST, { firstName: 'Ada' })
      const { location = '' } = created.headers
      expect(location).toBe(`${LIST}/${only(created).id}`)
      expect(only(await user.get(location))).toEqual(only(created))
    }
  })

  test('a replayed create repeats it', async () => {
    const key = { 'idempotency-key': 'location' }
    const [first, again] = [await user.create(CONTACT, {}, key), await user.create(CONTACT, {}, key)]
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(again.headers.location).toBe(first.headers.location)
    expect(first.headers.location).toBe(`${LIST}/${only(first).id}`)
  })

  test('it includes the base path', async () => {
    await withServer(service, { basePath: '/verso' }, async (url) => {
      const headers = { ...JSON_BODY, cookie: await openSession(url) }
      const created = await send(url, { method: 'PUT', path: LIST, headers, body: '{"data":{}}' })
      expect(created.headers.location).toBe(`/verso${LIST}/${only(created).id}`)
    })
  })

  test('an upload has it if it creates the record', async () => {
    const created = await upload({ data: {} })
    const { id, version } = only(created)
    expect(created.headers.location).toBe(`/ws/rest/doc.Folder/${id}`)
    const updated = await upload({ data: { id, version } })
    expect([only(updated).version, updated.headers.location]).toEqual([1, undefined])
  })

  test('a new webhook has the path of its state', async () => {
    const created = await user.ask('POST', '/ws/webhooks', { name: 'w', url: 'https://example.org/' })
    const { location = '' } = created.headers
    expect(location).toBe(`/ws/webhooks/${only(created).id}`)
    expect(only(await user.get(location))).toMatchObject({ id: only(created).id })
  })

  test('updates, lists of records and batches have none', async () => {
    const { id } = only(await user.create(CONTACT, {}))
    const asList = (method: string, path: string, body: object) =>
      send(service.url, { method, path, headers: { cookie, ...JSON_BODY }, body: JSON.stringify(body) })
    const requests = [{ op: 'create', model: CONTACT, data: {} }]
    for (const answer of [
      await user.ask('POST', `${LIST}/${id}`, { version: 0 }),
      await user.ask('POST', LIST, { id, version: 1 }),
      await asList('PUT', LIST, { records: [{}] }),
      await asList('POST', '/ws/batch', { requests }),
    ]) {
      expect([answer.status, answer.headers.location], answer.text).toEqual([200, undefined])
      expect(json(answer)).toMatchObject({ status: 0 })
    }
  })

  test('with --compat axelor a PUT with an id is an update, and has none', async () => {
    await withServer(service, { compat: 'axelor' }, async (url) => {
      const axelor = asUser(url, await openSession(url))
      const created = await axelor.create(CONTACT, { id: -1 })
      expect(created.headers.location).toBe(`${LIST}/${only(created).id}`)
      const { id, version } = only(created)
      expect((await axelor.create(CONTACT, { id, version })).headers.location).toBeUndefined()
    })
  })
})
