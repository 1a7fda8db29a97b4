// Effects of an import on a database, and its errors by line.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import type { App } from '../../src/service/context/app.js'
import { importRecords, type ImportResult } from '../../src/service/transfer/import.js'
import { changesSince } from '../log.js'
import type { Database } from '../../src/store/engine/database.js'
import { Tables } from '../../src/store/sql/table.js'
import type { Records } from '../../src/wire.js'
import { enter, onEveryEngine, startService, type Service } from '../targets.js'
import { exported, faultsOf, sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'
import {
  believingReferences,
  forgettingWhatIsThere,
  withoutOwnerRaise,
  withoutPassedIds,
} from '../mutants/records.js'

let scratch: string
let folders = 0
beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'verso-import-'))
})
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

type Files = Readonly<Record<string, readonly object[] | string | Buffer>>

function sourcesOf(app: App, files: Files) {
  const texts = Object.entries(files).map(([name, content]) => [
    `${name}.ndjson`,
    Array.isArray(content) ? content.map((line: object) => `${JSON.stringify(line)}\n`).join('') : content,
  ])
  const folder = path.join(scratch, String(++folders))
  return sourcesIn(app, writeFiles(folder, Object.fromEntries(texts) as Record<string, string | Buffer>))
}

const imports = async (app: App, files: Files): Promise<ImportResult> =>
  importRecords(app, sourcesOf(app, files))

