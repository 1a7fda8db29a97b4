// follow(): every change once and in order, over lost connections, restarts, dead connections and ended sessions.
import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, UnauthenticatedError, type Change, type ConnectOptions } from 'verso-records/client'
import { EventParser } from '../../../src/client/event-stream.js'
import { followWithoutCursor, resumeTooLate } from '../../mutants/client.js'
import { models } from '../../models.js'
import {
  onEngineOfTier,
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type Service,
} from '../../targets.js'
import type { DatabaseLocation } from '../../targets.js'
import { rejection } from './claims.js'
import { startFaultyProxy, type FaultyProxy } from './faulty-proxy.js'

const CONTACT = 'crm.Contact'
const UPDATES = 40

test('events are the same however the connection cuts them, with any line ends', () => {
  const line = fc.stringMatching(/^[^\r\n]*$/)
  const event = fc.record({
    id: fc.option(fc.nat()),
    name: fc.option(fc.constantFrom('change', 'refused')),
    data: fc.array(line, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(
      fc.array(event),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      (events, end, sizes) => {
        const blocks = events.map(({ id, name, data }) => [
          ': a comment',
          ...(id === null ? [] : [`id: ${id}`]),
          ...(name === null ? [] : [`event: ${name}`]),
          ...data.map((each) => `data: ${each}`),
          '',
        ])
        const bytes = new TextEncoder().encode(
          blocks
            .flat()
            .map((each) => each + end)
            .join('') + '\n',
        )
        const [parser, decoder] = [new EventParser(), new TextDecoder()]
        const parsed: unknown[] = []
        for (let from = 0; from < bytes.length;) {
          const size = Number(sizes.next().value)
          parsed.push(...parser.push(decoder.decode(bytes.subarray(from, from + size), { stream: true })))
          from += size
        }
        expect(parsed).toEqual(
          events.map(({ id, name, data }) => ({
            id: id === null ? undefined : String(id),
            event: data.length === 0 ? undefined : (name ?? 'message'),
            data: data.join('\n'),
          })),
        )
      },
    ),
  )
})

onEngineOfTier((engine) => {
  let location: DatabaseLocation
  let service: Service
  let proxy: FaultyProxy
  /** Ends with the database, not with the service. */
  let key = ''

  beforeAll(async () => {
    location = await preparedLocation(engine, models)
    service = await startService(engine, { location })
    key = await createKey()
    proxy = await startFaultyProxy(service.url)
  })
  afterAll(async () => {
    await proxy.close()
    await service.close()
    location.remove()
  })

  const open = (options?: ConnectOptions) =>
    connect(proxy.url, { username: USERNAME, password: PASSWORD }, options)

  /** Writes past the proxy, also after a restart. */
  const writer = () => connect(service.url, { key }).model(CONTACT)

  async function createKey(): Promise<string> {
    const admin = connect(service.url, { username: USERNAME, password: PASSWORD })
    const { body } = await admin.request('POST', '/ws/me/keys', { body: { data: { name: 'writer' } } })
    return (body as { data: [{ key: string }] }).data[0].key
  }

  interface FollowRun {
    readonly follow: (since: number, signal: AbortSignal) => AsyncIterable<Change>
    /** Called before each update. */
    readonly disturb: (update: number) => Promise<void> | void
  }

  /** Updates a record while it is followed. Returns the versions that were seen, until the last one came or none came for long. */
  async function followUpdates({ follow, disturb }: FollowRun): Promise<readonly number[]> {
    const { id } = await writer().create({ notes: '0' })
    const { seq } = await writer().find({ limit: 0 })
    const stop = new AbortController()
    const seen: number[] = []
    let progress = () => {}
    const following = (async () => {
      for await (const change of follow(seq, stop.signal)) {
        if (change.id === id) seen.push(change.version)
        progress()
        if (change.id === id && change.version === UPDATES) break
      }
    })()
    // Awaited below; it may fail before.
    following.catch(() => undefined)
    for (let version = 0; version < UPDATES; version++) {
      await disturb(version)
      await writer().update(id, { version, notes: String(version) })
      // A change that was lost must not end the test: only a change that is still to come is waited for.
      const arrived = new Promise<void>((resolve) => (progress = resolve))
      if (version % 5 === 4) await Promise.race([arrived, new Promise((resolve) => setTimeout(resolve, 100))])
    }
    const late = setTimeout(() => stop.abort(), 15_000)
    await following
    clearTimeout(late)
    return seen
  }

  const all = Array.from({ length: UPDATES }, (_, index) => index + 1)

  test('a follower misses nothing and gets nothing twice over dropped connections', async () => {
    const contacts = open().model(CONTACT)
    const seen = await followUpdates({
      follow: (since, signal) => contacts.follow({ since, signal }),
      disturb: (update) => {
        if (update % 7 === 3) proxy.cut()
      },
    })
    expect(seen).toEqual(all)
    expect(proxy.requests.filter(({ path }) => path.startsWith('/ws/changes')).length).toBeGreaterThan(2)
  })

  test('a follower continues after the service was restarted', async () => {
    const contacts = open().model(CONTACT)
    const seen = await followUpdates({
      follow: (since, signal) => contacts.follow({ since, signal }),
      disturb: async (update) => {
        if (update !== UPDATES / 2) return
        await service.close()
        service = await startService(engine, { location })
        proxy.target = service.url
      },
    })
    expect(seen).toEqual(all)
  })

  test('the mutant that resumes one change too late misses changes', async () => {
    const contacts = open({ fetch: resumeTooLate(fetch) }).model(CONTACT)
    const run = followUpdates({
      follow: (since, signal) => contacts.follow({ since, signal }),
      disturb: (update) => {
        if (update % 7 === 3) proxy.cut()
      },
    })
    // A number that does not exist yet is refused, which is no better.
    const seen = await run.catch(() => [])
    expect(seen.length).toBeLessThan(UPDATES)
  })

  test('the mutant that forgets its cursor gets changes twice', async () => {
    const contacts = open().model(CONTACT)
    let drops = 0
    const seen = await followUpdates({
      follow: (since) =>
        followWithoutCursor(
          (signal) => contacts.follow({ since, signal }),
          () => drops,
        ),
      disturb: (update) => {
        if (update === 20) drops++
      },
    })
    expect(seen.length).toBeGreaterThan(UPDATES)
  })

  test('a connection that delivers nothing is replaced, and the next change comes once', async () => {
    const verso = open({ stallTimeout: 100 })
    const contacts = verso.model(CONTACT)
    const isStream = ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
      headers['accept'] === 'text/event-stream'
    const before = proxy.requests.filter(isStream).length
    const changes = contacts.follow()[Symbol.asyncIterator]()
    const next = changes.next()
    await expect.poll(() => proxy.requests.filter(isStream).length - before).toBeGreaterThan(2)
    const { id } = await contacts.create({})
    expect((await next).value).toMatchObject({ id, version: 0 })
    await contacts.update(id, { version: 0, notes: 'next' })
    expect((await changes.next()).value).toMatchObject({ id, version: 1 })
    await changes.return?.()
  })

  test('a follower logs in again when its session ends, and rejects when its key ends', async () => {
    const contacts = open().model(CONTACT)
    const admin = connect(service.url, { username: USERNAME, password: PASSWORD })
    const { body } = await admin.request('POST', '/ws/me/keys', { body: { data: { name: 'short' } } })
    const [short] = (body as { data: [{ id: number; key: string }] }).data
    const { seq: since } = await contacts.find({ limit: 0 })
    const followers = [contacts, connect(proxy.url, { key: short.key }).model(CONTACT)].map((each) =>
      each.follow({ since })[Symbol.asyncIterator](),
    )
    const first = await admin.model(CONTACT).create({})
    for (const follower of followers) expect((await follower.next()).value).toMatchObject({ id: first.id })
    await admin.request('DELETE', `/ws/me/keys/${short.id}`)
    await admin.request('DELETE', '/ws/me/sessions')
    service.clock.letASecondPass()
    const [next, refused] = followers.map((follower) => follower.next())
    const rejected = rejection(UnauthenticatedError, refused ?? Promise.resolve())
    const second = await admin.model(CONTACT).create({})
    expect((await next)?.value).toMatchObject({ id: second.id })
    const error = await rejected
    expect(error.kind).toBe('unauthenticated')
    await followers[0]?.return?.()
  })

  test('calls and followers leave no listener on the signal of the caller', async () => {
    const verso = open()
    const contacts = verso.model(CONTACT)
    const { signal } = new AbortController()
    const { id } = await contacts.create({}, { signal })
    await contacts.update(id, () => ({ notes: 'n' }), { signal })
    await contacts.read(9_999_999, {}, { signal }).catch(() => undefined)
    const { seq } = await contacts.find({ limit: 0 }, { signal })
    for await (const change of contacts.follow({ since: seq - 1, signal })) if (change.seq >= seq) break
    const folders = verso.model('doc.Folder')
    const folder = await folders.create({}, { signal })
    const content = new Blob(['x'])
    await folders.upload(folder.id, { version: 0, field: 'cover', content, name: 'a' }, { signal })
    const file = await folders.download(folder.id, 'cover', { signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await file?.bytes()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})
