// Columns of binary fields as models change: older databases get them, and a dropped field drops its files.
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { openDatabase } from '../../src/store/open.js'
import { applySchema } from '../../src/store/schema/apply.js'
import { blobFilesIn, filesFolder } from '../file-audit.js'
import { enter, newLocation, onEngineOfTier, startService, type DatabaseLocation } from '../targets.js'

const NAME = 'doc.Sheet'
const title = { type: 'string' } as const

function models(fields: Parameters<typeof defineModel>[0]['fields']) {
  return [{ file: 'test', definition: defineModel({ name: NAME, fields }) }]
}

onEngineOfTier((engine) => {
  const withSheets = async <T>(
    location: DatabaseLocation,
    fields: Parameters<typeof models>[0],
    work: (records: Awaited<ReturnType<typeof enter>>) => Promise<T>,
  ) => {
    const service = await startService(engine, { location, models: models(fields) })
    try {
      return await work(await enter(service, 'direct'))
    } finally {
      await service.close()
    }
  }
  const withOneFile = async (field: string) => {
    const location = await newLocation(engine)
    const content = Readable.from([Buffer.from('content')])
    const fields = { title, [field]: { type: 'binary' as const } }
    await withSheets(location, fields, (sheets) => sheets.upload(NAME, { data: { title: 'One' }, content }))
    return location
  }
  const withDatabase = async <T>(
    location: DatabaseLocation,
    work: (db: Awaited<ReturnType<typeof openDatabase>>) => Promise<T>,
  ) => {
    const db = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  }
  const left = async (location: DatabaseLocation) =>
    withDatabase(location, async (db) => {
      await db.blobs.recover()
      const rows = await db.reader.all('select id from verso_file')
      return [rows.length, blobFilesIn(filesFolder(location.url) ?? '').length]
    })
  const stored = engine === 'sqlite' ? 1 : 0

  test('a database from before a binary field starts, and accepts files', async () => {
    const location = await newLocation(engine)
    await withSheets(location, { title }, (sheets) => sheets.create(NAME, { title: 'Old' }))
    await withSheets(location, { title, scan: { type: 'binary' } }, async (sheets) => {
      const content = Readable.from([Buffer.from('content')])
      const { data } = await sheets.upload(NAME, { data: { id: 1, version: 0 }, content })
      expect(data).toMatchObject({ id: 1, version: 1, title: 'Old' })
    })
    location.remove()
  })

  test('a renamed binary field keeps its files', async () => {
    const location = await withOneFile('scan')
    await withSheets(location, { title, image: { type: 'binary', renamedFrom: 'scan' } }, async (sheets) => {
      const file = await sheets.download(NAME, 1, 'image')
      expect(file?.size).toBe(7)
      for await (const chunk of file?.content ?? []) expect(Buffer.from(chunk).toString()).toBe('content')
    })
    location.remove()
  })

  test('removing a binary field with files, or changing its type, stops the start', async () => {
    const location = await withOneFile('scan')
    for (const fields of [{ title }, { title, scan: { type: 'integer' as const } }]) {
      await expect(startService(engine, { location, models: models(fields) })).rejects.toThrow(
        /doc\.Sheet\.scan/,
      )
    }
    expect(await left(location)).toEqual([1, stored])
    location.remove()
  })

  const drops = [
    ['a field', `${NAME}.scan`, models({ title })],
    ['a model', NAME, []],
  ] as const
  test.for(drops)('dropping %s deletes its files', async ([, name, sources]) => {
    const location = await withOneFile('scan')
    await withDatabase(location, (db) => applySchema(db, Catalog.from(sources), [name]))
    expect(await left(location)).toEqual([0, 0])
    location.remove()
  })
})
