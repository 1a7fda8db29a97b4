import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../targets.js'

onEveryEngine((engine) => {
  let service: Service
  const lines: string[] = []
  const readRequests = () =>
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line['msg'] === 'request')
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  beforeAll(async () => {
    service = await startService(engine, { log: pino({ level: 'trace' }, stream), expects: ['internal'] })
  })
  afterAll(() => service.close())

  test('every request is logged as one line of JSON with user, route and status, and without secrets', async () => {
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    await client.create('crm.Contact', { firstName: 'Ada', pin: 'pin-of-ada', password: 'password-of-ada' })
    await client.request('GET', '/ws/rest/crm.Contact?offset=0&_token=in-the-query')
    await client.request('GET', '/ws/rest/crm.Contact/77%0a%0d{"level":60}')
    await fetch(`${service.url}/callback`, {
      method: 'POST',
      body: '{"username":"eve","password":"guess-of-eve"}',
    })
    await fetch(`${service.url}/callback`, {
      method: 'POST',
      body: '{"username":"eve","password":"broken-of-eve',
    })

    const requests = readRequests()
    expect(
      requests.map(({ method, route, model, status, user }) => [method, route, model, status, user]),
    ).toEqual([
      ['POST', '/callback', undefined, 200, undefined],
      ['PUT', '/ws/rest/:model', 'crm.Contact', 200, USERNAME],
      ['GET', '/ws/rest/:model', 'crm.Contact', 200, USERNAME],
      ['GET', '/ws/rest/:model/:id', 'crm.Contact', 404, USERNAME],
      ['POST', '/callback', undefined, 401, undefined],
      ['POST', '/callback', undefined, 400, undefined],
    ])
    for (const request of requests) {
      expect(request).toMatchObject({
        requestId: expect.any(String),
        ms: expect.any(Number),
        address: '127.0.0.1',
      })
    }
    const all = lines.join('')
    const session = /JSESSIONID=([^;]+)/.exec(client.cookie)?.[1] ?? 'missing'
    for (const secret of [PASSWORD, session, '-of-ada', '-of-eve', 'in-the-query', 'argon2']) {
      expect(all).not.toContain(secret)
    }
  })

  test('behind a proxy each request is logged with its own client and model, whatever else the client sends', async () => {
    const proxied = await startService(engine, {
      log: pino({ level: 'trace' }, stream),
      http: { trustProxy: ['loopback'] },
    })
    lines.length = 0
    const sent = [
      ['crm.Contact', '203.0.113.7'],
      ['crm.Contact', '198.51.100.1'],
      ['crm.Contact', '203.0.113.7'],
      ['crm.Contact', '192.0.2.9, 203.0.113.7'],
      // Headers and model names that look like those of another request when they are joined.
      ['crm.Note crm.Contact', '203.0.113.7'],
      ['crm.Contact', '203.0.113.7 crm.Note'],
      ['crm.Contact', 'undefined'],
    ] as const
    for (const [model, forwardedFor] of sent)
      await fetch(`${proxied.url}/ws/rest/${encodeURIComponent(model)}`, {
        headers: { 'x-forwarded-for': forwardedFor },
      })
    await fetch(`${proxied.url}/ws/rest/crm.Contact`)
    await proxied.close()
    expect(readRequests().map(({ model, address }) => [model, address])).toEqual([
      ['crm.Contact', '203.0.113.7'],
      ['crm.Contact', '198.51.100.1'],
      ['crm.Contact', '203.0.113.7'],
      ['crm.Contact', '203.0.113.7'],
      ['crm.Note crm.Contact', '203.0.113.7'],
      ['crm.Contact', '203.0.113.7 crm.Note'],
      ['crm.Contact', 'undefined'],
      ['crm.Contact', '127.0.0.1'],
    ])
  })

  test('a request without a login is not logged as that of a user named undefined', async () => {
    await addUser(service.app, { username: 'undefined', password: PASSWORD, roles: ['administrator'] })
    const client = await HttpClient.login(service.url, 'undefined', PASSWORD)
    lines.length = 0
    await client.request('GET', '/ws/rest/crm.Contact')
    await fetch(`${service.url}/ws/rest/crm.Contact`)
    expect(readRequests().map(({ status, user }) => [status, user])).toEqual([
      [200, 'undefined'],
      [401, undefined],
    ])
  })

  test('a defect is logged with its cause under the request id, and the answer hides the cause', async () => {
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    await service.app.db.transaction((tx) => tx.run('alter table "test.Note" rename to "test.Gone"'))
    const response = await client.request('GET', '/ws/rest/test.Note/1')
    await service.app.db.transaction((tx) => tx.run('alter table "test.Gone" rename to "test.Note"'))
    const body = (await response.json()) as { data: { kind: string; requestId: string } }
    expect(response.status).toBe(500)
    expect(body).toMatchObject({ status: -1, data: { kind: 'internal' } })
    expect(JSON.stringify(body)).not.toMatch(/select|table|relation|test\.Note/i)
    const logged = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((line) => line['level'] === 50)
    expect(logged).toMatchObject({
      requestId: body.data.requestId,
      err: { message: expect.stringMatching(/test\.Note/) },
    })
  })
})
