// A request that arrives too late gets 408, and is not carried out even if its rest arrives afterwards.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
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

test('the mutant that goes on reading after the 408 is caught', async () => {
  own.fastify.server.removeAllListeners('clientError').on('clientError', endLateRequest)
  expect(await createBoth()).toContainEqual({ status: 'HTTP/1.1 408', exists: true })
})
