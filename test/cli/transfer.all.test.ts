// Export and import as a user runs them: data from one database arrives in another, byte for byte.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { ENGINES, enter, newLocation, startService, type Engine, type DatabaseLocation } from '../targets.js'
import { fill, blobPath, readFiles, writeFiles, writeModels } from '../transfer/transfer-fixture.js'
import { cleanUpAfterwards, MAIN, scratch, verso } from './program.js'

cleanUpAfterwards()

const META_FILE = 'com.axelor.meta.db.MetaFile'

let models: string
let filled: DatabaseLocation
let folders = 0
const newFolder = () => path.join(scratch, `folder-${++folders}`)

beforeAll(async () => {
  models = writeModels(scratch)
  filled = await newLocation('sqlite')
  const service = await startService('sqlite', { location: filled })
  const records = await enter(service, 'direct')
  await fill(service.app, records)
  // The name of the file record now differs from the name of its content.
  await records.update(META_FILE, 2, { version: 0, fileName: 'renamed' })
  await service.close()
})

async function exportFrom(db: string, format = 'ndjson'): Promise<string> {
  const out = newFolder()
  const { code, stderr } = await verso([
    ...['export', '--models', models, '--db', db, '--out', out, '--format', format],
  ])
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return out
}

/** Each content exists once, under its digest, and nothing else does. */
function expectContents(files: Readonly<Record<string, string>>): void {
  const contents = ['', 'Hello', 'new', '\x89PNG\r\n\x1a\n', Buffer.alloc(3_000_000, 'no text \0 ')]
  const places = Object.keys(files).filter((name) => name.startsWith('files'))
  expect(places.sort()).toEqual(contents.map(blobPath).sort())
  for (const place of places) expect(files[place]).toBe(path.basename(place))
}

async function importInto(db: string, ...places: string[]) {
  return verso(['import', '--models', models, '--db', db, ...places])
}

test('an export from SQLite, imported into PostgreSQL and back into SQLite, is identical byte for byte', async () => {
  const [first, postgres, sqlite] = [
    await exportFrom(filled.url),
    await newLocation('postgres'),
    await newLocation('sqlite'),
  ]
  const files = readFiles(first)
  expect(Object.keys(files).filter((name) => !name.startsWith('files'))).toHaveLength(14)
  expectContents(files)
  expect(files['rel.Person.ndjson']).toContain('"keeper":{"username":"bob"}')
  const imported = await importInto(postgres.url, first)
  expect(imported).toMatchObject({ code: 0, stderr: '' })
  expect(imported.stdout).toMatch(/^imported 29 records, 0 existed already, in /)
  expect(imported.stdout).toContain('created 2 disabled users for user names in the records: ')
  const second = await exportFrom(postgres.url)
  expect(readFiles(second)).toEqual(files)
  await importInto(sqlite.url, second)
  expect(readFiles(await exportFrom(sqlite.url))).toEqual(files)
})

test('exported files and folders are readable by their owner only, even if older files were not', async () => {
  const out = newFolder()
  mkdirSync(out, { mode: 0o755 })
  writeFileSync(path.join(out, 'rel.Person.ndjson'), '', { mode: 0o644 })
  const inside = path.join(out, 'new')
  for (const place of [out, inside])
    expect(await verso(['export', '--models', models, '--db', filled.url, '--out', place])).toMatchObject({
      code: 0,
    })
  const entries = readdirSync(out, { recursive: true, withFileTypes: true })
  expect(entries.filter((entry) => entry.isFile()).length).toBeGreaterThan(30)
  const open = entries.filter((entry) => {
    const { mode } = statSync(path.join(entry.parentPath, entry.name))
    return (mode & 0o777) !== (entry.isDirectory() ? 0o700 : 0o600)
  })
  expect(open.map(({ name }) => name)).toEqual([])
})

test('an export as CSV, imported into PostgreSQL, is identical as CSV and as ndjson', async () => {
  const [lines, tables, postgres] = [
    await exportFrom(filled.url),
    await exportFrom(filled.url, 'csv'),
    await newLocation('postgres'),
  ]
  expectContents(readFiles(tables))
  expect(await importInto(postgres.url, tables)).toMatchObject({ code: 0, stderr: '' })
  expect(readFiles(await exportFrom(postgres.url, 'csv'))).toEqual(readFiles(tables))
  expect(readFiles(await exportFrom(postgres.url))).toEqual(readFiles(lines))
})

