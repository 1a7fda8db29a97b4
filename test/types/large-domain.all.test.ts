// The types of 800 models: how long the compiler takes, and how long an editor takes to complete a field name.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadCatalog } from '../../src/cli/models/models.js'
import { describeModel } from '../../src/formats/model-description.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import type { Model } from '../../src/model/definition/model.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import { LanguageServer } from './language-server.js'

const ROOT = path.join(import.meta.dirname, '../..')
const TSC = path.join(ROOT, 'node_modules/@typescript/native/bin/tsc')
const CLIENT = path.join(ROOT, 'dist/client/index.js')
const MODELS = 800
const USED_MODELS = 20
const MAX_COMPILE_SECONDS = 5
const MAX_COMPLETION_MS = 500

let folder: string
let used: readonly Model[] = []

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-types-'))
  const domain = path.join(folder, 'xml')
  mkdirSync(domain)
  writeLargeDomain(domain, { ...LARGE, entities: MODELS })
  const catalog = await loadCatalog(domain)
  const descriptions = catalog.storedModels.map((model) => describeModel(catalog, model, null))
  writeFileSync(path.join(folder, 'models.ts'), formatModelTypes(descriptions))
  used = catalog.models
    .filter((model) => listReferences(model).length > 1 && listTexts(model).length > 0)
    .slice(0, USED_MODELS)
  write('empty', 'export {}\n')
  write('program', HEAD + used.map(formatUse).join('\n'))
}, 300_000)

afterAll(() => {
  rmSync(folder, { recursive: true })
})

const HEAD = `import { connect } from ${JSON.stringify(CLIENT)}
import type { Models } from './models.js'

const verso = connect<Models>('http://localhost:8080', { key: '' })
`

function listReferences(model: Model): readonly string[] {
  return [...model.fields.values()]
    .filter(({ type, isSystem }) => type === 'many-to-one' && !isSystem)
    .map(({ name }) => name)
}

function listTexts(model: Model): readonly string[] {
  return [...model.fields.values()]
    .filter(({ type, required, selection }) => type === 'string' && !required && selection === undefined)
    .map(({ name }) => name)
}

/** A function that finds, reads and updates records of a model, over paths of up to three relations. */
function formatUse(model: Model, index: number): string {
  const { name } = model
  const [first = '', second = ''] = listReferences(model)
  const [own = ''] = listTexts(model)
  return `export async function use${index}() {
  const records = verso.model('${name}')
  const { data } = await records.find({
    fields: ['${own}', '${first}.createdBy.name', '${second}.updatedBy.name'],
    filter: { '${first}.id': { '>': 3 }, or: [{ id: 1 }, { '${second}.version': 2 }] },
    sortBy: ['-${first}.createdBy.name', 'id'],
  })
  const { version } = await records.read(1)
  await records.update(1, { version, ${own}: 'x' }, { onConflict: ({ theirs }) => ({ ${own}: theirs.${own} }) })
  return data.map((record) => [record['${own}'], record['${first}.createdBy.name']])
}
`
}

function write(name: string, text: string): void {
  writeFileSync(path.join(folder, `${name}.ts`), text)
  const compilerOptions = {
    strict: true,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    types: [],
    module: 'esnext',
    moduleResolution: 'bundler',
    noEmit: true,
  }
  const config = JSON.stringify({ compilerOptions, files: [`${name}.ts`] })
  writeFileSync(path.join(folder, `tsconfig.${name}.json`), config)
}

/** Fails with the errors of the compiler. */
function compile(name: string): void {
  const config = path.join(folder, `tsconfig.${name}.json`)
  const { status, stdout } = spawnSync(process.execPath, [TSC, '-p', config], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
}

/** Returns the seconds of the best of three runs. */
function measureCompile(name: string): number {
  const seconds = Array.from({ length: 3 }, () => {
    const startMs = performance.now()
    compile(name)
    return (performance.now() - startMs) / 1000
  })
  return Math.min(...seconds)
}

test('a program that uses 20 of 800 models compiles at most 5 s longer than an empty one', () => {
  const [empty, program] = [measureCompile('empty'), measureCompile('program')]
  console.log(`tsc: ${empty.toFixed(2)} s empty, ${program.toFixed(2)} s with the types of ${MODELS} models`)
  expect(program - empty).toBeLessThan(MAX_COMPILE_SECONDS)
})

test('a misspelled field of such a program is one error', () => {
  write('mistake', `${HEAD}void verso.model('${used[0]?.name ?? ''}').find({ fields: ['naem'] })\n`)
  expect(() => {
    compile('mistake')
  }).toThrow(/^[^\n]*mistake\.ts[^\n]* error TS\d+: Type '"naem"' is not assignable to type [^\n]*\n$/)
})

test('tsserver completes a field name in fields, filter and sortBy within 500 ms', async () => {
  const [model] = used
  const own = [...(model?.fields.keys() ?? [])]
  const server = new LanguageServer()
  try {
    for (const place of [`fields: ['']`, `filter: { '': 1 }`, `sortBy: ['']`]) {
      const text = `${HEAD}void verso.model('${model?.name ?? ''}').find({ ${place} })\n`
      const file = path.join(folder, `complete-${place.slice(0, 4)}.ts`)
      server.open(file, text)
      const at = text.indexOf(place) + place.indexOf(`''`) + 1
      const before = text.slice(0, at).split('\n')
      const position = { file, line: before.length, offset: (before.at(-1)?.length ?? 0) + 1 }
      // The first request loads the project.
      const names = await server.complete(position)
      expect([place, names]).toEqual([place, expect.arrayContaining(own.slice(0, 3))])
      const times: number[] = []
      for (let round = 0; round < 5; round++) {
        // A changed text, as after each key of a person who types.
        server.open(file, `${text}// ${round}\n`)
        const startMs = performance.now()
        await server.complete(position)
        times.push(performance.now() - startMs)
      }
      const ms = Math.min(...times)
      console.log(`completion in ${place}: ${ms.toFixed(0)} ms, ${names.length} names`)
      expect(ms).toBeLessThan(MAX_COMPLETION_MS)
    }
  } finally {
    server.stop()
  }
})
