// Types of 800 models: how long a compiler and an editor take.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadDomainModels } from '../../src/cli/models/models.js'
import { describeModel } from '../../src/formats/model-description.js'
import { formatModel } from '../../src/formats/model-file.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import type { Field } from '../../src/model/values/field.js'
import { LARGE, writeLargeDomain } from '../large-domain.js'
import { installClientTypes, ROOT, writeProject, type Compiler } from './compile.js'
import { LanguageServer } from './language-server.js'

const MODELS = 800
const USED_MODELS = 20
const MAX_SECONDS = 5
const MAX_RATIO = 4
const MAX_COMPLETION_MS = 500
const ATTEMPTS = 3

const folder = mkdtempSync(path.join(tmpdir(), 'verso-large-types-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

/** The model with the most fields comes first. */
let catalog: Catalog
let used: readonly {
  readonly name: string
  readonly own: readonly string[]
  readonly references: readonly string[]
}[]

beforeAll(async () => {
  const xml = path.join(folder, 'domains')
  writeLargeDomain(xml, { ...LARGE, entities: MODELS, fields: 9 * MODELS })
  const { models } = await loadDomainModels(xml)
  catalog = Catalog.from(models)
  installClientTypes(folder)
  const generated = formatModelTypes(catalog.storedModels.map((model) => describeModel(catalog, model, null)))
  writeFileSync(path.join(folder, 'models.ts'), generated)
  const definitions = models.map(({ definition }, index) =>
    formatModel(definition, 'ts')
      .replaceAll(/^(import|export type) .*$/gm, '')
      .replace(/export const \w+/, `export const Model${index}`),
  )
  writeFileSync(
    path.join(folder, 'definitions.ts'),
    `import { defineModel } from 'verso-records'\n${definitions.join('\n')}`,
  )
  used = catalog.models
    .toSorted((a, b) => b.fields.size - a.fields.size)
    .slice(0, USED_MODELS)
    .map(({ name, fields }) => {
      const list = (isWanted: (field: Field) => boolean) =>
        [...fields.values()].filter(isWanted).map((field) => field.name)
      return {
        name,
        own: list(({ type, isSystem }) => type === 'string' && !isSystem),
        references: list(({ type, isSystem }) => type === 'many-to-one' && !isSystem),
      }
    })
  writeFileSync(path.join(folder, 'empty.ts'), 'export {}\n')
  writeFileSync(
    path.join(folder, 'generated.ts'),
    writeProgram("import type { Models } from './models.js'", 'Models'),
  )
  writeFileSync(
    path.join(folder, 'inferred.ts'),
    writeProgram("import type * as models from './definitions.js'", 'typeof models'),
  )
})

const quote = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')

/** A program that finds, reads and changes records of the models with the most fields. */
function writeProgram(imported: string, schema: string): string {
  const functions = used.map(({ name, own, references }, index) => {
    const paths = references.flatMap((reference) => [
      reference,
      `${reference}.id`,
      `${reference}.createdBy.name`,
    ])
    const [first = 'id'] = own
    const [reference = 'createdBy'] = references
    return `export async function use${index}() {
  const model = verso.model('${name}')
  const { data } = await model.find({
    fields: [${quote([...own, ...paths].slice(0, 20))}],
    filter: { ${first}: null, '${reference}.id': { '>': 3 }, or: [{ id: 1 }, { '${reference}.createdBy.name': 'x' }] },
    sortBy: ['-${first}', '${reference}.id'],
  })
  const record = await model.update(data[0]?.id ?? 0, ({ version }) => (version > 3 ? { archived: true } : undefined))
  return record.${first}
}`
  })
  return `import { connect } from 'verso-records/client'
${imported}
const verso = connect<${schema}>('/')
${functions.join('\n')}
`
}

/** The processor time of a compilation in seconds. */
function measure(compiler: Compiler, file: string): number {
  const project = path.join(folder, writeProject(folder, [file]))
  const command = `"$0" -p "$1"; code=$?; times; exit $code`
  const { stdout, status } = spawnSync(
    'sh',
    ['-c', command, path.join(ROOT, 'node_modules/.bin', compiler), project],
    { encoding: 'utf8', cwd: folder },
  )
  if (status !== 0) throw new Error(stdout)
  const [, children = ''] = stdout.trim().split('\n').slice(-2)
  return [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + 60 * Number(minutes) + Number(seconds),
    0,
  )
}

/** The least of a few attempts; only the first one if it is below the limit. */
async function findLeast(limit: number, attempt: () => number | Promise<number>): Promise<number> {
  let least = Infinity
  for (let count = 0; count < ATTEMPTS && least > limit; count++) least = Math.min(least, await attempt())
  return least
}

describe('the compiler', () => {
  test(`takes at most ${MAX_SECONDS} s more than for an empty project with generated types`, async () => {
    const least = await findLeast(
      MAX_SECONDS,
      () => measure('tsc', 'generated.ts') - measure('tsc', 'empty.ts'),
    )
    process.stdout.write(`tsc: ${MODELS} generated models, +${least.toFixed(2)} s of processor time\n`)
    expect(least).toBeLessThan(MAX_SECONDS)
  })

  // This compiler is written in JavaScript, so its time depends on the machine even more.
  test(`of TypeScript 6 takes less than ${MAX_RATIO} times as long as for an empty project`, async () => {
    const least = await findLeast(MAX_RATIO, () => {
      const [generated, empty] = [measure('tsc6', 'generated.ts'), measure('tsc6', 'empty.ts')]
      process.stdout.write(`tsc6: ${generated.toFixed(2)} s, empty ${empty.toFixed(2)} s of processor time\n`)
      return generated / empty
    })
    expect(least).toBeLessThan(MAX_RATIO)
  })

  test('takes for definitions and a program at most four times as long as for the definitions', async () => {
    const definitions = measure('tsc', 'definitions.ts')
    const program = measure('tsc', 'inferred.ts')
    process.stdout.write(
      `tsc: ${MODELS} definitions ${definitions.toFixed(2)} s, with a program that uses them ${program.toFixed(2)} s\n`,
    )
    expect(program).toBeLessThan(4 * definitions)
  })
})

describe('an editor', () => {
  const server = new LanguageServer()
  afterAll(() => {
    server.stop()
  })

  test(`completes names of fields within ${MAX_COMPLETION_MS} ms`, async () => {
    const [{ name, own, references } = { name: '', own: [], references: [] }] = used
    const [reference = ''] = references
    const places: readonly (readonly [what: string, code: string, expected: string])[] = [
      ['fields', `m.find({ fields: ['|'] })`, own[0] ?? ''],
      ['a path', `m.find({ fields: ['${reference}.|'] })`, `${reference}.createdOn`],
      [
        'a path over two references',
        `m.find({ fields: ['${reference}.createdBy.|'] })`,
        `${reference}.createdBy.name`,
      ],
      ['a filter', 'm.find({ filter: { | } })', own[0] ?? ''],
      ['a filter over a reference', `m.find({ filter: { '${reference}.|': 1 } })`, `${reference}.createdOn`],
      ['a group of a filter', 'm.find({ filter: { or: [{ | }] } })', own[0] ?? ''],
      ['a sort key', `m.find({ sortBy: ['|'] })`, own[0] ?? ''],
      ['a descending sort key', `m.find({ sortBy: ['-|'] })`, `-${own[0] ?? ''}`],
      ['a create', 'm.create({ | })', own[0] ?? ''],
      ['a batch', `verso.batch([{ op: 'create', model: '${name}', data: { | } }])`, own[0] ?? ''],
      ['a model', `verso.model('|')`, name],
    ]
    const prelude = `${readFileSync(path.join(folder, 'generated.ts'), 'utf8')}const m = verso.model('${name}')\n`
    const text = `${prelude}${places.map(([, code]) => `void ${code.replace('|', '')};\n`).join('')}`
    const file = path.join(folder, 'edited.ts')
    writeFileSync(file, text)
    writeFileSync(
      path.join(folder, 'tsconfig.json'),
      readFileSync(path.join(folder, writeProject(folder, ['edited.ts']))),
    )
    server.open(file)
    // Waits until the project is loaded.
    await server.complete(file, text, prelude.length)
    const slow: string[] = []
    let index = prelude.length
    for (const [what, code, expected] of places) {
      const at = index + 'void '.length + code.indexOf('|')
      const least = await findLeast(MAX_COMPLETION_MS, async () => {
        const sinceMs = performance.now()
        expect(await server.complete(file, text, at), what).toContain(expected)
        return performance.now() - sinceMs
      })
      slow.push(`${what} ${least.toFixed(0)} ms`)
      expect(least, what).toBeLessThan(MAX_COMPLETION_MS)
      index += `void ${code};\n`.length - 1
    }
    process.stdout.write(
      `completion of a model with ${catalog.get(name).fields.size} fields: ${slow.join(', ')}\n`,
    )
  })
})
