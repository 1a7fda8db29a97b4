// Large responses over HTTP: where they wait, and what happens if nobody reads them.
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { StagedBody, ResponseBuffer } from '../../src/http/response/response-buffer.js'
import { ConnectionTracker } from '../../src/http/connection/connection-tracker.js'
import { VersoError } from '../../src/errors.js'
import { StagingArea } from '../../src/store/engine/staging.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  envelope,
  expectError,
  json,
  only,
  openSession,
  pageOf,
  addressOf,
  send,
  type User,
} from './exchange.js'

const LIMIT = 16 * 1024 * 1024
const TEXT_BYTES = 1024 * 1024
const COUNT = 9
const MODEL = 'crm.Contact'
const LIST = `/ws/rest/${MODEL}`

onEveryEngine((engine) => {
  let service: Service
  let user: User
  let cookie: string

  beforeAll(async () => {
    service = await startService(engine, { settings: { responseLimitBytes: LIMIT } })
    cookie = await openSession(service.url)
    user = asUser(service.url, cookie)
    for (let number = 0; number < COUNT; number++)
      await user.create(MODEL, { lastName: `L${number}`, notes: String(number).repeat(TEXT_BYTES) })
  })
  afterAll(() => service.close())

  const page = `${LIST}?fields=notes&limit=${COUNT}`
  const search = { fields: ['notes'], limit: COUNT }
  const askSearch = () =>
    send(service.url, {
      ...{ method: 'POST', path: `${LIST}/search`, headers: { cookie, 'content-type': 'application/json' } },
      body: JSON.stringify(search),
    })

  test('a page staged in a file has its length and headers, and equals the response of a search', async () => {
    const found = await user.get(page)
    expect(found.status).toBe(200)
    expect(found.headers['content-length']).toBe(String(Buffer.byteLength(found.text)))
    expect(found.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(Number(found.headers['x-commit-seq'])).toBeGreaterThan(0)
    const notes = pageOf(found).data.map((record) => record['notes'])
    expect(notes).toEqual(Array.from({ length: COUNT }, (_, number) => String(number).repeat(TEXT_BYTES)))
    const searched = await askSearch()
    expect([searched.status, searched.text === found.text]).toEqual([200, true])
    const head = await user.ask('HEAD', page)
    expect([head.status, head.headers['content-length'], head.text]).toEqual([
      200,
      found.headers['content-length'],
      '',
    ])
    await expect.poll(() => service.app.staging.bytes).toBe(0)
  })

  test('a cached session gets the same large page', async () => {
    // The second request has a cached session.
    const path = `${LIST}?limit=1000&offset=0`
    const [first, second] = [await user.get(path), await user.get(path)]
    expect([first.status, second.text]).toEqual([200, first.text])
  })

  test('an unread large response stays on disk without a snapshot, and is deleted when its client disconnects', async () => {
    const sockets = [page, page].map((path) => {
      const socket = net.connect(addressOf(service.url))
      socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`)
      return socket
    })
    const least = 2 * COUNT * TEXT_BYTES
    await expect.poll(() => service.app.staging.bytes, { timeout: 60_000 }).toBeGreaterThanOrEqual(least)
    const [other] = pageOf(await user.get(`${LIST}?limit=1`)).data
    expect(
      (await user.ask('POST', `${LIST}/${other?.id ?? 0}`, { version: other?.version, email: 'e' })).status,
    ).toBe(200)
    expect((await askSearch()).status).toBe(200)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => service.app.staging.bytes).toBe(0)
  })

  test('a large record has an ETag of its body, and If-None-Match answers 304', async () => {
    const parts = { notes: 'n'.repeat(TEXT_BYTES), phones: ['p'.repeat(TEXT_BYTES - 10)] }
    const { id } = only(await user.create(MODEL, { notes: parts.notes }))
    const written = await user.ask('POST', `${LIST}/${id}`, { version: 0, phones: parts.phones })
    expect(only(written)).toMatchObject(parts)
    const read = await user.get(`${LIST}/${id}`)
    expect([read.status, Buffer.byteLength(read.text)]).toEqual([200, Number(read.headers['content-length'])])
    expect(only(read)).toMatchObject(parts)
    const again = await user.get(`${LIST}/${id}`, { 'if-none-match': String(read.headers.etag) })
    expect([again.status, again.text]).toEqual([304, ''])
    expect((await user.ask('DELETE', `${LIST}/${id}`)).status).toBe(200)
  })

  test('a page above the response limit is 413 with a limit that fits, for every kind of query', async () => {
    for (let number = 0; number < 8; number++)
      await user.create(MODEL, { lastName: 'More', notes: 'm'.repeat(TEXT_BYTES) })
    for (const path of [
      `${LIST}?fields=notes`,
      `${LIST}?fields=notes&sortBy=-id`,
      `${LIST}?fields=notes&filter=id>0`,
    ]) {
      const rejected = await user.get(path)
      expectError(rejected, 413, 'too-large')
      expect(envelope(rejected).data).toMatchObject({ limit: 15 })
      expect(pageOf(await user.get(`${path}&limit=15`)).data).toHaveLength(15)
    }
    const problem = await user.get(`${LIST}?fields=notes`, { accept: 'application/problem+json' })
    expect([problem.status, json(problem)]).toEqual([
      413,
      expect.objectContaining({ kind: 'too-large', limit: 15 }),
    ])
  })
})

describe('staging files', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-staging-'))
  afterAll(() => {
    rmSync(folder, { recursive: true })
  })

  test('a staging file has no name, and all of them stay below the total size', async () => {
    const staging = new StagingArea({ totalBytes: 10, queueTimeoutMs: 1_000 }, folder)
    const first = staging.stage('12345678')
    expect(readdirSync(folder)).toEqual([])
    const busy = (() => {
      try {
        return staging.stage('123')
      } catch (error) {
        return error
      }
    })()
    expect(busy).toBeInstanceOf(VersoError)
    expect(busy).toMatchObject({ kind: 'busy', details: { retryAfterS: 5 } })
    expect(staging.bytes).toBe(8)
    const chunks: Buffer[] = []
    for await (const chunk of first.chunks()) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe('12345678')
    first.discard()
    first.discard()
    expect(staging.bytes).toBe(0)
    staging.stage('0123456789').discard()
  })
})

/** A real server that answers with this many bytes. */
async function serving(
  answer: (response: http.ServerResponse) => void,
  work: (url: string, connections: ConnectionTracker) => Promise<void>,
  stallMs?: number,
): Promise<void> {
  const server = http.createServer((_, response) => {
    answer(response)
  })
  const connections = new ConnectionTracker(100, stallMs)
  connections.track(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    await work(`http://127.0.0.1:${port}`, connections)
  } finally {
    server.closeAllConnections()
    await connections.stopListening([server])
    await connections.drain()
  }
}

function askAndReadNothing(url: string): net.Socket {
  const socket = net.connect(addressOf(url))
  socket.pause().write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return socket
}

describe('waiting bodies', () => {
  test('waiting bodies stay in memory up to a limit, then in files, and are counted until they are read', async () => {
    const staging = new StagingArea({ totalBytes: 100_000_000, queueTimeoutMs: 1_000 })
    const waiting = new ResponseBuffer(staging, 20_000_000, 25_000_000)
    const body = Buffer.alloc(12_000_000, 'x')
    const held: boolean[] = []
    await serving(
      (response) => {
        const sent = waiting.buffer(body, response, false)
        held.push(!(sent instanceof StagedBody))
        if (sent instanceof StagedBody)
          sent
            .stream()
            .pipe(response)
            .once('close', () => {
              sent.discard()
            })
        else response.end(sent)
      },
      async (url) => {
        const sockets = [1, 2, 3].map(() => askAndReadNothing(url))
        await expect.poll(() => held).toEqual([true, true, false])
        expect([waiting.bytes, staging.bytes]).toEqual([24_000_000, 12_000_000])
        for (const socket of sockets) socket.destroy()
        await expect.poll(() => [waiting.bytes, staging.bytes]).toEqual([0, 0])
        expect((await send(url, { path: '/' })).text).toBe(body.toString())
      },
    )
  })

  test('a client that reads nothing is disconnected, a slow one is not', async () => {
    const body = Buffer.alloc(24_000_000, 'x')
    const sockets: net.Socket[] = []
    await serving(
      (response) => {
        if (response.socket) sockets.push(response.socket)
        response.end(body)
      },
      async (url) => {
        askAndReadNothing(url)
        await expect.poll(() => sockets.length).toBe(1)
        const slow = askAndReadNothing(url)
        let taken = 0
        slow.on('data', (chunk: Buffer) => {
          taken += chunk.length
          slow.pause()
          setTimeout(() => slow.resume(), 2)
        })
        slow.resume()
        const [stalled] = sockets
        if (stalled && !stalled.destroyed) await once(stalled, 'close')
        expect(stalled?.destroyed).toBe(true)
        await expect.poll(() => taken, { timeout: 60_000 }).toBeGreaterThan(body.length)
      },
      600,
    )
  })
})
