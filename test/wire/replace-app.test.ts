// A server that serves another App on the same sockets.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { RequestGate } from '../../src/http/connection/request-gate.js'
import { createBusyResponder } from '../../src/http/route/errors.js'
import { createApp } from '../../src/service/create-app.js'
import { expectFailures } from '../server-failures.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { addressOf } from './exchange.js'

const note = (fields: object) => [
  { file: 'note.ts', definition: { name: 'swap.Note', fields: { text: { type: 'string' }, ...fields } } },
]

async function start(): Promise<Service> {
  const service = await startService('sqlite', { models: note({}) })
  onTestFinished(() => service.close())
  return service
}

/** Opens an App on the database of the service that has one field more. Closes it after the test. */
async function openOther({ location }: Service) {
  const app = await createApp({
    settings: { db: location.url },
    models: note({ size: { type: 'integer' } }),
  })
  onTestFinished(() => app.close())
  return { app }
}

/** A create whose body lacks its last byte until `finish`. */
async function beginCreate(url: string, cookie: string) {
  const body = '{"data":{"text":"slow"}}'
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const head = [
    'PUT /ws/rest/swap.Note HTTP/1.1',
    'Host: localhost',
    `Cookie: ${cookie}`,
    'Content-Type: application/json',
    'Expect: 100-continue',
    'Connection: close',
    `Content-Length: ${body.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, -1)}`)
  await once(socket, 'data')
  return async () => {
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    socket.write(body.slice(-1))
    await once(socket, 'close')
    return answer
  }
}

describe('replaceApp', () => {
  test('a request that arrives in between waits, and the other App answers it; a long poll ends', async () => {
    const service = await start()
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const polled = client.changes({ since: (await client.changes({})).next, wait: 60 })
    await expect.poll(() => service.server.gauges()).toMatchObject({ feedReaders: 1 })
    let create: Promise<unknown> | undefined
    const { answered } = await service.server.replaceApp(async () => {
      expect((await polled).data).toEqual([])
      create = client.create('swap.Note', { text: 'a', size: 3 })
      // The request arrives while the other App is not open yet.
      await once(service.server.fastify.server, 'request')
      return openOther(service)
    })
    expect(await create).toMatchObject({ data: { text: 'a', size: 3 } })
    await answered
    expect(service.server.gauges()).toMatchObject({ requestsWaiting: 0, feedReaders: 0 })
  })

  test('a slow request does not hold up the other App, and the former App answers it', async () => {
    const service = await start()
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const finish = await beginCreate(service.url, client.cookie)
    const other = () => createApp({ settings: { db: service.location.url }, models: note({}) })
    const { opened, answered } = await service.server.replaceApp(async () => ({ app: await other() }), 20)
    onTestFinished(() => opened.app.close())
    const { data } = await client.create('swap.Note', { text: 'quick' })
    expect(await finish()).toMatch(/^HTTP\/1\.1 200 [^]*"text":"slow"/)
    await answered
    expect((await client.find('swap.Note', { sortBy: ['id'] })).data.map(({ text }) => text)).toEqual([
      'quick',
      'slow',
    ])
    expect(data.id).toBe(1)
  })

  test('if the other App cannot be opened, the current one is served further, with its feed', async () => {
    const service = await start()
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const failed = service.server.replaceApp(() => Promise.reject(new Error('not today')))
    await expect(failed).rejects.toThrow('not today')
    const polled = client.changes({ since: (await client.changes({})).next, wait: 60 })
    const { data } = await client.create('swap.Note', { text: 'b' })
    expect((await polled).data).toMatchObject([{ model: 'swap.Note', id: data.id }])
  })
})

test('a request that is held for too long gets 503 with Retry-After', async () => {
  const gate = new RequestGate((_, response) => response.end('served'), createBusyResponder('replaced'), 20)
  const server = createServer().listen(0, '127.0.0.1')
  gate.add(server)
  expectFailures(server, ['busy'])
  onTestFinished(() => {
    server.close()
  })
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  gate.close()
  for (const response of [await fetch(url), await fetch(url, { method: 'POST', body: 'x' })]) {
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await response.json()).toMatchObject({ status: -1, data: { kind: 'busy' } })
  }
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(503)
  const heads = ['GET / HTTP/1.1', 'POST / HTTP/1.1', 'GET / HTTP/1.0', 'GET / HTTP/1.1']
  const requests = heads.map(
    (head) => `${head}\r\nhost: a\r\ncontent-length: 3\r\nconnection: keep-alive\r\n\r\nabc`,
  )
  const connection = connect(addressOf(url))
  connection.end(requests.join(''))
  expect((await text(connection)).match(/HTTP\/1.1 503 /g)).toHaveLength(heads.length)
  gate.open((_, response) => response.end('served'))
  expect(await (await fetch(url)).text()).toBe('served')
})