/** The errors of a rejected import; checks that it wrote nothing. */
async function expectRolledBack(app: App, files: Files): Promise<readonly string[]> {
  const before = await exported(app)
  const faults = await faultsOf(imports(app, files))
  expect(await exported(app)).toEqual(before)
  return faults
}

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

  const mutated = (mutant: (db: Database) => Database): App => {
    const db = mutant(app.db)
    return { ...app, db, tables: new Tables(db.dialect, app.catalog) }
  }

  describe('errors of an import', () => {
    test('an import reports every error with its line and writes nothing', async () => {
      const faults = await expectRolledBack(app, {
        'test.Everything': [
          { id: 1, version: 0, whole: 'x', day: '2024-02-30', active: 1 },
          { id: 0, version: -1, lable: 'x' },
          { id: 2 },
          { id: 2, state: 'lost' },
          { id: 2, label: 'x'.repeat(256) },
          { version: 3 },
        ],
        'rel.Person': [
          { id: 1, boss: { id: 99 }, company: 5, circles: [{ id: 1 }, { id: 1 }] },
          { id: 2, boss: { id: 3 }, keeper: { id: 1 }, badge: { id: 1 } },
          { id: 3, createdBy: { username: 'not a name' } },
        ],
        'rel.Circle': [{ id: 1 }],
        'crm.Contact': [{ id: 1, pin: '1234' }],
      })
      expect([...faults].sort()).toEqual(
        [
          'crm.Contact.ndjson:1: pin is secret and cannot be imported: omit it',
          'rel.Circle.ndjson:1: name is required',
          'rel.Person.ndjson:1: circles[1] is in the list twice',
          'rel.Person.ndjson:1: company must be null or a reference such as { "id": 1 }',
          'rel.Person.ndjson:2: badge follows from rel.Badge.holder: omit it',
          'rel.Person.ndjson:2: keeper must be null or a user such as { "username": "ada" }',
          'rel.Person.ndjson:3: createdBy must be null or a user such as { "username": "ada" }',
          'test.Everything.ndjson:1: active must be true or false',
          'test.Everything.ndjson:1: day must be a date such as "2024-01-31"',
          'test.Everything.ndjson:1: whole must be a whole number',
          'test.Everything.ndjson:2: id must be a whole number from 1',
          'test.Everything.ndjson:2: lable is not a field of test.Everything (did you mean "label"?)',
          'test.Everything.ndjson:2: version must be a whole number from 0',
          'test.Everything.ndjson:4: state must be one of "draft", "sent", "paid"',
          'test.Everything.ndjson:5: label must have at most 255 characters',
          'test.Everything.ndjson:6: version must be 0 if there is no id',
        ].sort(),
      )
    })

    test('an import rejects an id or a version over 2^52, which leaves no room for later ones', async () => {
      const [most, over] = [2 ** 52, 2 ** 52 + 1]
      const faults = await expectRolledBack(app, {
        'test.Note': [
          { id: over, version: 0, title: 'a' },
          { id: 9_000, version: over, title: 'b' },
          { id: most, version: most, title: 'c' },
        ],
      })
      expect(faults).toEqual([
        'test.Note.ndjson:1: id must be at most 4503599627370496',
        'test.Note.ndjson:2: version must be at most 4503599627370496',
      ])
    })

    test('an import rejects references to records in neither the files nor the database, and duplicate ids', async () => {
      const { data: circle } = await records.create('rel.Circle', { name: 'Here' })
      const faults = await expectRolledBack(app, {
        'rel.Person': [
          { id: 1_000, boss: { id: 1_001 }, circles: [{ id: circle.id }] },
          { id: 1_001, boss: { id: 1_002 }, circles: [{ id: 77 }] },
          { id: 1_001 },
        ],
      })
      expect([...faults].sort()).toEqual([
        'rel.Person.ndjson:2: boss refers to rel.Person 1002, which does not exist',
        'rel.Person.ndjson:2: circles refers to rel.Circle 77, which does not exist',
        'rel.Person.ndjson:3: id 1001 occurs twice in the files',
      ])
    })

    test('an import rejects lines that are not JSON objects or not UTF-8', async () => {
      const broken = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])
      const faults = await expectRolledBack(app, {
        'crm.Contact': Buffer.concat([
          Buffer.from('{"id":1\n\n[]\n"x"\n'),
          broken,
          Buffer.from('\n{"firstName":"A'),
        ]),
      })
      expect(faults).toEqual([
        expect.stringContaining('crm.Contact.ndjson:1: is not valid JSON: '),
        'crm.Contact.ndjson:3: must be a JSON object',
        'crm.Contact.ndjson:4: must be a JSON object',
        'crm.Contact.ndjson:5: is not valid UTF-8',
        expect.stringContaining('crm.Contact.ndjson:6: is not valid JSON: '),
      ])
    })

    test('an import reports the first 100 errors and the number of the others', async () => {
      const lines = Array.from({ length: 250 }, (_, index) => ({ id: index + 1, nme: 'x' }))
      const faults = await expectRolledBack(app, { 'rel.Company': lines })
      expect(faults).toHaveLength(101)
      expect(faults.at(-1)).toBe('and 400 more')
    })

    test('an import rejects a record that exists at another version or with other values, or was deleted', async () => {
      const { data: kept } = await records.create('test.Note', { title: 'a' })
      const { data: gone } = await records.create('test.Note', { title: 'b' })
      await records.remove('test.Note', gone.id)
      const { data: other } = await records.create('test.Note', { title: 'c' })
      const faults = await expectRolledBack(app, {
        'test.Note': [
          { id: kept.id, version: 5, title: 'a' },
          { id: gone.id, version: 1, title: 'b' },
          { id: other.id, version: 0, title: 'd' },
          { id: other.id + 1, version: 0, title: 'e' },
        ],
      })
      expect(faults).toEqual([
        `test.Note.ndjson:1: test.Note ${kept.id} is at version 0 in this database, not 5`,
        `test.Note.ndjson:3: test.Note ${other.id} already exists in this database with a different title`,
        `test.Note.ndjson:2: test.Note ${gone.id} was deleted in this database, at version 1`,
      ])
    })

    test('an import reports a duplicate unique value with its line and rolls back that portion', async () => {
      const lines = Array.from({ length: 1_500 }, (_, index) => ({
        id: 5_000 + index,
        code: `c${index}`,
        name: 'x',
      }))
      lines[1_200] = { id: 6_200, code: 'c7', name: 'x' }
      const failing = imports(app, { 'rel.Company': lines })
      await expect(failing).rejects.toThrow(
        'rel.Company.ndjson:1201: code is already used by another record\n  - 1000 records were imported before',
      )
      lines[1_200] = { id: 6_200, code: 'mended', name: 'x' }
      expect(await imports(app, { 'rel.Company': lines })).toMatchObject({ created: 500, existing: 1_000 })
    })
  })

  test('an import accepts empty files, empty lines, a byte order mark and CRLF line ends', async () => {
    const text = '\uFEFF{"id":900,"firstName":"A"}\r\n\r\n{"id":901}'
    expect(await imports(app, { 'crm.Contact': text, 'rel.Circle': '' })).toMatchObject({
      created: 2,
      existing: 0,
    })
    expect(await records.read('crm.Contact', 900)).toMatchObject({
      version: 0,
      fullName: 'A',
      updatedOn: null,
    })
  })

  test('an imported record has one Change, with the version of its line', async () => {
    const [row] = await app.db.reader.all('select max(seq) as "last" from verso_log')
    await imports(app, {
      'rel.Person': [
        { id: 2_000, version: 7, name: 'Ada', boss: { id: 2_001 }, circles: [{ id: 40 }] },
        { id: 2_001 },
      ],
      'rel.Circle': [{ id: 40, version: 2, name: 'One' }],
    })
    const changes = await changesSince(app.db.reader, Number(row?.['last']), 10)
    expect(changes).toMatchObject([
      { model: 'rel.Circle', id: 40, version: 2, action: 'create', by: null },
      {
        ...{ model: 'rel.Person', id: 2_000, version: 7, action: 'create' },
        changes: {
          name: { before: null, after: 'Ada' },
          boss: { before: null, after: { id: 2_001 } },
          circles: { before: null, after: [{ id: 40 }] },
        },
      },
      { model: 'rel.Person', id: 2_001, version: 0, action: 'create', changes: {} },
    ])
    const updated = await records.update('rel.Person', 2_000, { version: 7, name: 'Ada L.' })
    expect(updated.data).toMatchObject({ version: 8, boss: { id: 2_001 }, circles: [{ id: 40 }] })
  })

  describe('imports into owned lists', () => {
    test('an owner imported along with its members keeps its version', async () => {
      await imports(app, {
        'rel.Company': [{ id: 7_000, version: 4, name: 'With' }],
        'rel.Address': [{ id: 7_000, city: 'Oslo', company: { id: 7_000 } }],
      })
      expect(await records.read('rel.Company', 7_000)).toMatchObject({
        version: 4,
        addresses: [{ id: 7_000 }],
      })
    })

    async function addressFor(owner: number, id: number, from: App): Promise<number> {
      await imports(from, { 'rel.Address': [{ id, city: 'Rome', company: { id: owner } }] })
      return (await records.read('rel.Company', owner)).version
    }

    test('an import that adds a member increments the version of an existing owner', async () => {
      const { data } = await records.create('rel.Company', { name: 'Here' })
      expect(await addressFor(data.id, 7_001, app)).toBe(1)
    })

    /** Saves the list as it was before the import added a member, at the version read then. */
    async function saveOldList(from: App, id: number): Promise<unknown> {
      const company = { id, version: 0, name: 'Both' }
      await imports(app, { 'rel.Company': [company] })
      const old = await records.read('rel.Company', id)
      await imports(from, {
        'rel.Company': [company],
        'rel.Address': [{ id, city: 'Rome', company: { id } }],
      })
      const { version } = old
      return records.update('rel.Company', id, { version, addresses: [] }).then(
        () => 'done',
        (error: unknown) => (error as { kind: unknown }).kind,
      )
    }

    test('saving an old list after an import added a member is a conflict, also if the owner is in the files', async () => {
      expect(await saveOldList(app, 7_100)).toBe('conflict')
      expect(await records.read('rel.Company', 7_100)).toMatchObject({
        version: 1,
        addresses: [{ id: 7_100 }],
      })
      expect(await saveOldList(mutated(withoutOwnerRaise), 7_101)).toBe('done')
    })

    test("each import that adds members increments the owner's version, and the same files can be imported again", async () => {
      const company = { id: 7_200, version: 3, name: 'Often', updatedOn: '2024-01-02T03:04:05.678Z' }
      const address = (id: number) => ({ id, city: 'Rome', company: { id: 7_200 } })
      const files = (...ids: number[]) => ({ 'rel.Company': [company], 'rel.Address': ids.map(address) })
      await imports(app, files())
      expect(await imports(app, files(7_200))).toMatchObject({ created: 1, existing: 1 })
      expect(await imports(app, files(7_200, 7_201))).toMatchObject({ created: 1, existing: 2 })
      expect(await imports(app, files(7_200, 7_201))).toMatchObject({ created: 0, existing: 3 })
      expect(await records.read('rel.Company', 7_200)).toMatchObject({
        version: 5,
        addresses: [{ id: 7_200 }, { id: 7_201 }],
      })
      const other = { ...company, name: 'Other' }
      expect(await expectRolledBack(app, { 'rel.Company': [other] })).toEqual([
        'rel.Company.ndjson:1: rel.Company 7200 already exists in this database with a different name',
      ])
      await records.update('rel.Company', 7_200, { version: 5, founded: '2024-01-01' })
      expect(await expectRolledBack(app, files(7_200, 7_201))).toEqual([
        'rel.Company.ndjson:1: rel.Company 7200 is at version 6 in this database, not 3',
      ])
    })

    test('an import logs an owner after its members', async () => {
      const [row] = await app.db.reader.all('select max(seq) as "last" from verso_log')
      await imports(app, {
        'rel.Company': [{ id: 7_300, version: 2, name: 'Late' }],
        'rel.Address': [{ id: 7_300, city: 'Oslo', company: { id: 7_300 } }],
        'rel.Door': [{ id: 7_300, code: 'd', address: { id: 7_300 } }],
      })
      const changes = await changesSince(app.db.reader, Number(row?.['last']), 10)
      expect(changes.map(({ model, version }) => [model, version])).toEqual([
        ['rel.Door', 0],
        ['rel.Address', 0],
        ['rel.Company', 2],
      ])
    })

    test("a mutant that does not increment the owner's version is caught", async () => {
      const { data } = await records.create('rel.Company', { name: 'Here too' })
      expect(await addressFor(data.id, 7_002, mutated(withoutOwnerRaise))).toBe(0)
    })
  })

  describe('concurrent writes during an import', () => {
    /** Deletes a circle between the check of the references and their write. */
    async function removingInBetween(from: App, id: number): Promise<unknown> {
      const { data: circle } = await records.create('rel.Circle', { name: `Between ${id}` })
      const sources = sourcesOf(from, { 'rel.Person': [{ id, circles: [{ id: circle.id }] }] })
      let reads = 0
      const [source] = sources.map((each) => ({
        ...each,
        read: async function* () {
          if (++reads === 2) await records.remove('rel.Circle', circle.id)
          yield* each.read()
        },
      }))
      return source ? importRecords(from, [source]) : undefined
    }

    test('an import rejects a line whose related record is deleted after the check', async () => {
      await expect(removingInBetween(app, 8_000)).rejects.toThrow(
        /rel.Person.ndjson:1: circles refers to rel.Circle/,
      )
    })

    test('a mutant that trusts the reference check is caught', async () => {
      await expect(removingInBetween(mutated(believingReferences), 8_001)).resolves.toMatchObject({
        created: 1,
      })
    })

    /** Creates a record after the import reserved its ids and before it writes the file. */
    async function makingInBetween(from: App, id: number): Promise<unknown> {
      const sources = sourcesOf(from, { 'rel.Badge': [{ id, number: `B-${id + 500}` }] })
      let reads = 0
      const [source] = sources.map((each) => ({
        ...each,
        read: async function* () {
          if (++reads === 2) await records.create('rel.Badge', {})
          yield* each.read()
        },
      }))
      return source ? importRecords(from, [source]) : undefined
    }

    async function lastBadge(): Promise<number> {
      const { data } = await records.create('rel.Badge', {})
      return data.id
    }

    test('a record created during an import gets no id and no number of the files', async () => {
      const next = (await lastBadge()) + 1
      await expect(makingInBetween(app, next)).resolves.toMatchObject({ created: 1 })
      const { data } = await records.create('rel.Badge', {})
      expect(data).toMatchObject({ id: next + 2, number: `B-0${next + 502}` })
    })

    test('a mutant that does not reserve ids is caught', async () => {
      const next = (await lastBadge()) + 1
      await expect(makingInBetween(mutated(withoutPassedIds), next)).rejects.toThrow(ConfigError)
    })
  })

  test('a repeated import continues where it stopped, and a mutant that ignores existing records is caught', async () => {
    const lines = Array.from({ length: 2_500 }, (_, index) => ({ id: 20_000 + index, title: `n${index}` }))
    await imports(app, { 'test.Note': lines.slice(0, 1_300) })
    await expect(imports(mutated(forgettingWhatIsThere), { 'test.Note': lines })).rejects.toThrow()
    expect(await imports(app, { 'test.Note': lines })).toMatchObject({ created: 1_200, existing: 1_300 })
  })

  test('an import creates the missing users that lines name, disabled', async () => {
    const { createdUsers } = await imports(app, {
      'test.Note': [
        { id: 30_000, title: 'a', createdBy: { username: 'Zoë' }, createdOn: '2001-02-03T04:05Z' },
        { id: 30_001, title: 'b', createdBy: { username: 'ada' }, updatedBy: { username: 'zoë' } },
      ],
    })
    expect(createdUsers).toEqual(['zoë'])
    const note = await records.read('test.Note', 30_000)
    expect(note).toMatchObject({ createdBy: { name: 'zoë' }, createdOn: '2001-02-03T04:05:00.000Z' })
    const [user] = await app.db.reader.all(
      `select case when "disabled" then 1 else 0 end as "disabled" from "verso.auth.User" where "username" = 'zoë'`,
    )
    expect(user).toEqual({ disabled: 1 })
  })

  test('imported lines without an id get one, and version 0', async () => {
    expect(await imports(app, { 'test.Order': [{ t: 'a' }, { t: 'b' }] })).toMatchObject({ created: 2 })
    const { data } = await records.search('test.Order', { fields: ['t'] })
    expect(data).toMatchObject([
      { id: 1, version: 0, t: 'a' },
      { id: 2, version: 0, t: 'b' },
    ])
  })
})
