// The change feed over HTTP: pages, long polls, streams, and invalid queries.
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CommitNotifier } from '../../src/store/engine/commit-notifier.js'
import { raiseRetentionFloor } from '../../src/store/log/feed.js'
import { EventReader } from '../feed.js'
import { HttpClient } from '../http-client.js'
import {
  preparedLocation,
  onEveryEngine,
  PASSWORD,
  startService,
  USERNAME,
  type Service,
} from '../targets.js'
import { asUser, envelope, expectError, json, openSession, send, type User } from './exchange.js'
import { FailingDatabase } from './failing-database.js'

const MODEL = 'crm.Contact'
const WAIT_MS = 20_000

onEveryEngine((engine) => {
  let service: Service
  let user: User
  let client: HttpClient

  beforeAll(async () => {
    service = await startService(engine)
    user = asUser(service.url, await openSession(service.url))
    client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  })
  afterAll(() => service.close())

  const end = async () => (await client.find(MODEL, { limit: 0 })).seq

  test('a page of the feed has the changes after a sequence number, and the next cursor', async () => {
    const since = await end()
    const { data } = await client.create(MODEL, { firstName: 'Ada', pin: '1234' })
    await client.update(MODEL, data.id, { version: 0, lastName: 'L' })
    await client.remove(MODEL, data.id)
    const answer = await user.get(`/ws/changes?since=${since}`)
    const by = data['createdBy']
    const common = { model: MODEL, id: data.id, by, on: expect.stringMatching(/^\d{4}-.*Z$/) as unknown }
    expect(json(answer)).toEqual({
      status: 0,
      data: [
        {
          ...{ ...common, seq: since + 1, version: 0, action: 'create' },
          changes: { firstName: { before: null, after: 'Ada' }, fullName: { before: null, after: 'Ada' } },
        },
        {
          ...{ ...common, seq: since + 2, version: 1, action: 'update' },
          changes: { lastName: { before: null, after: 'L' }, fullName: { before: 'Ada', after: 'Ada L' } },
        },
        {
          ...{ ...common, seq: since + 3, version: 2, action: 'delete' },
          changes: {
            ...{ firstName: { before: 'Ada', after: null }, lastName: { before: 'L', after: null } },
            fullName: { before: 'Ada L', after: null },
          },
        },
      ],
      next: since + 3,
    })
  })

  test('paging through the feed with a limit misses no change', async () => {
    const since = await end()
    for (let count = 0; count < 5; count++) await client.create(MODEL, { firstName: `n${count}` })
    const names: unknown[] = []
    for (let from = since, isOver = false; !isOver;) {
      const { data, next } = await client.changes({ since: from, limit: 2 })
      names.push(...data.map(({ changes }) => changes['firstName']?.after))
      isOver = data.length === 0
      from = next
    }
    expect(names).toEqual(['n0', 'n1', 'n2', 'n3', 'n4'])
  })

  test('the feed can be limited to one or several models', async () => {
    const since = await end()
    await client.create(MODEL, {})
    await client.create('rel.Circle', { name: 'c' })
    await client.create('rel.Company', { name: 'c' })
    const modelsOf = async (query: string) =>
      (json(await user.get(`/ws/changes?since=${since}&${query}`)) as { data: { model: string }[] }).data.map(
        ({ model }) => model,
      )
    expect(await modelsOf(`model=${MODEL}`)).toEqual([MODEL])
    expect(await modelsOf(`model=${MODEL},rel.Circle`)).toEqual([MODEL, 'rel.Circle'])
    expect(await modelsOf(`model=${MODEL}&model=rel.Company`)).toEqual([MODEL, 'rel.Company'])
    // Without matching changes, the next cursor is still the end.
    expect(json(await user.get(`/ws/changes?since=${since}&model=rel.Badge`))).toEqual({
      status: 0,
      data: [],
      next: await end(),
    })
  })

  test('a long poll is answered by the next write, on this node or another', async () => {
    const other = await startService(engine, { location: service.location })
    const writer = await HttpClient.login(other.url, USERNAME, PASSWORD)
    for (const by of [client, writer]) {
      const since = await end()
      const waiting = client.changes({ since, wait: 30, model: MODEL })
      const { data } = await by.create(MODEL, { firstName: 'late' })
      expect(await waiting).toMatchObject({ data: [{ id: data.id, action: 'create' }] })
    }
    await other.close()
  })

  test('a long poll that starts right after a commit is answered', async () => {
    const { changeWaiters, db } = service.app
    const { signal } = new AbortController()
    await client.create(MODEL, {})
    await changeWaiters.wait(0, WAIT_MS, signal)
    const begunMs = performance.now()
    ;(db.commits as CommitNotifier).publish()
    await changeWaiters.wait(0, WAIT_MS, signal)
    expect(performance.now() - begunMs).toBeLessThan(WAIT_MS)
  })

  test('a find answers the sequence number of the last change that it shows', async () => {
    const { seq } = await client.find(MODEL)
    await client.create(MODEL, {})
    expect((await client.find(MODEL)).seq).toBe(seq + 1)
    expect((await client.find(MODEL, { offset: 10_000 })).seq).toBe(seq + 1)
    expect((await client.search(MODEL, { data: { criteria: [] } })).seq).toBe(seq + 1)
  })

  describe('a stream of changes', () => {
    test('a stream has one event for each change, and resumes after Last-Event-ID', async () => {
      const since = await end()
      await client.create(MODEL, { firstName: 'a\nb' })
      await client.create(MODEL, { firstName: 'second' })
      const first = new EventReader(client, `since=${since}&model=${MODEL}`)
      const { headers, status } = await first.response
      expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const seen = await nextEvent(first)
      expect(seen).toMatchObject({ id: String(since + 1), event: 'change' })
      expect(JSON.parse(seen?.data ?? '')).toMatchObject({ changes: { firstName: { after: 'a\nb' } } })
      first.close()
      const again = new EventReader(client, `since=0`, { 'last-event-id': first.lastId })
      expect((await nextEvent(again))?.id).toBe(String(since + 2))
      again.close()
    })

    test('an invalid or unauthenticated stream request is an ordinary error', async () => {
      const answer = await user.get('/ws/changes?since=x', { accept: 'text/event-stream' })
      expectError(answer, 400, 'bad-request')
      expectError(
        await send(service.url, { path: '/ws/changes', headers: { accept: 'text/event-stream' } }),
        401,
        'unauthenticated',
      )
    })

    test('an account can have at most 100 streams; the next one is 429', async () => {
      const reader = await HttpClient.login(service.url, USERNAME, PASSWORD)
      const streams: EventReader[] = []
      for (let count = 0; count < 100; count++) streams.push(new EventReader(reader, 'since=0'))
      for (const stream of streams) expect((await stream.response).status).toBe(200)
      const headers = { accept: 'text/event-stream' }
      expectError(await user.get('/ws/changes', headers), 429, 'too-many')
      expect((await user.get('/ws/changes')).status).toBe(200)
      for (const stream of streams) stream.close()
      await expect.poll(async () => (await user.get('/ws/changes?since=0&wait=1')).status).toBe(200)
    })

    test('a stream that fails ends with a refused event, and the log says why', async () => {
      const location = await preparedLocation(engine)
      const database = await FailingDatabase.open(location.url)
      const lines: string[] = []
      const log = pino({ level: 'error' }, { write: (line) => lines.push(line) })
      const broken = await startService(engine, { location, database, log })
      const events = new EventReader(
        await HttpClient.login(broken.url, USERNAME, PASSWORD),
        'since=0',
      ).events()
      expect((await events.next()).value).toMatchObject({ event: 'change' })
      database.failure = new Error('the store is broken')
      ;(database.commits as CommitNotifier).publish()
      let last: unknown
      for await (const event of events) last = event
      expect(last).toMatchObject({ event: 'refused', data: expect.stringContaining('"internal"') as unknown })
      expect(lines.join('')).toContain('the store is broken')
      expect(lines.join('')).toContain('change stream failed')
      database.failure = undefined
      await broken.close()
      location.remove()
    })

    test('a stream does not count as a request in flight', async () => {
      const narrow = await startService(engine, {
        location: service.location,
        http: { maxConcurrentRequests: 2 },
      })
      const reader = await HttpClient.login(narrow.url, USERNAME, PASSWORD)
      const streams: EventReader[] = []
      for (let count = 0; count < 5; count++) {
        const stream = new EventReader(reader, 'since=0')
        streams.push(stream)
        expect((await nextEvent(stream))?.event).toBe('change')
      }
      expect((await reader.find(MODEL)).offset).toBe(0)
      for (const stream of streams) stream.close()
      await narrow.close()
    })
  })

  test('the feed answers JSON or events depending on Accept, and HEAD as JSON', async () => {
    const typeFor = async (accept: string, method = 'GET') => {
      const headers = { cookie: client.cookie, accept }
      const { response } = { response: await fetch(`${service.url}/ws/changes`, { method, headers }) }
      await response.body?.cancel()
      return response.headers.get('content-type')?.split(';')[0]
    }
    expect(await typeFor('text/event-stream', 'HEAD')).toBe('application/json')
    expect(await typeFor('text/event-stream;q=0, application/json')).toBe('application/json')
    expect(await typeFor('application/json, Text/Event-Stream;q=0.5')).toBe('text/event-stream')
    const stream = new EventReader(client, 'since=0', { 'last-event-id': '' })
    expect((await nextEvent(stream))?.event).toBe('change')
    stream.close()
  })

  test.each([
    ['since=-1', /since must be a whole number/],
    ['since=1.5', /since must be/],
    ['since=&limit=x&wait=y', /since must be.*limit must be.*wait must be/],
    ['limit=0', /limit must be at least 1/],
    ['since=99999999999999999999', /since must be/],
    ['since=1&since=2', /since must be/],
    ['model=', /^model must name at least one model, or be omitted$/],
    ['model=,%20,&wait=30', /^model must name at least one model, or be omitted$/],
    ['models=crm.Contact', /^unknown parameter "models" \(did you mean "model"\?\)$/],
    [
      'limit=0&Since=1&x=y',
      /parameter "Since" .* "since"\?\); unknown parameter "x"; known parameters: .*; limit must be/,
    ],
  ])('the feed query %s is rejected with every error named', async (query, words) => {
    const answer = await user.get(`/ws/changes?${query}`)
    expectError(answer, 400, 'bad-request')
    expect(envelope(answer).data['message']).toMatch(words)
  })

  test('the feed of an unknown model is rejected with 404', async () => {
    expectError(await user.get('/ws/changes?model=crm.Nothing'), 404, 'unknown-model')
  })

  test('a cursor below the retention floor or beyond the end of the feed is 410', async () => {
    const ahead = await user.get(`/ws/changes?since=${(await end()) + 1}`)
    expectError(ahead, 410, 'gone')
    await service.app.db.transaction((tx) => raiseRetentionFloor(tx, 5))
    const behind = await user.get('/ws/changes?since=4')
    expectError(behind, 410, 'gone')
    expect(envelope(behind).data).toMatchObject({ since: 4, horizon: 5, last: await end() })
    expect((await user.get('/ws/changes?since=5')).status).toBe(200)
  })
})

async function nextEvent(reader: EventReader) {
  const { value } = await reader.events().next()
  return value as { readonly id: string; readonly event: string; readonly data: string } | undefined
}
