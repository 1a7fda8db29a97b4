// Files in imports and exports: contents, errors by line, and an export during concurrent writes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ContentFolder } from '../../src/cli/data/content-folder.js'
import type { App } from '../../src/service/context/app.js'
import { exportModel } from '../../src/service/transfer/export.js'
import { importRecords } from '../../src/service/transfer/import.js'
import { changesSince } from '../log.js'
import type { Database } from '../../src/store/engine/database.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { auditFiles } from '../file-audit.js'
import { enter, newLocation, onEveryEngine, startService, type Engine, type Service } from '../targets.js'
import {
  digestOf,
  exported,
  faultsOf,
  blobPath,
  readFiles,
  sourcesIn,
  writeFiles,
} from '../transfer/transfer-fixture.js'
import { openingOthers, storesAfterCommit, withoutSettling } from '../mutants/records.js'

const PAPER = 'doc.Paper'
const TEXT = 'text/plain; charset=utf-8'

let scratch: string
let folders = 0
beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'verso-import-files-'))
})
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

const newFolder = () => path.join(scratch, String(++folders))

function fileOf(content: string, name = 'a.txt') {
  return { name, type: TEXT, size: content.length, sha256: digestOf(content) }
}

/** Writes the lines of papers, with contents beside them. */
function folderOf(lines: readonly object[], contents: readonly string[], model = PAPER): string {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const beside = contents.map((content) => [blobPath(content), content] as const)
  return writeFiles(newFolder(), { [`${model}.ndjson`]: text, ...Object.fromEntries(beside) })
}

const importFrom = async (app: App, folder: string) => importRecords(app, sourcesIn(app, folder))

