// A request that arrives too late gets 408, and is not carried out even if its rest arrives afterwards.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createHttpServer } from '../../src/http/fastify.js'
import { sendSocketError } from '../../src/http/route/socket-errors.js'
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { startService, type Service } from '../targets.js'
import { endLateRequest } from '../mutants/connections.js'
import { addressOf, openSession, rawRequest } from './exchange.js'

/** Longer than the service takes to create a record. */
const WRITE_MS = 500

let service: Service
let own: Server
let url: string
let cookie: string

beforeAll(async () => {
  service = await startService('sqlite')
  own = await createServer(service.app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
  url = (await own.listen())[0] ?? ''
  cookie = await openSession(url)
  // Node checks for late requests every five seconds.
  own.fastify.server.headersTimeout = 50
  own.fastify.server.requestTimeout = 100
})
afterAll(async () => {
  await own.close()
  await service.close()
})

/** Sends the rest of a create after the response to its first part. Returns the status, and whether the record exists. */
async function createLate(
  firstPart: (request: string) => string,
): Promise<{ status: string; exists: boolean }> {
  const title = `late ${Math.random()}`
  const body = JSON.stringify({ data: { title } })
  const request = rawRequest(
    `PUT /ws/rest/test.Note HTTP/1.1`,
    { cookie, 'content-type': 'application/json', 'content-length': String(body.length) },
    body,
  )
  const socket = connect({ ...addressOf(url), allowHalfOpen: true })
  socket.on('error', () => undefined)
  const first = firstPart(request)
  socket.write(first)
  const [response] = (await once(socket, 'data')) as [Buffer]
  socket.write(request.slice(first.length))
  await sleep(WRITE_MS)
  socket.destroy()
  const found = await service.app.db.reader.all('select 1 from "test.Note" where "title" = ?', [title])
  return { status: response.toString('latin1', 0, 12), exists: found.length > 0 }
}

const halfOfHead = (request: string) => request.slice(0, request.indexOf('content-type'))
const halfOfBody = (request: string) => request.slice(0, -5)

async function createBoth() {
  return Promise.all([halfOfHead, halfOfBody].map((firstPart) => createLate(firstPart)))
}

test('a write whose headers or body arrive after the 408 is not carried out', async () => {
  expect(await createBoth()).toEqual([
    { status: 'HTTP/1.1 408', exists: false },
    { status: 'HTTP/1.1 408', exists: false },
  ])
})

/** Larger than what Node reads of a body before a handler asks for it. */
const LARGE_BYTES = 400_000

/** A handler reads the body only after the 408. Returns whether it gets all of it. */
async function readsLate(onLate: typeof sendSocketError): Promise<boolean> {
  const server = createHttpServer().on('clientError', onLate)
  server.requestTimeout = 100
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const asked = once(server, 'request') as Promise<[IncomingMessage]>
  const { port } = server.address() as AddressInfo
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true }).on('error', () => undefined)
  const request = rawRequest(
    'POST / HTTP/1.1',
    { 'content-length': String(LARGE_BYTES) },
    'x'.repeat(LARGE_BYTES),
  )
  socket.write(request.slice(0, -1))
  const [message] = await asked
  await once(socket, 'data')
  socket.write(request.slice(-1))
  message.on('error', () => undefined).resume()
  await Promise.race([once(message, 'close'), sleep(WRITE_MS)])
  socket.destroy()
  server.close()
  return message.complete
}

test('a handler that reads the body after the 408 never gets all of it', async () => {
  expect(await readsLate(sendSocketError)).toBe(false)
})

test('the mutant that a handler makes read again is caught', async () => {
  const pausesOnce: typeof sendSocketError = (_, socket) => {
    socket.pause()
    endLateRequest(_, socket)
  }
  expect(await readsLate(pausesOnce)).toBe(true)
})

test('the service closes a connection after the 408 even if its client does not', async () => {
  const countConnections = promisify(own.fastify.server.getConnections.bind(own.fastify.server))
  const before = await countConnections()
  const socket = connect({ ...addressOf(url), allowHalfOpen: true })
  socket.write('GET /healthz HTTP/1.1\r\n')
  await once(socket, 'data')
  expect(await countConnections()).toBe(before + 1)
  await expect.poll(countConnections).toBe(before)
  socket.destroy()
})

/** Sends a create and malformed HTTP at once. Returns the statuses in the order of the responses. */
async function listStatuses(): Promise<string[]> {
  const body = JSON.stringify({ data: { title: 'before malformed HTTP' } })
  const request = rawRequest(
    'PUT /ws/rest/test.Note HTTP/1.1',
    {
      cookie,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(body.length),
    },
    body,
  )
  const socket = connect(addressOf(url))
  socket.write(`${request}MALFORMED\r\n\r\n`)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  await once(socket, 'close')
  return [
    ...Buffer.concat(chunks)
      .toString('latin1')
      .matchAll(/HTTP\/1\.1 (\d+)/g),
  ].map(([, status = '']) => status)
}

test('an error of the connection follows the responses to earlier requests', async () => {
  expect(await listStatuses()).toEqual(['200', '400'])
})

test('the mutants that go on reading after the 408, and take the place of another response, are caught', async () => {
  own.fastify.server.removeAllListeners('clientError').on('clientError', endLateRequest)
  expect(await createBoth()).toContainEqual({ status: 'HTTP/1.1 408', exists: true })
  expect(await listStatuses()).toEqual(['408'])
})
