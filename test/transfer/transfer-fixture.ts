// Records of every kind, and helpers for the tests of import and export.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { ContentFolder } from '../../src/cli/data/content-folder.js'
import { readNdjson } from '../../src/cli/data/ndjson-file.js'
import { ConfigError } from '../../src/errors.js'
import type { Model } from '../../src/model/definition/model.js'
import { listTransferFields, listTransferredModels } from '../../src/formats/transfer-fields.js'
import { META_FILE } from '../../src/model/catalog/system-models.js'
import { formatLine } from '../../src/formats/ndjson.js'
import { addUser } from '../../src/service/auth/accounts.js'
import type { App } from '../../src/service/context/app.js'
import { exportModel } from '../../src/service/transfer/export.js'
import type { ImportSource } from '../../src/service/transfer/import-source.js'
import type { Records } from '../../src/wire.js'
import { models } from '../models.js'
import { PASSWORD } from '../targets.js'

/** The fixture models as a file that the program can load. */
export function writeModels(folder: string): string {
  const file = path.join(folder, 'models.json')
  writeFileSync(file, JSON.stringify(models.map(({ definition }) => definition)))
  return file
}

/** Creates at least one record of each fixture model, with values that are hard to transfer. */
export async function fill(app: App, records: Records): Promise<void> {
  const make = async (model: string, data: object) => (await records.create(model, data)).data
  const bob = await addUser(app, { username: 'bob', password: PASSWORD, roles: ['editor'] })
  await fillPlain(make)
  const company = await make('rel.Company', { code: 'A', name: 'Acme, "Ltd"', addresses: [{ city: 'Oslo' }] })
  const child = await make('rel.Company', { code: null, name: 'Child', parent: { id: company.id } })
  const [seat] = (await records.read('rel.Company', company.id))['addresses'] as { id: number }[]
  await records.update('rel.Company', company.id, {
    version: company.version,
    seat,
    parent: { id: child.id },
  })
  await make('rel.Address', {
    city: 'Bergen',
    company: { id: child.id },
    doors: [{ code: 'd1' }, { code: 'd2' }],
  })
  const circles = [{ name: 'One' }, { name: 'Two' }, { name: 'Three' }]
  const ada = await make('rel.Person', { name: 'Ada', keeper: { id: bob }, circles, rate: '-0.10' })
  const boss = await make('rel.Person', { name: 'Boss', company: { id: company.id }, isActive: false })
  // Refers to a record that comes later in the file.
  await records.update('rel.Person', ada.id, { version: ada.version, boss: { id: boss.id } })
  await make('rel.Badge', { holder: { id: ada.id } })
  const gone = await make('rel.Badge', {})
  await records.remove('rel.Badge', gone.id)
  await make('rel.Badge', { holder: null })
  await fillFiles(records)
}

const MEGABYTES = 3_000_000

/** Creates files of both kinds: an empty one, a large one, two with the same content, one that was replaced. */
async function fillFiles(records: Records): Promise<void> {
  const put = async (model: string, field: string, name: string, content: string | Buffer, data: object) =>
    (await records.upload(model, { data, field, name, content: Readable.from([Buffer.from(content)]) })).data
  const noise = Buffer.alloc(MEGABYTES, 'no text \0 ')
  const source = await put(META_FILE.name, 'content', 'a "quoted", näme.txt', 'Hello', { description: 'x' })
  await put(META_FILE.name, 'content', 'empty', '', {})
  await records.create(META_FILE.name, { fileName: 'nothing.txt' })
  const folder = await put('doc.Folder', 'cover', 'cover.png', '\x89PNG\r\n\x1a\n', { title: 'F' })
  const paper = await put('doc.Paper', 'scan', 'scan.bin', noise, {
    ...{ title: 'P', source: { id: source.id }, folder: { id: folder.id } },
  })
  const { id } = paper
  await put('doc.Paper', 'photo', 'hello.txt', 'Hello', { id, version: paper.version })
  const { id: other, version } = await put('doc.Paper', 'scan', 'old.bin', 'old', { title: 'Q' })
  await put('doc.Paper', 'scan', 'new.bin', 'new', { id: other, version })
  await records.create('doc.Paper', { title: 'without' })
}

async function fillPlain(make: (model: string, data: object) => Promise<unknown>): Promise<void> {
  await make('test.Everything', {
    ...{
      label: '',
      note: 'line 1\r\nline 2\n"quoted", =1+1 \u2028 👩‍🚀',
      whole: -2147483648,
      big: 9007199254740991,
    },
    ...{
      amount: '-1234567890123456789012345678.0123456789',
      price: '0.05',
      active: false,
      day: '0001-01-01',
    },
    ...{ at: '23:59:59', moment: '9999-12-31T23:59:59.999Z', token: '0f8fad5b-d9cb-469f-a165-70867728950e' },
    ...{ state: 'paid', extra: { b: [1, 2.5, null, ''], a: { '': 'x|y' }, '2': true } },
  })
  await make('test.Everything', {})
  await make('test.Everything', { label: ' =1 ', note: "'", extra: '', whole: 0, active: true, amount: '0' })
  await make('test.Everything', {
    label: 'a|b',
    note: '\ttab',
    extra: [],
    moment: '2024-02-29T12:00:00+02:00',
  })
  await make('crm.Contact', { firstName: 'Grace', pin: '1234', password: 'a long enough one', phones: ['1'] })
  await make('test.Limited', { code: 'abcd', number: 3, rate: '-1.50' })
  await make('test.Note', { title: 'kept' })
  await make('test.Note', { title: 'put away', archived: true })
  await make('test.Order', { total: '12', count: '-', t: '@x' })
}

/** Exports every model: its ndjson text by file name. */
export async function exported(app: App): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const model of listTransferredModels(app.catalog)) {
    const fields = listTransferFields(model)
    let text = ''
    for await (const page of exportModel(app, model))
      for (const record of page) text += `${formatLine(fields, record)}\n`
    files[`${model.name}.ndjson`] = text
  }
  return files
}

/** Turns the ndjson files of a folder into import sources. */
export function sourcesIn(app: App, folder: string): ImportSource[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.ndjson'))
    .map((name) => sourceOf(modelOf(app, name.replace('.ndjson', '')), path.join(folder, name), name))
}

export function sourceOf(model: Model, file: string, name = path.basename(file)): ImportSource {
  const contents = new ContentFolder(path.dirname(file))
  return {
    ...{ name, model, content: (sha256) => contents.open(sha256) },
    read: () => readNdjson(file, () => undefined),
  }
}

export function modelOf(app: App, name: string): Model {
  return app.catalog.get(name)
}

export function writeFiles(folder: string, files: Readonly<Record<string, string | Buffer>>): string {
  mkdirSync(folder, { recursive: true })
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  return folder
}

/** The path of this content, relative to the ndjson files. */
export function blobPath(content: string | Buffer): string {
  const sha256 = digestOf(content)
  return `files/${sha256.slice(0, 2)}/${sha256}`
}

export function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Reads the ndjson files as text and file contents as their digests. */
export function readFiles(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return Object.fromEntries(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const file = path.join(entry.parentPath, entry.name)
        const name = path.relative(folder, file)
        const bytes = readFileSync(file)
        return [name, name.startsWith('files') ? digestOf(bytes) : bytes.toString()]
      }),
  )
}

/** The errors of a rejected import, line by line. */
export async function faultsOf(call: Promise<unknown>): Promise<readonly string[]> {
  try {
    await call
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
  throw new Error('the call was expected to fail, and succeeded')
}
