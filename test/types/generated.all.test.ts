// Generated types: they equal the inferred ones, and compile in projects for browsers.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeModel } from '../../src/formats/model-description.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { models } from '../models.js'
import { compile, installClientTypes, ROOT, writeProject } from './compile.js'

const KINDS = ['read', 'create', 'update', 'reference', 'list', 'one', 'many', 'files', 'json'] as const
const folder = mkdtempSync(path.join(tmpdir(), 'verso-generated-'))
const catalog = Catalog.from(models)
const generated = formatModelTypes(catalog.storedModels.map((model) => describeModel(catalog, model, null)))

beforeAll(() => {
  installClientTypes(folder)
  writeFileSync(path.join(folder, 'models.ts'), generated)
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

describe('generated types and types that are inferred from definitions', () => {
  /** One line for each model and kind of type, which compiles only if both are assignable to each other. */
  const writeClaims = () => {
    const lines = catalog.storedModels.flatMap(({ name }) =>
      KINDS.map(
        (kind) => `export const _${kind}_${name.replaceAll('.', '_')}: Same<'${name}', '${kind}'> = true`,
      ),
    )
    const text = `import type { SchemaOf, ModelName } from '${ROOT}/src/client/types/schema.js'
import type * as definitions from '${ROOT}/test/models.js'
import type { Models } from './models.js'
type Inferred = SchemaOf<typeof definitions>
type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Same<N extends keyof Models, K extends keyof Models[N]> = Equal<Models[N][K], Inferred[N & keyof Inferred][K & keyof Inferred[N & keyof Inferred]]>
export const names: Equal<keyof Models, ModelName<typeof definitions>> = true
${lines.join('\n')}
`
    writeFileSync(path.join(folder, 'same.ts'), text)
    const options = {
      ...{ types: ['node'], typeRoots: [`${ROOT}/node_modules/@types`], lib: ['es2023', 'es2024.string'] },
      ...{ target: 'es2023', allowImportingTsExtensions: true, noUncheckedIndexedAccess: true },
    }
    return { project: writeProject(folder, ['same.ts'], options), claims: lines.length }
  }

  test('are assignable to each other, for each model and each kind of type', () => {
    const { project, claims } = writeClaims()
    expect(claims).toBe(catalog.storedModels.length * KINDS.length)
    expect(compile('tsc', folder, project)).toBe('')
  })

  test('differ if one of them is wrong', () => {
    const { project } = writeClaims()
    const wrong = generated
      .replace('  readonly rate: string | null\n', '  readonly rate: number | null\n')
      .replace(
        '  readonly city: string\n  readonly street?:',
        '  readonly city?: string\n  readonly street?:',
      )
    writeFileSync(path.join(folder, 'models.ts'), wrong)
    const found = compile('tsc', folder, project)
    writeFileSync(path.join(folder, 'models.ts'), generated)
    const names = [...found.matchAll(/^same\.ts\((\d+),14\)/gm)].length
    expect(names, found).toBe(2)
  })
})

describe('a project for browsers', () => {
  const program = `import { connect, type Filter } from 'verso-records/client'
import type { Models } from './models.js'
const verso = connect<Models>('/', {}, { timeout: 5_000 })
const people = verso.model('rel.Person')
const filter: Filter<Models, 'rel.Person'> = { name: 'Ada', or: [{ born: null }] }
export const names: readonly (string | null)[] = (await people.find({ fields: ['company.name'], filter })).data.map(
  (person) => person['company.name'],
)
export const file: Blob | undefined = await (await verso.model('doc.Paper').download(1, 'scan'))?.blob()
for await (const { seq } of people.follow({ since: 0, signal: new AbortController().signal })) console.log(seq)
`

  test.for([
    { module: 'esnext', moduleResolution: 'bundler' },
    { module: 'nodenext', moduleResolution: 'nodenext' },
  ])(
    '$moduleResolution compiles the client and the generated types, without the types of Node',
    (options) => {
      writeFileSync(path.join(folder, 'program.ts'), program)
      const project = writeProject(folder, ['program.ts'], { ...options, skipLibCheck: false })
      expect(compile('tsc', folder, project)).toBe('')
    },
  )
})
