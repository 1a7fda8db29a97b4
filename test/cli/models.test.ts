import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { writeStarterModels } from '../../src/cli/schema/init.js'
import { loadCatalog, loadCatalogSources } from '../../src/cli/models/models.js'
import { ConfigError } from '../../src/errors.js'
import type { Model } from '../../src/model/definition/model.js'

const scratch = mkdtempSync(path.join(tmpdir(), 'verso-models-'))
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

let folders = 0

function folder(files: Readonly<Record<string, string>>): string {
  const root = path.join(scratch, String(++folders))
  mkdirSync(root)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  return root
}

const SAMPLE = fileURLToPath(new URL('../../examples/contacts', import.meta.url))

async function modelsOf(place: string): Promise<readonly Model[]> {
  return (await loadCatalog(place)).models
}

async function namesOf(place: string): Promise<string[]> {
  return (await modelsOf(place)).map((model) => model.name)
}

/** Without the path of the folder. */
async function faultsOf(place: string): Promise<string[]> {
  const error = await loadCatalog(place).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ConfigError)) throw new Error('the models were not rejected', { cause: error })
  // Removes every spelling of the folder; a checkout may stand beside it.
  const folders = new RegExp(`\\S*${path.basename(path.dirname(place))}/`, 'g')
  return error.errors.map((fault) => fault.replace(folders, '').replace(/^\d+\//, ''))
}

const code = (name: string, fields = `{ a: { type: 'string' } }`) =>
  `import { defineModel } from 'verso-records'\nexport const ${name} = defineModel({ name: 't.${name}', fields: ${fields} })\n`
const json = (name: string) => JSON.stringify({ name: `t.${name}`, fields: { a: { type: 'string' } } })

describe('loading of models', () => {
  test('models load from TypeScript, JavaScript and JSON in nested folders, sorted by path', async () => {
    const root = folder({
      'b.ts': code('B'),
      'a.mjs': code('A'),
      'deep/er/c.mts': code('C'),
      'd.js': code('D'),
      'e.json': `[${json('E')}, ${json('F')}]`,
      'node_modules/x/index.js': 'throw new Error()',
      '.hidden/x.ts': 'throw new Error()',
      'package.json': '{}',
      'types.d.ts': 'export {}',
      'README.md': '# models',
    })
    expect(await namesOf(root)).toEqual(['t.A', 't.B', 't.D', 't.C', 't.E', 't.F'])
  })

  test('one file can define several models, import other modules and export types', async () => {
    const root = folder({
      'lengths.ts': 'export const SHORT = 10',
      'all.ts':
        `import { defineModel, type RecordOf } from 'verso-records'\nimport { SHORT } from './lengths.js'\n` +
        `export const A = defineModel({ name: 't.A', fields: { a: { type: 'string', length: SHORT } } })\n` +
        `export default defineModel({ name: 't.B', fields: { a: { type: 'string' } } })\n` +
        `export type A = RecordOf<typeof A>\nexport const other = 7 as const\n`,
    })
    const models = await modelsOf(path.join(root, 'all.ts'))
    expect(models.map((model) => model.name).sort()).toEqual(['t.A', 't.B'])
    expect(models.find((model) => model.name === 't.A')?.fields.get('a')?.maxLength).toBe(10)
  })

  test('a model in a folder can import modules beside it', async () => {
    const root = folder({
      'lengths.ts': 'export const SHORT = 10',
      'base/define.ts': `export { defineModel } from 'verso-records'\nexport const TEXT = { type: 'string' } as const`,
      'a.ts': `import { SHORT } from './lengths.js'\n${code('A', `{ a: { type: 'string', length: SHORT } }`)}`,
      'b.ts': `import { TEXT } from './base/define.js'\n${code('B', `{ a: TEXT }`)}`,
    })
    const [a, b] = await modelsOf(root)
    expect([a?.name, a?.fields.get('a')?.maxLength, b?.name]).toEqual(['t.A', 10, 't.B'])
  })

  test('hooks of other files are added once to models of every format, in the order of the files', async () => {
    const rules = (name: string, hook: string) =>
      `import { defineHooks, VersoError } from 'verso-records'\nexport const rules = defineHooks({ name: '${name}', fields: {} }, { ${hook}: () => { throw new VersoError('forbidden', 'no') } })\n`
    const root = folder({
      'a.ts': code('A'),
      'b.json': json('B'),
      'c.xml':
        '<domain-models><module name="c" package="t"/><entity name="C"><string name="a"/></entity></domain-models>',
      'rules/a1.ts': rules('t.A', 'validate'),
      'rules/a2.ts': rules('t.A', 'afterSave'),
      'rules/b.ts': rules('t.B', 'validate'),
      'rules/c.ts': rules('t.C', 'validate'),
      'rules/index.ts': `export * from './c.js'\n`,
    })
    const hooks = (await modelsOf(root)).map((model) => [
      model.name,
      model.hooks.flatMap((set) => Object.keys(set)),
    ])
    expect(Object.fromEntries(hooks)).toEqual({
      't.A': ['validate', 'afterSave'],
      't.B': ['validate'],
      't.C': ['validate'],
    })
  })

  test('a model re-exported by another file is loaded once', async () => {
    const root = folder({ 'a.ts': code('A'), 'index.ts': `export * from './a.js'\n` })
    expect(await namesOf(root)).toEqual(['t.A'])
  })

  test('a model file behind a symbolic link is loaded', async () => {
    const root = folder({ '..data/a.json': json('A') })
    symlinkSync(path.join(root, '..data/a.json'), path.join(root, 'a.json'))
    expect(await namesOf(root)).toEqual(['t.A'])
  })

  test('the sample has contacts with a company and circles, and companies with addresses', async () => {
    const models = await modelsOf(SAMPLE)
    const [, , company, contact] = models
    expect(models.map(({ name }) => name)).toEqual(
      ['Address', 'Circle', 'Company', 'Contact'].map((name) => `com.axelor.contact.db.${name}`),
    )
    expect(company?.fields.get('addresses')?.relation).toMatchObject({ owned: true })
    expect(company?.fields.get('employees')?.relation).toMatchObject({ owned: false, mappedBy: 'company' })
    const own = [...(contact?.fields.values() ?? [])].filter((field) => !field.isSystem)
    const kinds = Object.fromEntries(own.map((field) => [field.name, field.type]))
    expect(kinds).toEqual({
      ...{ fullName: 'string', firstName: 'string', lastName: 'string', email: 'string', phone: 'string' },
      ...{ dateOfBirth: 'date', notes: 'text', company: 'many-to-one', circles: 'many-to-many' },
    })
    expect(own.filter((field) => field.required)).toEqual([])
    expect([contact?.nameField, contact?.listFields]).toEqual(['fullName', ['fullName', 'email']])
  })

  test.each([
    [{ firstName: 'Ada', lastName: 'Lovelace' }, 'Ada Lovelace'],
    [{ firstName: 'Ada', lastName: null }, 'Ada'],
    [{ firstName: '', lastName: 'Lovelace' }, 'Lovelace'],
    [{ firstName: null, lastName: null }, null],
  ])('the full name of sample contact %o is %s', async (names, fullName) => {
    const contact = (await modelsOf(SAMPLE)).find(({ name }) => name.endsWith('.Contact'))
    expect(contact?.fields.get('fullName')?.computed?.(names)).toBe(fullName)
  })
})

describe('invalid models', () => {
  const imported = `import { defineModel } from 'verso-records'\n`

  test('an error of a file that a model imports names this file and its line', async () => {
    const lib = folder({ 'helper.ts': `export const rate = 1\nthrow new Error('the helper is broken')\n` })
    const root = folder({ 'uses.ts': `${imported}import '${path.join(lib, 'helper.ts')}'\n` })
    expect(await faultsOf(root)).toEqual([
      expect.stringMatching(/^uses\.ts: .*helper\.ts, line 2: the helper is broken$/),
    ])
  })

  test('errors name the file and field, syntax errors and invalid definitions together', async () => {
    const root = folder({
      'brace.json': '{\n  "name": "t.Brace",\n  "fields": { "a": tru }\n}',
      'comma.json': '{"fields": {}, "name": "t.Comma",}',
      'empty.ts': `${imported}export const nothing = 1\n`,
      'field.ts': code('Field', `{ a: { type: 'sting' }, b: { type: 'date', lenght: 3 } }`),
      'good.ts': code('Good'),
      'syntax.ts': `import { defineModel } from 'verso-records'\nexport const A = defineModel({ name: 't.A' fields: {} })\n`,
      'throws.ts': `${imported}const nothing = undefined\nexport const A = nothing.missing\n`,
      'twice.json': json('Good'),
      'unknown.ts': `${imported}import './nowhere.js'\n`,
    })
    expect((await faultsOf(root)).sort()).toEqual([
      expect.stringMatching(/^brace\.json: line 3, column 20: Unexpected token/),
      expect.stringMatching(/^comma\.json: line 1, column 34: Expected double-quoted property name/),
      'empty.ts: exports neither a model nor hooks; write: export const … = defineModel({ … }), or: export const … = defineHooks(…, { … }), or move the file out of the folder of models',
      expect.stringMatching(/^field\.ts: t\.Field\.a: type must be one of .*did you mean "string"/),
      expect.stringMatching(/^field\.ts: t\.Field\.b: unknown option "lenght" for type date/),
      expect.stringMatching(/^syntax\.ts: line 2, column \d+: Unexpected token, expected ","$/),
      expect.stringMatching(
        /^throws\.ts: line 3: Cannot read properties of undefined \(reading 'missing'\)$/,
      ),
      expect.stringMatching(/^twice\.json: t\.Good: .*good\.ts declares a model of the same name$/),
      "unknown.ts: Cannot find module './nowhere.js'",
    ])
  })

  test.each([
    ['[1, 2', 6],
    ['{"a": }', 7],
    ['[1,]', 4],
    ['', 1],
    ['{"a": "b" "c"}', 11],
    ["{'a': 1}", 2],
    ['{"a": "b\\x"}', 10],
    ['// comment\n{}', 1],
    ['[] []', 4],
    ['{"a": [[], {}, -1.5e3, true], "b": nul}', 36],
  ])('a syntax error in JSON %j is reported at column %i', async (text, column) => {
    const [fault] = await faultsOf(path.join(folder({ 'a.json': text }), 'a.json'))
    expect(fault).toMatch(new RegExp(`^a\\.json: line 1, column ${column}: `))
  })

  test('a folder without models, a missing path and an unknown file type are rejected', async () => {
    expect(await faultsOf(folder({ 'README.md': '' }))).toEqual([
      expect.stringContaining('no model was found; to create example models, run: verso init'),
    ])
    expect(await faultsOf(path.join(scratch, 'nowhere'))).toEqual([
      expect.stringContaining('the file or folder does not exist'),
    ])
    const root = folder({ 'a.yaml': '' })
    expect(await faultsOf(path.join(root, 'a.yaml'))).toEqual([
      'a.yaml: the name of a model file must end in .ts, .mts, .js, .mjs, .json, .xml',
    ])
  })

  test('an unreadable model file does not hide the others', async () => {
    const { sources, errors } = await loadCatalogSources(
      folder({ 'a.json': '{"fields"', 'b.json': json('B') }),
    )
    expect([sources.length, errors.length]).toEqual([1, 1])
  })
})

describe('the starter of verso init', () => {
  test('the starter has no errors', async () => {
    const place = path.join(scratch, 'new', 'models')
    expect(writeStarterModels(place)).toContain(`verso dev --models ${place}`)
    expect(await namesOf(place)).toEqual(['todo.Tag', 'todo.Task'])
  })

  test('the starter never overwrites a file', () => {
    const place = folder({ 'tag.json': 'mine' })
    expect(() => writeStarterModels(place)).toThrow(`tag.json exists already`)
  })

  test('the starter is written completely or not at all, even if a later file cannot be written', () => {
    const place = folder({})
    // A broken link: no file exists there, and none can be created.
    symlinkSync(path.join(place, 'gone', 'tag.json'), path.join(place, 'tag.json'))
    expect(() => writeStarterModels(place)).toThrow(/^Nothing was written:\n {2}- .+: .+$/)
    expect(readdirSync(place)).toEqual(['tag.json'])
  })
})
