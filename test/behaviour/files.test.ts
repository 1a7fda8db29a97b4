// Files in binary fields: an upload is a write like any other, and content exists as long as its record refers to it.
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { changesBetween } from '../log.js'
import type { Download, Records } from '../../src/wire.js'
import { auditFiles } from '../file-audit.js'
import { enter, onEveryTarget, catchError, startService, type Service } from '../targets.js'

const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(100)])
const LIMIT = 3 * 1024 * 1024
const FILE = 'com.axelor.meta.db.MetaFile'

onEveryTarget((engine, transport) => {
  let service: Service
  let records: Records

  beforeAll(async () => {
    service = await startService(engine, { settings: { uploadLimitBytes: LIMIT } })
    records = await enter(service, transport)
  })
  afterAll(() => service.close())
  afterEach(async () => {
    expect((await auditFiles(service.app.db, service.location.url)).violations).toEqual([])
  })

  const put = async (data: object, content: Buffer | string, more: object = {}) =>
    (
      await records.upload('doc.Paper', {
        data,
        field: 'scan',
        name: 'a.png',
        content: streamOf(content),
        ...more,
      })
    ).data
  const held = async () => (await auditFiles(service.app.db, service.location.url)).held
  const bytesOf = async (model: string, id: number, field: string) =>
    wholeOf(await records.download(model, id, field))

  test('an upload creates a record, and a download returns the same bytes', async () => {
    const paper = await put({ title: 'Deed', note: 'signed' }, PNG)
    expect(paper).toMatchObject({ version: 0, title: 'Deed', note: 'signed' })
    const file = await records.download('doc.Paper', paper.id, 'scan')
    expect(file).toMatchObject({ name: 'a.png', type: 'image/png', size: PNG.length, sha256: sha256(PNG) })
    expect(await wholeOf(file)).toEqual(PNG)
  })

  test('the answer to an upload has only the requested fields', async () => {
    const sent = { data: { title: 'Shown', note: 'not shown' }, field: 'scan', name: 'a.png', content: [PNG] }
    const content = Readable.from(sent.content)
    const { data } = await records.upload(
      'doc.Paper',
      { ...sent, content },
      { returning: { fields: ['title'] } },
    )
    expect(data).toEqual({ id: data.id, version: 0, title: 'Shown' })
  })

  test.for([0, 1, 256 * 1024, 256 * 1024 + 1, LIMIT])(
    'a file of %i bytes is downloaded unchanged',
    async (size) => {
      const content = randomBytes(size)
      const { id } = await put({ title: 'Long' }, content)
      const back = await bytesOf('doc.Paper', id, 'scan')
      expect(back?.equals(content)).toBe(true)
    },
  )

  test('a file one byte over the limit is rejected as too-large, and its content is discarded', async () => {
    const before = await held()
    const { kind } = await catchError(put({ title: 'Too long' }, randomBytes(LIMIT + 1)))
    expect([kind, await held()]).toEqual(['too-large', before])
  })

  test('no answer contains a binary field, and a request that selects or filters by one is rejected', async () => {
    const paper = await put({ title: 'Hidden' }, PNG)
    const read = await records.read('doc.Paper', paper.id)
    for (const shown of [paper, read, ...(await records.find('doc.Paper')).data]) {
      expect(shown).not.toHaveProperty('scan')
      expect(shown).not.toHaveProperty('photo')
    }
    expect((await catchError(records.find('doc.Paper', { fields: 'scan' }))).kind).toBe('bad-request')
    expect((await catchError(records.find('doc.Paper', { filter: 'scan != null' }))).kind).toBe('bad-request')
    expect(
      (await catchError(records.create('doc.Paper', { title: 'x', scan: 7 }))).details.errors,
    ).toHaveProperty('scan')
  })

  test('a record sent back with null in a binary field keeps its file', async () => {
    const paper = await put({ title: 'Kept' }, PNG)
    await records.update('doc.Paper', paper.id, { ...paper, scan: null })
    expect(await bytesOf('doc.Paper', paper.id, 'scan')).toEqual(PNG)
  })

  test('an upload to an existing record is an update: it needs a version and increments it', async () => {
    const paper = await put({ title: 'Draft' }, 'one')
    const before = await held()
    const again = await put({ id: paper.id, version: 0, note: 'second' }, 'two')
    expect(again).toMatchObject({ id: paper.id, version: 1, title: 'Draft', note: 'second' })
    expect(await bytesOf('doc.Paper', paper.id, 'scan')).toEqual(Buffer.from('two'))
    // The update removed the former content.
    expect(await held()).toBe(before)
    expect((await catchError(put({ id: paper.id }, 'three'))).kind).toBe('bad-request')
    expect((await catchError(put({ version: 1, title: 'x' }, 'three'))).kind).toBe('bad-request')
    expect((await catchError(put({ id: 999_999, version: 1 }, 'three'))).kind).toBe('not-found')
  })

  test('an upload accepts the version in If-Match, and an outdated one is rejected as stale-match', async () => {
    const { id } = await put({ title: 'Match' }, 'one')
    const sent = { data: { id }, field: 'scan', content: streamOf('two') }
    expect((await records.upload('doc.Paper', sent, { ifMatch: 0 })).data.version).toBe(1)
    const late = { data: { id }, field: 'scan', content: streamOf('three') }
    expect((await catchError(records.upload('doc.Paper', late, { ifMatch: 0 }))).kind).toBe('stale-match')
    expect(await bytesOf('doc.Paper', id, 'scan')).toEqual(Buffer.from('two'))
  })

  test('an outdated upload is a conflict with base, ours and theirs, and its content is discarded', async () => {
    const paper = await put({ title: 'Base' }, 'base')
    await records.update('doc.Paper', paper.id, { version: 0, note: 'theirs' })
    const before = await held()
    const error = await catchError(put({ id: paper.id, version: 0, title: 'Ours' }, 'ours'))
    expect(error.kind).toBe('conflict')
    expect(error.details.data).toMatchObject({
      ...{ expected: 0, current: 1, mergeable: true },
      fields: {
        scan: {
          base: { size: 4, sha256: sha256('base') },
          ours: { name: 'a.png', type: 'text/plain; charset=utf-8', size: 4, sha256: sha256('ours') },
          theirs: { sha256: sha256('base') },
          verdict: 'ours',
        },
        note: { base: null, ours: null, theirs: 'theirs', verdict: 'theirs' },
        title: { verdict: 'ours' },
      },
    })
    expect([await held(), await bytesOf('doc.Paper', paper.id, 'scan')]).toEqual([
      before,
      Buffer.from('base'),
    ])
  })

  test('an upload conflicts with a concurrent edit or upload, mergeable unless both changed the file', async () => {
    const { id } = await put({ title: 'Base' }, 'base')
    await put({ id, version: 0 }, 'theirs')
    const edit = await catchError(records.update('doc.Paper', id, { version: 0, note: 'ours' }))
    expect(edit.details.data).toMatchObject({
      mergeable: true,
      fields: {
        scan: { verdict: 'theirs', base: { sha256: sha256('base') }, theirs: { sha256: sha256('theirs') } },
      },
    })
    const clash = await catchError(put({ id, version: 0 }, 'ours'))
    expect(clash.details.data).toMatchObject({ mergeable: false, fields: { scan: { verdict: 'clash' } } })
    const same = await catchError(put({ id, version: 0 }, 'theirs'))
    expect(same.details.data).toMatchObject({ mergeable: true, fields: { scan: { verdict: 'same' } } })
  })

  test('the change log records the former and the new file of each change', async () => {
    const { id } = await put({ title: 'Logged' }, 'one')
    await put({ id, version: 0 }, 'two')
    await records.clear('doc.Paper', id, 'scan', { version: 1 })
    await records.remove('doc.Paper', id)
    const changes = await changesBetween(service.app.db.reader, 'doc.Paper', id, -1, 9)
    const facts = (content: string) => ({
      ...{ name: 'a.png', type: 'text/plain; charset=utf-8' },
      ...{ size: 3, sha256: sha256(content) },
    })
    expect(changes.map(({ changes }) => changes['scan'])).toEqual([
      undefined,
      { before: facts('two'), after: null },
      { before: facts('one'), after: facts('two') },
      { before: null, after: facts('one') },
    ])
  })

  test('clearing a binary field is an update: it needs the current version and increments it', async () => {
    const { id } = await put({ title: 'Cleared' }, PNG)
    expect((await catchError(records.clear('doc.Paper', id, 'scan', {}))).kind).toBe('bad-request')
    expect((await catchError(records.clear('doc.Paper', id, 'scan', { version: 7 }))).kind).toBe('conflict')
    expect((await records.clear('doc.Paper', id, 'scan', { version: 0 })).data).toMatchObject({
      id,
      version: 1,
    })
    expect(await records.download('doc.Paper', id, 'scan')).toBeUndefined()
  })

  test('each binary field of a record has its own file', async () => {
    const { id } = await put({ title: 'Two' }, 'scan')
    await put({ id, version: 0 }, 'photo', { field: 'photo' })
    expect(await bytesOf('doc.Paper', id, 'scan')).toEqual(Buffer.from('scan'))
    expect(await bytesOf('doc.Paper', id, 'photo')).toEqual(Buffer.from('photo'))
    await put({ id, version: 1 }, 'newer', { field: 'photo' })
    expect(await bytesOf('doc.Paper', id, 'scan')).toEqual(Buffer.from('scan'))
  })

  test('an upload rejected as invalid leaves no file', async () => {
    const before = await held()
    expect((await catchError(put({}, PNG))).details.errors).toEqual({ title: 'is required' })
    expect((await catchError(put({ title: 'x', folder: { id: 999_999 } }, PNG))).kind).toBe('invalid')
    expect(await held()).toBe(before)
  })

  test('deleting a record deletes its files and those of its owned records', async () => {
    const before = await held()
    const folder = await records.create('doc.Folder', {
      title: 'All',
      papers: [{ title: 'first' }, { title: 'second' }],
    })
    const [first, second] = folder.data['papers'] as { id: number; $version: number }[]
    await put({ id: first?.id, version: 0 }, 'first')
    await put({ id: second?.id, version: 0 }, 'second')
    const content = streamOf('cover')
    await records.upload('doc.Folder', { data: { id: folder.data.id, version: 0 }, content })
    expect(await held()).toBe(before + 3)
    const dropped = { version: 1, papers: [{ id: first?.id }] }
    await records.update('doc.Folder', folder.data.id, dropped)
    expect(await held()).toBe(before + 2)
    await records.remove('doc.Folder', folder.data.id)
    expect(await held()).toBe(before)
    expect((await catchError(records.download('doc.Paper', first?.id ?? 0, 'scan'))).kind).toBe('not-found')
  })

  test('a download of an empty field is empty, and of a missing record or field not-found', async () => {
    const { data } = await records.create('doc.Paper', { title: 'Empty' })
    expect(await records.download('doc.Paper', data.id, 'scan')).toBeUndefined()
    const wrong = [
      ['doc.Paper', 999_999, 'scan'],
      ['doc.Paper', data.id, 'title'],
      ['doc.Paper', data.id, 'scam'],
      ['crm.Contact', 1, 'scan'],
    ] as const
    for (const [model, id, field] of wrong) {
      expect((await catchError(records.download(model, id, field))).kind, field).toBe('not-found')
    }
    expect((await catchError(records.download('doc.Nothing', 1, 'scan'))).kind).toBe('unknown-model')
  })

  describe('idempotency key of an upload', () => {
    test('an upload repeated under its idempotency key returns the first answer and stores nothing', async () => {
      const options = { idempotencyKey: `upload-${engine}-${transport}` }
      const send = async (content: string) =>
        records.upload(
          'doc.Paper',
          { data: { title: 'Once' }, field: 'scan', name: 'a', content: streamOf(content) },
          options,
        )
      const first = await send('content')
      const before = await held()
      const second = await send('content')
      expect(second).toEqual({ data: first.data, replayed: true })
      expect((await catchError(send('another'))).kind).toBe('key-reused')
      expect(await held()).toBe(before)
    })
  })

  describe('file records', () => {
    test('a file record takes name, type and size from the upload, and cannot be deleted while referenced', async () => {
      const { data: file } = await records.upload(FILE, { name: 'Straße.png', content: streamOf(PNG) })
      expect(file).toMatchObject({ fileName: 'Straße.png', fileType: 'image/png', fileSize: PNG.length })
      expect(await bytesOf(FILE, file.id, 'content')).toEqual(PNG)
      const paper = await records.create('doc.Paper', { title: 'Refers', source: { id: file.id } })
      expect(paper.data['source']).toEqual({ id: file.id, $version: 0, fileName: 'Straße.png' })
      expect((await catchError(records.remove(FILE, file.id))).kind).toBe('still-referenced')
    })

    test('a file record can be renamed, but its type and size always follow its content', async () => {
      const { data: file } = await records.upload(FILE, { name: 'a.png', content: streamOf(PNG) })
      const lie = {
        version: 0,
        fileName: 'b.png',
        fileType: 'text/html',
        fileSize: 1,
        description: 'a chart',
      }
      const { data: renamed } = await records.update(FILE, file.id, lie)
      expect(renamed).toMatchObject({ fileName: 'b.png', fileType: 'image/png', fileSize: PNG.length })
      expect((await records.download(FILE, file.id, 'content').then(closed))?.name).toBe('b.png')
      const sent = {
        data: { id: file.id, version: 1, fileSize: 7 },
        name: 'c.txt',
        content: streamOf('text'),
      }
      const { data: replaced } = await records.upload(FILE, sent)
      expect(replaced).toMatchObject({
        ...{ version: 2, fileName: 'c.txt', fileSize: 4, description: 'a chart' },
        fileType: 'text/plain; charset=utf-8',
      })
      expect((await records.clear(FILE, file.id, 'content', { version: 2 })).data).toMatchObject({
        ...{ fileName: 'c.txt', fileType: null, fileSize: null },
      })
    })
  })
})

function streamOf(content: Buffer | string): AsyncIterable<Uint8Array> {
  return Readable.from([Buffer.from(content)])
}

async function wholeOf(file: Download | undefined): Promise<Buffer | undefined> {
  if (!file) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of file.content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function closed(file: Download | undefined): Promise<Download | undefined> {
  await wholeOf(file)
  return file
}

function sha256(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex')
}
