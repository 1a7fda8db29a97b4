// Compressed responses: which coding a client gets, what is never compressed, and how caches tell the codings apart.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Server } from '../../src/http/server.js'
import { withOneEtag, withoutVary } from '../mutants/codings.js'
import { onEveryEngine, type Service } from '../targets.js'
import { accept, CodedService, CONTACT, LIST, MIN_BYTES } from './coded-exchange.js'
import { only, withServer, type User } from './exchange.js'

const BODY_CODINGS = ['identity', 'gzip', 'br'] as const

onEveryEngine((engine) => {
  let coded: CodedService
  let service: Service
  let user: User
  let cookie: string
  let id: number

  beforeAll(async () => {
    coded = await CodedService.start(engine)
    ;({ service, user, cookie, id } = coded)
  })
  afterAll(() => service.close())

  const ask: CodedService['ask'] = (path, sent, url) => coded.ask(path, sent, url)
  const codingOf = async (path: string, coding: string, url?: string) =>
    (await ask(path, accept(coding), url)).headers['content-encoding']

  const choices: readonly (readonly [accepted: string, coding: string | undefined])[] = [
    ['', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0.5, gzip', 'gzip'],
    ['br ; q=0.5 , gzip;q=0.4', 'br'],
    ['br;q=0, *', 'gzip'],
    ['*', 'br'],
    ['*;q=0', undefined],
    ['gzip;q=0, br;q=0.000', undefined],
    ['deflate, zstd', undefined],
    ['identity', undefined],
    ['identity, gzip', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['gzip;q=0.1, identity;q=0', 'gzip'],
    ['gzip;q=nonsense', undefined],
    ['gzip;q=2', undefined],
  ]
  test.for(choices)('Accept-Encoding "%s" gets %s', async ([accepted, coding]) => {
    expect(await codingOf(`${LIST}?limit=300`, accepted)).toBe(coding)
  })

  test('without Accept-Encoding nothing is compressed', async () => {
    expect((await ask(`${LIST}?limit=300`)).headers['content-encoding']).toBeUndefined()
  })

  test.for(['br', 'gzip'])(
    '%s has the content of the uncompressed body, and its own length',
    async (coding) => {
      for (const path of [`${LIST}?limit=300`, `${LIST}/${id}`, `${LIST}?fields=notes&filter=id=${id}`]) {
        const plain = await ask(path)
        const coded = await ask(path, accept(coding))
        expect(coded.headers['content-encoding']).toBe(coding)
        expect(coded.text).toBe(plain.text)
        expect(coded.bytes.length).toBeLessThan(plain.bytes.length / 4)
        expect(coded.headers['content-length']).toBe(String(coded.bytes.length))
      }
    },
  )

  test('a body of 8,192 bytes is compressed, and a smaller one only if the client refuses anything else', async () => {
    const empty = only(await user.create(CONTACT, { notes: '' }))
    const path = `${LIST}/${empty.id}`
    let version = 0
    const resize = async (size: number) => {
      // An update also sets the time and the user, which are longer than null.
      const { length } = (await ask(path)).bytes
      const before = (only(await user.get(path)) as { notes?: string }).notes?.length ?? 0
      only(await user.ask('POST', path, { version: version++, notes: 'n'.repeat(before + size - length) }))
    }
    await resize(2 * MIN_BYTES)
    for (const size of [MIN_BYTES, MIN_BYTES - 1]) {
      await resize(size)
      expect((await ask(path)).bytes).toHaveLength(size)
      expect(await codingOf(path, 'gzip')).toBe(size === MIN_BYTES ? 'gzip' : undefined)
    }
    expect(await codingOf(path, 'gzip, identity;q=0')).toBe('gzip')
    expect(await codingOf(path, 'gzip, *;q=0')).toBe('gzip')
  })

  test('errors are compressed, too', async () => {
    const body = { data: { version: 7, notes: 'Größe' } }
    const sent = { method: 'POST', body, headers: { 'accept-encoding': 'br' } }
    const { status, headers, text } = await ask(`${LIST}/${id}`, sent)
    expect([status, headers['content-encoding']]).toEqual([409, 'br'])
    expect(JSON.parse(text)).toMatchObject({ status: -1, data: { kind: 'conflict', current: 0 } })
  })

  test('HEAD has the headers of GET, without the length that only compressing would tell', async () => {
    for (const path of [`${LIST}?limit=300`, `${LIST}/${id}`]) {
      const get = (await ask(path, accept('br'))).headers
      const { headers, bytes } = await ask(path, { ...accept('br'), method: 'HEAD' })
      expect(bytes).toHaveLength(0)
      const { 'content-length': length, ...others } = get
      const changing = { date: headers.date, 'x-request-id': headers['x-request-id'] }
      expect(headers).toEqual({ ...others, ...changing })
      expect(length).toBeDefined()
    }
    const { headers } = await ask(`${LIST}?limit=300`, { method: 'HEAD' })
    expect(headers['content-length']).toBe(String((await ask(`${LIST}?limit=300`)).bytes.length))
  })

  describe('what is never compressed', () => {
    const REFUSES_IDENTITY = 'br, identity;q=0'

    test.for(['/ws/me/keys', '/ws/me', '/ws/me/sessions'])('%s, which is no-store', async (path) => {
      const { status, headers } = await ask(path, accept(REFUSES_IDENTITY))
      expect([status, headers['cache-control'], headers['content-encoding']]).toEqual([
        200,
        'no-store',
        undefined,
      ])
    })

    test('an event stream', async () => {
      const headers = { cookie, accept: 'text/event-stream', 'accept-encoding': REFUSES_IDENTITY }
      const controller = new AbortController()
      const { signal } = controller
      const stream = await fetch(`${service.url}/ws/changes?since=0`, { headers, signal })
      expect(stream.headers.get('content-encoding')).toBeNull()
      const first = await stream.body?.getReader().read()
      expect(Buffer.from(first?.value ?? []).toString()).toContain('event: change')
      controller.abort()
    })

    test('the file of a binary field', async () => {
      const form = new FormData()
      form.append('file', new Blob(['text '.repeat(4_000)]), 'a.txt')
      const url = `${service.url}/ws/rest/doc.Folder`
      const uploaded = await fetch(`${url}/upload`, { method: 'POST', headers: { cookie }, body: form })
      const { data } = (await uploaded.json()) as { data: [{ id: number }] }
      const path = `/ws/rest/doc.Folder/${data[0].id}/cover/download`
      const { headers } = await ask(path, accept(REFUSES_IDENTITY))
      expect([headers['content-encoding'], headers['content-length']]).toEqual([undefined, '20000'])
    })

    test('anything, with --compression off', async () => {
      await withServer(service, { compression: false }, async (url) => {
        const { headers } = await ask(`${LIST}?limit=300`, accept(REFUSES_IDENTITY), url)
        expect(headers['content-encoding']).toBeUndefined()
        expect(headers.vary).toBe('Cookie, Authorization, API-KEY')
      })
    })
  })

  describe('caches', () => {
    /** The ETag and Vary of each coding. */
    const read = async (url?: string) => {
      const answers = await Promise.all(
        BODY_CODINGS.map((coding) => ask(`${LIST}/${id}`, accept(coding), url)),
      )
      return answers.map(({ headers }) => [headers.etag ?? '', headers.vary ?? ''] as const)
    }
    const countEtags = (all: Awaited<ReturnType<typeof read>>) => new Set(all.map(([etag]) => etag)).size
    const isVaried = (all: Awaited<ReturnType<typeof read>>) =>
      all.every(([, vary]) => vary.split(', ').includes('Accept-Encoding'))

    test('each coding has an ETag of its own, and every response varies by Accept-Encoding', async () => {
      const all = await read()
      expect([countEtags(all), isVaried(all)]).toEqual([BODY_CODINGS.length, true])
      const [[plain] = ['']] = all
      expect(all.map(([etag]) => etag)).toEqual([
        plain,
        plain.replace(/"$/, '.gzip"'),
        plain.replace(/"$/, '.br"'),
      ])
    })

    const mutants: readonly (readonly [name: string, change: (server: Server) => void])[] = [
      ['one ETag for all codings', withOneEtag],
      ['no Accept-Encoding in Vary', withoutVary],
    ]
    test.for(mutants)('the mutant with %s is caught', async ([, change]) => {
      await withServer(service, {}, async (url, server) => {
        change(server)
        const all = await read(url)
        expect(countEtags(all) === BODY_CODINGS.length && isVaried(all)).toBe(false)
      })
    })

    test('If-None-Match with the ETag of any coding is 304, and the 304 repeats that ETag', async () => {
      for (const [etag] of await read())
        for (const coding of BODY_CODINGS) {
          const headers = { 'accept-encoding': coding, 'if-none-match': `"0.other", W/${etag}` }
          const { status, headers: received, bytes } = await ask(`${LIST}/${id}`, { headers })
          expect([status, received.etag, bytes.length]).toEqual([304, etag, 0])
          expect(received.vary).toContain('Accept-Encoding')
          expect(received['content-encoding']).toBeUndefined()
        }
    })

    test('a 304 for several ETags, and for *, has that of the coding which a 200 would have', async () => {
      const all = (await read()).map(([etag]) => etag)
      for (const [index, coding] of BODY_CODINGS.entries())
        for (const held of [all.join(', '), '*']) {
          const headers = { 'accept-encoding': coding, 'if-none-match': held }
          expect((await ask(`${LIST}/${id}`, { headers })).headers.etag).toBe(all[index])
        }
    })

    test('If-Match takes the ETag of any coding', async () => {
      const { id: own } = only(await user.create(CONTACT, { notes: 'n'.repeat(MIN_BYTES) }))
      for (const coding of BODY_CODINGS) {
        const { headers } = await ask(`${LIST}/${own}`, accept(coding))
        const sent = { 'if-match': headers.etag ?? '', 'accept-encoding': coding }
        const answer = await ask(`${LIST}/${own}`, { method: 'POST', body: { data: {} }, headers: sent })
        expect(answer.status, answer.text).toBe(200)
        const next = await ask(`${LIST}/${own}`, accept(coding))
        expect(answer.headers.etag).toBe(next.headers.etag)
      }
    })
  })
})