test('an export contains no secrets', async () => {
  const all = Object.values(readFiles(await exportFrom(filled.url))).join('')
  expect(all).not.toMatch(/pin|password|1234"|argon2/)
})

describe.each(ENGINES)('%s', (engine: Engine) => {
  test('a repeated import imports nothing, and counts all records as present', async () => {
    const [folder, location] = [await exportFrom(filled.url), await newLocation(engine)]
    await importInto(location.url, folder)
    const again = await importInto(location.url, folder)
    expect(again.stdout).toMatch(/^imported 0 records, 29 existed already, in .*\n$/)
  })

  test('ids and sequence numbers continue after the imported ones', async () => {
    const [folder, location] = [await exportFrom(filled.url), await newLocation(engine)]
    await importInto(location.url, folder)
    const service = await startService(engine, { location })
    // Imported users have no roles, so they may do nothing.
    const records = recordsForPrincipal(service.app, SERVICE_PRINCIPAL)
    expect((await records.create('rel.Badge', {})).data).toMatchObject({
      id: 4,
      version: 0,
      number: 'B-0010',
    })
    expect((await records.create('test.Everything', {})).data.id).toBe(5)
    await service.close()
  })
})

test('import --model imports a file of any name as that model', async () => {
  const location = await newLocation('sqlite')
  const folder = writeFiles(newFolder(), { 'people.csv': 'firstName,lastName\nAda,Lovelace\nGrace,\n' })
  const file = path.join(folder, 'people.csv')
  expect((await importInto(location.url, file)).stderr).toContain('there is no model "people"')
  const { code, stdout } = await importInto(location.url, '--model', 'crm.Contact', file)
  expect(stdout).toContain('imported 2 records')
  expect(code).toBe(0)
  const csv = readFiles(await exportFrom(location.url, 'csv'))['crm.Contact.csv'] ?? ''
  expect(csv).toMatch(
    /^id,version,firstName,lastName,fullName,email,notes,phones,createdOn,createdBy,updatedOn,updatedBy\r\n/,
  )
  expect(csv).toContain('1,0,Ada,Lovelace,Ada Lovelace,,,,2')
  expect(csv).toContain('2,0,Grace,,Grace,,,,2')
})

test('a CSV export with --spreadsheet contains no formula, and starts with a byte order mark', async () => {
  const out = newFolder()
  await verso([
    ...['export', '--models', models, '--db', filled.url, '--out', out, '--format', 'csv', '--spreadsheet'],
    ...['--model', 'test.Everything', '--model', 'test.Order'],
  ])
  const files = readFiles(out)
  expect(Object.keys(files).sort()).toEqual(['test.Everything.csv', 'test.Order.csv'])
  expect(files['test.Order.csv']?.startsWith('\uFEFFid,version,')).toBe(true)
  expect(files['test.Order.csv']).toContain(",'-,")
  expect(files['test.Order.csv']).toContain(",'@x,")
  expect(files['test.Everything.csv']).toContain(',-2147483648,')
})

test('import uses the singular for one record', async () => {
  const location = await newLocation('sqlite')
  const folder = writeFiles(newFolder(), {
    'rel.Circle.ndjson': '{"id":1,"name":"A","createdBy":{"username":"eve"}}\n',
  })
  expect((await importInto(location.url, folder)).stdout).toMatch(
    /^imported 1 record, 0 existed already, .*\ncreated 1 disabled user for user names in the records: eve\n$/,
  )
  expect((await importInto(location.url, folder)).stdout).toMatch(/^imported 0 records, 1 existed already, /)
  const wrong = writeFiles(newFolder(), { 'rel.Circle.ndjson': '{"id":1,"nme":"A","name":"A"}\n' })
  expect((await importInto(location.url, wrong)).stderr).toContain('Nothing was imported: 1 error:')
})

test('an export with a closed stdout is silent and complete', async () => {
  const out = newFolder()
  const args = [MAIN, 'export', '--models', models, '--db', filled.url, '--out', out]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  expect(await once(child, 'close')).toEqual([0, null])
  expect(said).toBe('')
  expect(readFiles(out)).toEqual(readFiles(await exportFrom(filled.url)))
})

test('an export that fails leaves no file, and says why', async () => {
  const unknown = await verso([
    ...['export', '--models', models, '--db', filled.url, '--out', newFolder(), '--model', 'rel.Persn'],
  ])
  expect(unknown.stderr).toContain('there is no model "rel.Persn" (did you mean "rel.Person"?)')
  const short = await verso([
    ...['export', '--models', models, '--db', filled.url, '--out', newFolder(), '--model', 'Person'],
  ])
  expect(short.stderr).toContain('there is no model "Person" (did you mean "rel.Person"?)')
  const file = await verso(['export', '--models', models, '--db', filled.url, '--out', models])
  expect(file).toMatchObject({ code: 1, stderr: expect.stringContaining('is a file; name a folder') })
  const nowhere = path.join(scratch, 'nowhere.db')
  const missing = await verso([
    'export',
    '--models',
    models,
    '--db',
    `sqlite:${nowhere}`,
    '--out',
    newFolder(),
  ])
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('the file does not exist') })
  expect(existsSync(nowhere)).toBe(false)
  const empty = await newLocation('sqlite')
  const service = await startService('sqlite', { location: empty, models: [] })
  await service.close()
  const out = newFolder()
  const stale = await verso(['export', '--models', models, '--db', empty.url, '--out', out])
  expect(stale.stderr).toContain('do not match the models')
  expect(existsSync(out) ? readdirSync(out) : []).toEqual([])
})