onEveryEngine((engine) => {
  let service: Service
  let app: App
  let records: Records
  beforeAll(async () => {
    service = await startService(engine)
    app = service.app
    records = await enter(service, 'direct')
  })
  afterAll(() => service.close())

  const audit = async () => auditFiles(app.db, service.location.url)

  test('an import reports every faulty content with its line and writes nothing', async () => {
    const before = await exported(app)
    const line = (id: number, scan: object) => ({ id, version: 0, title: 'x', scan })
    const folder = folderOf(
      [
        line(1, fileOf('whole')),
        line(2, fileOf('missing')),
        line(3, fileOf('changed')),
        line(4, fileOf('longer')),
        line(5, { ...fileOf('whole'), name: '../x' }),
        line(6, { ...fileOf('whole'), sha256: '../../../../etc/passwd' }),
        line(7, { ...fileOf('whole'), content: 'aGk=' }),
      ],
      ['whole'],
    )
    writeFiles(folder, { [blobPath('changed')]: 'Changed', [blobPath('longer')]: 'longer than it was' })
    const faults = await faultsOf(importFrom(app, folder))
    expect(faults.map((fault) => fault.replace(/^.*ndjson:/, '').replace(/ [0-9a-f]{64}/, ''))).toEqual([
      '5: scan must have a valid file name as "name"',
      '6: scan must have 64 hexadecimal digits as "sha256"',
      '7: scan must be null or an object with "name", "type", "size" and "sha256"',
      '2: scan its content is missing',
      '3: scan its content does not match its SHA-256',
      '4: scan its content has 18 bytes, not 6',
    ])
    expect(await exported(app)).toEqual(before)
    expect(await audit()).toEqual({ held: 0, violations: [] })
  })

  test('an import rejects a file record whose type or size does not match its content', async () => {
    const lines = [
      { id: 1, fileName: 'a', fileType: 'text/html', fileSize: 5, content: fileOf('Hello') },
      { id: 2, fileName: 'b', fileType: null, fileSize: 7, content: null },
    ]
    const faults = await faultsOf(importFrom(app, folderOf(lines, ['Hello'], 'com.axelor.meta.db.MetaFile')))
    expect(faults.map((fault) => fault.replace(/^.*ndjson:/, ''))).toEqual([
      `1: fileType must be "${TEXT}", as in content`,
      '2: fileSize must be null, as in content',
    ])
  })

  test('an import derives the file type from the content, and logs the file as an upload does', async () => {
    const scan = { ...fileOf('<b>', 'page.html'), type: 'text/html' }
    const folder = folderOf([{ id: 10, version: 4, title: 'x', scan }], ['<b>'])
    expect(await importFrom(app, folder)).toMatchObject({ created: 1, existing: 0 })
    const changes = (await changesSince(app.db.reader, 0, 1_000)).filter(({ model }) => model === PAPER)
    expect(changes).toEqual([
      expect.objectContaining({
        ...{ id: 10, version: 4, action: 'create' },
        changes: {
          title: { before: null, after: 'x' },
          scan: { before: null, after: fileOf('<b>', 'page.html') },
        },
      }),
    ])
    const file = await records.download(PAPER, 10, 'scan')
    expect(file?.type).toBe(TEXT)
    for await (const chunk of file?.content ?? []) expect(Buffer.from(chunk).toString()).toBe('<b>')
    // A repeated import recognizes the file by its digest.
    expect(await importFrom(app, folder)).toMatchObject({ created: 0, existing: 1 })
    const other = folderOf([{ id: 10, version: 4, title: 'x', scan: fileOf('other') }], ['other'])
    expect(await faultsOf(importFrom(app, other))).toEqual([
      expect.stringContaining('doc.Paper 10 already exists in this database with a different scan'),
    ])
    expect(await audit()).toMatchObject({ violations: [] })
  })

  test('an import rejects content that changed between check and write, and stores none of it', async () => {
    for (const [id, later] of [
      [20, 'later!'],
      [21, 'shrt'],
      [22, 'something longer'],
    ] as const) {
      let reads = 0
      const folder = folderOf([{ id, title: 'x', photo: fileOf('before'), scan: fileOf('stays') }], ['stays'])
      writeFiles(folder, { [blobPath('before')]: 'before' })
      const changing = sourcesIn(app, folder).map((source) => ({
        ...source,
        read: () => {
          const lines = source.read()
          reads++
          if (reads === 2) writeFiles(folder, { [blobPath('before')]: later })
          return lines
        },
      }))
      const [fault] = await faultsOf(importRecords(app, changing))
      expect(fault).toContain(':1: the content of photo has changed since the check')
      expect(await audit()).toEqual({ held: 1, violations: [] })
    }
  })

  test('an export contains each file as it is when the export reaches it', async () => {
    const put = async (content: string, data: object) =>
      (await records.upload(PAPER, { data, field: 'scan', content: Readable.from([Buffer.from(content)]) }))
        .data
    const [first, replaced, removed] = [
      await put('first', { title: 'a' }),
      await put('old', { title: 'b' }),
      await put('to be removed', { title: 'c' }),
    ]
    const out = newFolder()
    const folder = new ContentFolder(out)
    let isFirst = true
    const pages = exportModel(app, app.catalog.get(PAPER), async (file, opened) => {
      if (isFirst) {
        await put('new', { id: replaced.id, version: replaced.version })
        await records.remove(PAPER, removed.id)
      }
      isFirst = false
      return folder.ensure(file, opened)
    })
    const lines: WireRecord[] = []
    for await (const page of pages) lines.push(...page)
    expect(lines.map(({ id }) => id)).toEqual([10, first.id, replaced.id])
    expect(lines.at(-1)).toMatchObject({ version: 1, scan: { sha256: digestOf('new') } })
    expect(Object.keys(readFiles(out)).sort()).toEqual(['<b>', 'first', 'new'].map(blobPath).sort())
  })

  test('an export stops if a content does not match its digest', async () => {
    const folder = new ContentFolder(newFolder())
    const exportWith = async (db: Database) => {
      for await (const page of exportModel({ ...app, db }, app.catalog.get(PAPER), (file, opened) =>
        folder.ensure(file, opened),
      ))
        expect(page).not.toEqual([])
    }
    expect(await faultsOf(exportWith(openingOthers(app.db)))).toEqual([
      expect.stringMatching(
        /^the stored content of "page.html" is damaged: its SHA-256 is [0-9a-f]{64}, not [0-9a-f]{64}$/,
      ),
    ])
    expect(readFiles(path.join(scratch, String(folders)))).toEqual({})
  })
})

describe('an import whose process dies after the commit', () => {
  const CONTENTS = Array.from({ length: 5 }, (_, index) => `content ${index}`)
  const lines = CONTENTS.map((content, index) => ({ id: index + 1, title: 'x', scan: fileOf(content) }))

  /** Imports without the steps after the commit, restarts, and audits. */
  async function violationsAfter(engine: Engine, broken: (db: Database) => Database) {
    const location = await newLocation(engine)
    const dying = await startService(engine, { location })
    const db = broken(dying.app.db)
    const { created } = await importFrom({ ...dying.app, db }, folderOf(lines, CONTENTS))
    await dying.close()
    const service = await startService(engine, { location })
    const { held, violations } = await auditFiles(service.app.db, location.url)
    await service.close()
    location.remove()
    return { made: created, held, violations }
  }

  test.each(['sqlite', 'postgres'] as const)(
    'each imported record has its file after a crash and a restart on %s',
    async (engine) => {
      expect(await violationsAfter(engine, withoutSettling)).toEqual({ made: 5, held: 5, violations: [] })
    },
  )

  test('a mutant that stores content after the commit is caught by the audit', async () => {
    const { violations } = await violationsAfter('postgres', (db) => withoutSettling(storesAfterCommit(db)))
    expect(violations).toContainEqual(expect.stringMatching(/has no content/))
  })
})
