// Downloads of parts of a file (Range), and that both engines read only the part.
import { ReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordsFor } from '../../src/service/records/records.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records } from '../../src/wire.js'
import { CountingDatabase } from '../counting-database.js'
import {
  catchError,
  identityIn,
  onEveryEngine,
  preparedLocation,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { asUser, envelope, expectError, openSession, type Answer, type User } from './exchange.js'

const FOLDER = 'doc.Folder'
const TEXT = 'abcdefghij'
const MIB = 1024 * 1024
/** Several parts of PostgreSQL's blob store, and no multiple of their size. */
const LARGE_BYTES = 5 * MIB + 12_345

/** Each byte tells its position. */
function fillLarge(): Buffer {
  const large = Buffer.alloc(LARGE_BYTES)
  for (let at = 0; at < LARGE_BYTES; at++) large[at] = (at % 251) ^ (at >> 16)
  return large
}

async function readAll(content: AsyncIterable<Uint8Array> = Readable.from([])): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: CountingDatabase
  let service: Service
  let records: Records
  let user: User
  let small: string
  let empty: string
  let largeId: number
  const large = fillLarge()

  beforeAll(async () => {
    location = await preparedLocation(engine)
    db = new CountingDatabase(await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 }))
    service = await startService(engine, { location, database: db, expects: [] })
    records = recordsFor(service.app, await identityIn(service))
    user = asUser(service.url, await openSession(service.url))
    small = toPath(await upload(Buffer.from(TEXT)))
    empty = toPath(await upload(Buffer.alloc(0)))
    largeId = await upload(large)
  })
  afterAll(async () => {
    await service.close()
    location.remove()
  })

  const toPath = (id: number) => `/ws/rest/${FOLDER}/${id}/cover/download`
  const upload = async (content: Buffer) =>
    (await records.upload(FOLDER, { name: 'a.txt', content: Readable.from([content]) })).data.id
  const summarize = ({ status, headers, text }: Answer) => [
    status,
    headers['content-range'],
    headers['content-length'],
    text,
  ]
  const WHOLE = [200, undefined, '10', TEXT]

  const parts: readonly (readonly [range: string, contentRange: string, text: string])[] = [
    ['bytes=0-0', '0-0', 'a'],
    ['bytes=2-4', '2-4', 'cde'],
    ['bytes=5-', '5-9', 'fghij'],
    ['bytes=9-9', '9-9', 'j'],
    ['bytes=0-9', '0-9', TEXT],
    ['bytes=8-99999999999999999999', '8-9', 'ij'],
    ['bytes=-3', '7-9', 'hij'],
    ['bytes=-10', '0-9', TEXT],
    ['bytes=-11', '0-9', TEXT],
    ['BYTES=1-1', '1-1', 'b'],
    ['bytes = 1-1 ', '1-1', 'b'],
  ]
  test.for(parts)('Range: %s gets bytes %s', async ([range, contentRange, text]) => {
    const answer = await user.get(small, { range })
    expect(summarize(answer)).toEqual([206, `bytes ${contentRange}/10`, String(text.length), text])
    const { headers } = answer
    const whole = (await user.get(small)).headers
    for (const name of [
      'etag',
      'content-type',
      'content-disposition',
      'content-security-policy',
      'accept-ranges',
    ])
      expect(headers[name], name).toBe(whole[name])
    expect(headers['accept-ranges']).toBe('bytes')
  })

  test.for([
    ...['bytes=0-1,3-4', 'bytes=0-1, -1', 'bytes=4-3', 'bytes=a-b', 'bytes=-', 'bytes=', 'bytes 0-1', '0-1'],
    ...['lines=0-1', 'bytes=1-2-3', 'bytes=-1-2', 'bytes=1.5-2', 'bytes=+1-2', ''],
  ])('Range: "%s" is ignored', async (range) => {
    expect(summarize(await user.get(small, { range }))).toEqual(WHOLE)
  })

  test.for(['bytes=10-', 'bytes=10-20', 'bytes=99999999999999999999-', 'bytes=-0'])(
    'Range: %s is beyond the end of the file: 416 with its size',
    async (range) => {
      const answer = await user.get(small, { range })
      expectError(answer, 416, 'range')
      expect(answer.headers['content-range']).toBe('bytes */10')
      expect(envelope(answer).data).toMatchObject({ title: 'Range not satisfiable', size: 10 })
    },
  )

  test('an empty file has no range', async () => {
    const answer = await user.get(empty, { range: 'bytes=0-' })
    expectError(answer, 416, 'range')
    expect(answer.headers['content-range']).toBe('bytes */0')
    expect(summarize(await user.get(empty, { range: 'bytes=-5' }))).toEqual([200, undefined, '0', ''])
  })

  describe('other headers', () => {
    const range = 'bytes=2-4'

    test('If-Range with the current ETag gets the part, with anything else the whole file', async () => {
      const { etag = '' } = (await user.get(small)).headers
      expect((await user.get(small, { range, 'if-range': etag })).text).toBe('cde')
      for (const other of [`W/${etag}`, '"0"', 'Wed, 21 Oct 2015 07:28:00 GMT', ''])
        expect(summarize(await user.get(small, { range, 'if-range': other })), other).toEqual(WHOLE)
      const beyond = { range: 'bytes=10-', 'if-range': '"0"' }
      expect(summarize(await user.get(small, beyond))).toEqual(WHOLE)
    })

    test('If-None-Match is evaluated first', async () => {
      const { etag = '' } = (await user.get(small)).headers
      for (const each of [range, 'bytes=10-']) {
        const { status, text } = await user.get(small, { range: each, 'if-none-match': etag })
        expect([status, text]).toEqual([304, ''])
      }
    })

    test('HEAD ignores the range, and says that ranges exist', async () => {
      const { status, headers } = await user.ask('HEAD', small, undefined, { range })
      expect([status, headers['content-length'], headers['accept-ranges']]).toEqual([200, '10', 'bytes'])
      expect(headers['content-range']).toBeUndefined()
    })
  })

  describe('a large file', () => {
    const PART = 256 * 1024
    const ranges = [
      { first: 0, last: 0 },
      { first: PART - 1, last: PART },
      { first: 3 * PART, last: 4 * PART - 1 },
      { first: 2 * PART + 17, last: 9 * PART + 4 },
      { first: LARGE_BYTES - 5, last: LARGE_BYTES - 1 },
      { first: 0, last: LARGE_BYTES - 1 },
    ]

    test.for(ranges)('the part has the bytes %o', async (range) => {
      const download = await records.download(FOLDER, largeId, 'cover', { chooseRange: () => range })
      expect(download).toMatchObject({ size: LARGE_BYTES, range })
      const content = await readAll(download?.content)
      expect(content.equals(large.subarray(range.first, range.last + 1))).toBe(true)
    })

    test.for([
      { first: LARGE_BYTES, last: LARGE_BYTES },
      { first: 5, last: 4 },
      { first: -1, last: 4 },
      { first: 0.5, last: 4 },
    ])('a program cannot choose the range %o', async (range) => {
      const call = records.download(FOLDER, largeId, 'cover', { chooseRange: () => range })
      expect(await catchError(call)).toMatchObject({ kind: 'range' })
    })

    test('the engine reads only the part', async () => {
      const [first, last] = [3 * MIB + 5, 3 * MIB + 104]
      let bytesRead = 0
      const characters = await db.charactersOf(async () => {
        const download = await records.download(FOLDER, largeId, 'cover', {
          chooseRange: () => ({ first, last }),
        })
        const content = download?.content
        expect(await readAll(content)).toHaveLength(100)
        if (content instanceof ReadStream) bytesRead = content.bytesRead
      })
      // SQLite has the content in a file, and PostgreSQL returns it as text, in parts of 256 KiB.
      if (engine === 'sqlite') expect(bytesRead).toBe(100)
      else expect(characters).toBeLessThan(2 * PART)
    })

    test('a download that ends early continues where it ended', async () => {
      const half = Math.floor(LARGE_BYTES / 2)
      const path = toPath(largeId)
      const { headers } = await user.ask('HEAD', path)
      const read = async (range: string) => {
        const response = await fetch(service.url + path, {
          headers: { cookie: await openSession(service.url), range, 'if-range': headers.etag ?? '' },
        })
        return [response.status, Buffer.from(await response.arrayBuffer())] as const
      }
      const [[status, start], [, end]] = [await read(`bytes=0-${half - 1}`), await read(`bytes=${half}-`)]
      expect(status).toBe(206)
      expect(Buffer.concat([start, end]).equals(large)).toBe(true)
    })
  })
})
