// Uploads and downloads exactly as they are sent: forms of all kinds, file names with paths, and invalid requests.
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import net from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { auditFiles, blobFilesIn, filesFolder } from '../file-audit.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import {
  asUser,
  envelope,
  expectError,
  json,
  only,
  openSession,
  rawRequest,
  send,
  sendRaw,
  type Answer,
  type User,
} from './exchange.js'

const LIMIT = 100_000
const PATH = '/ws/rest/doc.Paper/upload'
const BOUNDARY = 'x-boundary-x'
const FORM = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
const DATA = JSON.stringify({ data: { title: 'Deed' } })

interface Part {
  readonly name?: string
  /** The raw text after `filename=`. */
  readonly fileName?: string
  readonly type?: string
  readonly content: string | Buffer
}

const request: Part = { name: 'request', content: DATA }
const field: Part = { name: 'field', content: 'scan' }
const file: Part = { name: 'file', fileName: '"deed.txt"', content: 'content' }

onEveryEngine((engine) => {
  let service: Service
  let cookie: string
  let user: User

  beforeAll(async () => {
    service = await startService(engine, { settings: { uploadLimitBytes: LIMIT } })
    cookie = await openSession(service.url)
    user = asUser(service.url, cookie)
  })
  afterAll(() => service.close())
  afterEach(async () => {
    expect((await auditFiles(service.app.db, service.location.url)).violations).toEqual([])
  })

  const post = (parts: readonly Part[], headers: Record<string, string> = {}, path = PATH) =>
    send(service.url, { method: 'POST', path, headers: { cookie, ...FORM, ...headers }, body: formOf(parts) })
  const download = (id: number, more: Record<string, string> = {}) =>
    user.get(`/ws/rest/doc.Paper/${id}/scan/download`, more)
  const upload = async (part: Partial<Part> = {}) => only(await post([request, field, { ...file, ...part }]))

  describe('upload forms', () => {
    const orders = [
      [request, field, file],
      [file, field, request],
      [field, file, request],
    ]
    test.for(orders)('an upload accepts its parts in any order', async (parts) => {
      const answer = await post(parts)
      expect(only(answer)).toMatchObject({ version: 0, title: 'Deed' })
      expect(answer.headers.etag).toMatch(/^"0\./)
      expect((await download(only(answer).id)).text).toBe('content')
    })

    test('an upload accepts its JSON as a file part, as some browsers send it', async () => {
      const blob = { ...request, fileName: '"blob"', type: 'application/json' }
      expect(only(await post([blob, field, file]))).toMatchObject({ title: 'Deed' })
    })

    test('an upload needs no request without required fields, and no field if there is only one', async () => {
      const path = '/ws/rest/doc.Folder/upload'
      expect(only(await post([file], {}, path))).toMatchObject({ version: 0, title: null })
    })

    test('an upload form may have a preamble and an epilogue', async () => {
      const body = Buffer.concat([
        Buffer.from('preamble\r\n'),
        formOf([request, field, file]),
        Buffer.from('epilogue'),
      ])
      const headers = { cookie, ...FORM }
      only(await send(service.url, { method: 'POST', path: PATH, headers, body }))
    })
  })

  const bad: readonly (readonly [what: string, parts: readonly Part[], status: number, kind: string])[] = [
    ['no part at all', [], 400, 'bad-request'],
    ['no file', [request, field], 400, 'bad-request'],
    ['two files', [request, field, file, file], 400, 'bad-request'],
    ['a duplicate request', [request, request, field, file], 400, 'bad-request'],
    ['an unknown part', [request, field, file, { name: 'extra', content: '' }], 400, 'bad-request'],
    ['a part without a name', [request, field, { content: 'x' }, file], 400, 'bad-request'],
    [
      'many parts',
      Array.from({ length: 50 }, (_, i) => ({ name: `p${i}`, content: '' })),
      400,
      'bad-request',
    ],
    ['no field although there are two', [request, file], 400, 'bad-request'],
    ['an unknown field', [request, { ...field, content: 'scam' }, file], 404, 'not-found'],
    ['a field that is not binary', [request, { ...field, content: 'title' }, file], 404, 'not-found'],
    ['a long field', [request, { ...field, content: 'x'.repeat(5_000) }, file], 413, 'too-large'],
    ['malformed JSON', [{ ...request, content: '{' }, field, file], 400, 'bad-request'],
    [
      'JSON that is not UTF-8',
      [{ ...request, content: Buffer.from([0x7b, 0xff]) }, field, file],
      400,
      'bad-request',
    ],
    ['JSON without data', [{ ...request, content: '{}' }, field, file], 400, 'bad-request'],
    ['a prototype', [{ ...request, content: '{"data":{"__proto__":{}}}' }, field, file], 400, 'bad-request'],
    ['a long request', [{ ...request, content: ' '.repeat(3_000_000) }, field, file], 413, 'too-large'],
    ['an invalid id', [{ ...request, content: '{"data":{"id":"1"}}' }, field, file], 400, 'bad-request'],
    [
      'a record that does not exist',
      [{ ...request, content: '{"data":{"id":9999,"version":0}}' }, field, file],
      404,
      'not-found',
    ],
    ['invalid values', [{ ...request, content: '{"data":{}}' }, field, file], 422, 'invalid'],
    [
      'a file over the limit',
      [request, field, { ...file, content: 'x'.repeat(LIMIT + 1) }],
      413,
      'too-large',
    ],
  ]
  test.for(bad)('an upload form with %s is rejected', async ([, parts, status, kind]) => {
    expectError(await post(parts), status, kind)
    // The connection is still usable.
    expect((await user.get('/ws/rest/doc.Paper?limit=1')).status).toBe(200)
  })

  const garbled: readonly (readonly [what: string, type: string, body: string | Buffer, status: number])[] = [
    ['without a boundary', 'multipart/form-data', formOf([file]), 400],
    ['with an empty boundary', 'multipart/form-data; boundary=', formOf([file]), 400],
    ['with another boundary', 'multipart/form-data; boundary=other', formOf([file]), 400],
    ['without an end', FORM['content-type'], formOf([request, field, file]).subarray(0, -20), 400],
    ['of random bytes', FORM['content-type'], randomBytes(5_000), 400],
    ['without a body', FORM['content-type'], '', 400],
    ['as JSON', 'application/json', DATA, 415],
    ['as a urlencoded form', 'application/x-www-form-urlencoded', 'file=x', 415],
    ['as multipart/mixed', `multipart/mixed; boundary=${BOUNDARY}`, formOf([file]), 415],
  ]
  test.for(garbled)('an upload %s is rejected', async ([, type, body, status]) => {
    const headers = { cookie, 'content-type': type }
    const answer = await send(service.url, { method: 'POST', path: PATH, headers, body })
    expect([answer.status, envelope(answer).status], answer.text).toEqual([status, -1])
  })

  const unread: readonly (readonly [what: string, head: string])[] = [
    ['no disposition', 'Content-Type: application/json'],
    ['another disposition', 'Content-Disposition: attachment; name="request"'],
    ['no head', ''],
    [
      'a head that is too long',
      `X-Long: ${'x'.repeat(9_000)}\r\nContent-Disposition: form-data; name="request"`,
    ],
    ['an encoding', 'Content-Disposition: form-data; name="request"\r\nContent-Transfer-Encoding: base64'],
  ]
  test.for(unread)(
    'an upload whose request part has %s is rejected, and creates no record',
    async ([, head]) => {
      const { id } = await upload()
      const asked = `--${BOUNDARY}\r\n${head}\r\n\r\n{"data":{"id":${id},"version":0}}\r\n`
      // Without a request part the file would create a record.
      const metaFile = Buffer.concat([Buffer.from(asked), formOf([file])])
      const total = async () => (await user.get('/ws/rest/com.axelor.meta.db.MetaFile?limit=0')).text
      const before = await total()
      const path = '/ws/rest/com.axelor.meta.db.MetaFile/upload'
      const answer = await send(service.url, {
        method: 'POST',
        path,
        headers: { cookie, ...FORM },
        body: metaFile,
      })
      expectError(answer, 400, 'bad-request')
      expect(await total()).toBe(before)
    },
  )

  test('an upload with data after the end of its form is rejected', async () => {
    const late = Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n`)
    const body = Buffer.concat([formOf([field, file]), late])
    expectError(
      await send(service.url, { method: 'POST', path: PATH, headers: { cookie, ...FORM }, body }),
      400,
      'bad-request',
    )
  })

  test('an upload that can be rejected by its headers is rejected before its body arrives', async () => {
    const head = { ...FORM, cookie, 'content-length': '90000' }
    const cases = [
      ['POST /ws/rest/doc.Nothing/upload HTTP/1.1', head, 404],
      ['POST /ws/rest/crm.Contact/upload HTTP/1.1', head, 404],
      [`POST ${PATH} HTTP/1.1`, { ...FORM, 'content-length': '90000' }, 401],
      [`POST ${PATH} HTTP/1.1`, { ...head, origin: 'https://elsewhere.example' }, 403],
      [`POST ${PATH} HTTP/1.1`, { ...head, 'content-length': '900000000' }, 413],
      [`POST ${PATH} HTTP/1.1`, { ...head, 'content-type': 'image/png' }, 415],
      [`POST ${PATH} HTTP/1.1`, { ...head, 'content-encoding': 'gzip' }, 415],
    ] as const
    for (const [line, headers, status] of cases) {
      expect(
        (await sendRaw(service.url, rawRequest(line, headers))).status,
        JSON.stringify([line, headers]),
      ).toBe(status)
    }
  })

  test('a client that disconnects during an upload leaves no content behind', async () => {
    const body = formOf([request, field, { ...file, content: 'x'.repeat(LIMIT) }])
    const headers = { ...FORM, cookie, 'content-length': String(body.length) }
    const { hostname, port } = new URL(service.url)
    for (const sent of [0, 400, 50_000]) {
      const socket = net.connect(Number(port), hostname)
      socket.write(rawRequest(`POST ${PATH} HTTP/1.1`, headers))
      socket.write(body.subarray(0, sent))
      const folder = filesFolder(service.location.url)
      // Waits until the content begins to arrive.
      const isArriving = () =>
        folder === undefined || blobFilesIn(folder).some((place) => place.startsWith('incoming'))
      if (sent === 50_000) while (!isArriving()) await sleep(2)
      socket.destroy()
    }
    const folder = filesFolder(service.location.url) ?? ''
    const isClean = () => blobFilesIn(folder).every((place) => !place.startsWith('incoming'))
    while (!isClean()) await sleep(2)
  })

  describe('file names', () => {
    const names = [
      ['"deed.txt"', 'deed.txt'],
      ['"C:\\\\Users\\\\ada\\\\deed.txt"', 'deed.txt'],
      ['"../../../etc/passwd"', 'passwd'],
      ['"/etc/"', 'file'],
      ['".."', 'file'],
      ['""', 'file'],
      ['"Straße – Ñandú.txt"', 'Straße – Ñandú.txt'],
      ['"A\u030angstrom.txt"', 'Ångstrom.txt'],
      ['"photo\u202egpj.exe"', 'photogpj.exe'],
      ['"tab\there.txt"', 'tabhere.txt'],
      [`"${'x'.repeat(400)}.pdf"`, `${'x'.repeat(251)}.pdf`],
      [`deed.txt; filename*=UTF-8''%e2%82%ac.txt`, '€.txt'],
    ] as const
    test.for(names)('the file name %s is stored as %s', async ([sent, kept]) => {
      const { id } = await upload({ fileName: sent })
      const { headers } = await download(id)
      const encoded = /filename\*=UTF-8''(\S+)$/.exec(headers['content-disposition'] ?? '')?.[1] ?? ''
      expect(decodeURIComponent(encoded)).toBe(kept)
    })

    test('a file name cannot end a header or begin another one', async () => {
      const data = { fileName: 'a"; b%\r\nSet-Cookie: x=1.txt' }
      const path = '/ws/rest/com.axelor.meta.db.MetaFile'
      const sent = { name: 'request', content: JSON.stringify({ data }) }
      const record = only(await post([sent, file], {}, `${path}/upload`))
      const { headers } = await user.get(`${path}/${record.id}/content/download`)
      expect(headers['set-cookie']).toBeUndefined()
      expect(headers['content-disposition']).toBe(
        `attachment; filename="a_; b_Set-Cookie: x=1.txt"; filename*=UTF-8''a%22%3B%20b%25Set-Cookie%3A%20x%3D1.txt`,
      )
    })
  })

  const types: readonly (readonly [what: string, content: string | Buffer, type: string])[] = [
    ['png', Buffer.from('\x89PNG\r\n\x1a\n\0', 'latin1'), 'image/png'],
    ['jpeg', Buffer.from('\xff\xd8\xff\xe0', 'latin1'), 'image/jpeg'],
    ['gif', 'GIF89a', 'image/gif'],
    ['webp', 'RIFF\0\0\0\0WEBP', 'image/webp'],
    ['pdf', '%PDF-1.7', 'application/pdf'],
    ['zip', 'PK\x03\x04', 'application/zip'],
    ['gzip', Buffer.from('\x1f\x8b\x08\0', 'latin1'), 'application/gzip'],
    ['text', 'Grüße', 'text/plain; charset=utf-8'],
    ['long text cut inside a character', `a${'ü'.repeat(4_000)}`, 'text/plain; charset=utf-8'],
    [
      'svg',
      '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'text/plain; charset=utf-8',
    ],
    ['html', '<!doctype html><script>alert(1)</script>', 'text/plain; charset=utf-8'],
    ['an empty file', '', 'application/octet-stream'],
    ['random bytes', Buffer.from([0, 1, 2, 0xff]), 'application/octet-stream'],
  ]
  test.for(types)(
    'the type of an uploaded file is detected from its content, whatever the client says: %s',
    async ([, content, type]) => {
      const { id } = await upload({ content, type: 'text/html', fileName: '"page.html"' })
      const { headers } = await download(id)
      expect(headers).toMatchObject({
        ...{ 'content-type': type, 'content-length': String(Buffer.byteLength(content)) },
        ...{ 'x-content-type-options': 'nosniff', 'content-security-policy': "sandbox; default-src 'none'" },
        'content-disposition': `attachment; filename="page.html"; filename*=UTF-8''page.html`,
      })
    },
  )

  describe('downloads', () => {
    test('the ETag of a download is the hash of its content, and If-None-Match answers 304', async () => {
      const { id } = await upload()
      const { headers } = await download(id)
      expect(headers.etag).toBe(`"${createHash('sha256').update('content').digest('hex')}"`)
      const again = await download(id, { 'if-none-match': headers.etag ?? '' })
      expect([again.status, again.text]).toEqual([304, ''])
      expect((await download(id, { 'if-none-match': '"other"' })).status).toBe(200)
    })

    test('HEAD of a download answers its headers without the content', async () => {
      const { id } = await upload()
      const path = `/ws/rest/doc.Paper/${id}/scan/download`
      const head = await user.ask('HEAD', path)
      expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', '7'])
    })

    test('a download of an empty field is 204, of a missing record or field 404', async () => {
      const { id } = only(await user.create('doc.Paper', { title: 'Empty' }))
      const empty = await download(id)
      expect([empty.status, empty.text]).toEqual([204, ''])
      for (const path of ['99999/scan', `${id}/title`, `${id}/nothing`, '0/scan', 'x/scan', '1e3/scan']) {
        expectError(await user.get(`/ws/rest/doc.Paper/${path}/download`), 404, 'not-found')
      }
    })

    test('a download without a session is rejected with 401', async () => {
      const { id } = await upload()
      expectError(
        await send(service.url, { path: `/ws/rest/doc.Paper/${id}/scan/download` }),
        401,
        'unauthenticated',
      )
    })
  })

  test('clearing a file needs the current version and no cross-site request', async () => {
    const { id } = await upload()
    const path = `/ws/rest/doc.Paper/${id}/scan/download`
    expectError(await user.ask('DELETE', path), 400, 'bad-request')
    expectError(await user.ask('DELETE', `${path}?version=5`), 409, 'conflict')
    expectError(await user.ask('DELETE', path, undefined, { 'if-match': '"5"' }), 412, 'stale-match')
    const foreign = { origin: 'https://elsewhere.example', 'if-match': '"0"' }
    expectError(await user.ask('DELETE', path, undefined, foreign), 403, 'forbidden')
    const answer = await user.ask('DELETE', path, undefined, { 'if-match': '"0"' })
    expect([only(answer).version, answer.headers.etag?.slice(0, 3)]).toEqual([1, '"1.'])
    expect((await user.get(path)).status).toBe(204)
  })

  test('other methods on upload and download are 405, and OPTIONS lists the allowed ones', async () => {
    const cases = [
      [PATH, 'GET', 'POST, OPTIONS'],
      ['/ws/rest/doc.Paper/1/scan/download', 'POST', 'GET, DELETE, HEAD, OPTIONS'],
    ] as const
    for (const [path, method, allow] of cases) {
      const answer: Answer = await user.ask(method, path)
      expect([answer.status, answer.headers.allow], path).toEqual([405, allow])
      const options = await user.ask('OPTIONS', path)
      expect([options.status, options.headers.allow], path).toEqual([204, allow])
    }
  })

  test('read and fetch of a record with a file work, and other paths below it are 404', async () => {
    const { id } = await upload()
    expect((await user.get(`/ws/rest/doc.Paper/${id}`)).status).toBe(200)
    const fetched = await send(service.url, {
      ...{ method: 'POST', path: `/ws/rest/doc.Paper/${id}/fetch`, body: '{"fields":["title"]}' },
      headers: { cookie, 'content-type': 'application/json' },
    })
    expect(json(fetched)).toMatchObject({ data: [{ title: 'Deed' }] })
    expectError(await user.get(`/ws/rest/doc.Paper/${id}/scan`), 404, 'not-found')
  })
})

function formOf(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap(({ name, fileName, type, content }) => {
    const disposition = [
      'form-data',
      ...(name === undefined ? [] : [`name="${name}"`]),
      ...(fileName === undefined ? [] : [`filename=${fileName}`]),
    ].join('; ')
    const head = [
      `--${BOUNDARY}`,
      `Content-Disposition: ${disposition}`,
      ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    ]
    return [Buffer.from(`${head.join('\r\n')}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')]
  })
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}
