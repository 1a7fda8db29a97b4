// A stream that `kill -9` cuts off, that is read too slowly, or whose reader loses access.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Change } from '../../src/wire.js'
import { Copy, EventReader, tableOf } from '../feed.js'
import { HttpClient } from '../http-client.js'
import {
  onEveryEngine,
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type Service,
} from '../targets.js'
import { exchange } from './load-client.js'
import { startServerProcess } from './server-process.js'

const MODEL = 'crm.Contact'
const KILLS = 3
const WRITERS = 6
const EVENTS_BEFORE_KILL = 25
/** Many more bytes than the buffers of a connection hold. */
const LONG_NOTES = 100

onEveryEngine((engine) => {
  test(`a stream resumed with Last-Event-ID after ${KILLS} kills has no gap and no duplicate`, async () => {
    const location = await preparedLocation(engine)
    let server = await startServerProcess(location.url)
    const copy = new Copy()
    let lastId = '0'
    try {
      const { cookie } = await HttpClient.login(server.url, USERNAME, PASSWORD)
      for (let kill = 0; kill < KILLS; kill++) {
        let isOver = false
        const session = { url: server.url, cookie }
        const writers = Array.from({ length: WRITERS }, () => keepWriting(session, () => isOver))
        const client = await HttpClient.login(server.url, USERNAME, PASSWORD)
        const reader = new EventReader(client, `model=${MODEL}`, { 'last-event-id': lastId })
        const reading = readUntilCut(reader, copy)
        const enough = copy.seq + EVENTS_BEFORE_KILL
        while (copy.seq < enough) await sleep(1)
        await server.kill()
        isOver = true
        await Promise.all([reading, ...writers])
        lastId = reader.lastId
        server = await startServerProcess(location.url)
      }
      const client = await HttpClient.login(server.url, USERNAME, PASSWORD)
      const { data, seq } = await client.find(MODEL, {
        limit: 1000,
        fields: 'firstName,lastName,fullName,email,notes,phones',
      })
      for (let since = Number(lastId); since < seq;) {
        const page = await client.changes({ since, model: MODEL })
        copy.applyAll(page.data)
        since = page.next
      }
      expect(copy.complaints).toEqual([])
      expect(copy.recordsOf(MODEL)).toEqual(tableOf(data))
      expect(data.length).toBeGreaterThan(0)
    } finally {
      await server.kill()
      location.remove()
    }
  })

  test('the mutant reader that resumes without Last-Event-ID gets duplicates, and is caught', async () => {
    const service = await startService(engine)
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const copy = new Copy()
    await client.create(MODEL, { firstName: 'once' })
    for (let visit = 0; visit < 2; visit++) {
      const reader = new EventReader(client, `model=${MODEL}`)
      for await (const { data } of reader.events()) {
        copy.apply(JSON.parse(data) as Change)
        break
      }
      reader.close()
    }
    expect(copy.complaints).not.toEqual([])
    await service.close()
  })

  test('a reader that does not read blocks nobody, buffers little, and gets every change in the end', async () => {
    const service = await startService(engine)
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const waiting = waitingBytes(service)
    const reader = new EventReader(client, `model=crm.Contact`)
    await client.create(MODEL, { notes: 'first' })
    await reader.response
    const text = 'x'.repeat(200_000)
    // They are written together: the service ends a stream that nobody has read for half a minute.
    for (let round = 0; round < LONG_NOTES / 10; round++)
      await Promise.all(Array.from({ length: 10 }, () => client.create(MODEL, { notes: text })))
    // Gives the server time to write as much as it can.
    await sleep(300)
    expect(waiting()).toBeLessThan(5_000_000)
    let arrived = 0
    for await (const { event } of reader.events()) if (event === 'change' && ++arrived > LONG_NOTES) break
    expect(arrived).toBe(LONG_NOTES + 1)
    reader.close()
    await service.close()
  })

  test('a stream of a logged-out user ends with refused, and sends no more changes', async () => {
    const service = await startService(engine)
    const [client, writer] = [
      await HttpClient.login(service.url, USERNAME, PASSWORD),
      await HttpClient.login(service.url, USERNAME, PASSWORD),
    ]
    const { seq } = await client.find(MODEL)
    const reader = new EventReader(client, `since=${seq}&model=${MODEL}`)
    await reader.response
    await client.request('GET', '/logout')
    await writer.create(MODEL, { firstName: 'unseen' })
    const events: string[] = []
    for await (const { event, data } of reader.events())
      events.push(`${event} ${(JSON.parse(data) as { kind?: string }).kind ?? ''}`)
    expect(events).toEqual(['refused unauthenticated'])
    await service.close()
  })

  test('shutdown ends the streams and answers waiting long polls', async () => {
    const service = await startService(engine)
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const { seq } = await client.find(MODEL)
    const reader = new EventReader(client, `since=${seq}`)
    await reader.response
    const asked = once(service.server.fastify.server, 'request')
    const waiting = client.changes({ since: seq, wait: 30 })
    await asked
    const closing = service.close()
    for await (const event of reader.events()) expect(event).toBeUndefined()
    expect(await waiting).toMatchObject({ data: [] })
    await closing
  })
})

/** The largest number of bytes that wait on any connection. */
function waitingBytes({ server }: Service): () => number {
  let most = 0
  server.fastify.server.on('connection', (socket) => {
    const timer = setInterval(() => {
      most = Math.max(most, socket.writableLength)
    }, 5)
    socket.once('close', () => {
      clearInterval(timer)
    })
  })
  return () => most
}

async function readUntilCut(reader: EventReader, copy: Copy): Promise<void> {
  try {
    for await (const { event, data } of reader.events())
      if (event === 'change') copy.apply(JSON.parse(data) as Change)
  } catch {
    // The kill cut the stream off, as intended.
  }
}

/** Creates, updates and removes records until it is told to stop, or the server is gone. */
async function keepWriting(session: { url: string; cookie: string }, isOver: () => boolean): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    try {
      const made = await exchange(session, 'PUT', `/ws/rest/${MODEL}`, { data: { firstName: `n${turn}` } })
      const id = (made.body as { data?: { id: number }[] }).data?.[0]?.id ?? 0
      await exchange(session, 'POST', `/ws/rest/${MODEL}/${id}`, {
        data: { version: 0, lastName: `m${turn}` },
      })
      if (turn % 3 === 0) await exchange(session, 'DELETE', `/ws/rest/${MODEL}/${id}`)
    } catch {
      return
    }
  }
}
