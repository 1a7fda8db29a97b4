// A folder of models may be a checkout of another project: its scripts never run, and every ignored file is listed.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createJiti } from 'jiti'
import { afterAll, describe, expect, test } from 'vitest'
import { findModelFiles, MAX_MODEL_BYTES } from '../../src/cli/models/model-files.js'
import { importsModelFunctions } from '../../src/cli/models/model-script.js'
import { loadModelsWithReport } from '../../src/cli/models/models.js'
import { ConfigError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { domain } from '../model/domain.js'
import { asNobody } from '../unprivileged.js'

const scratch = mkdtempSync(path.join(tmpdir(), 'verso-folders-'))
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

const json = (name: string) => JSON.stringify({ name: `t.${name}`, fields: { a: { type: 'string' } } })
const code = (name: string) =>
  `import { defineModel } from 'verso-records'\nexport const ${name} = defineModel({ name: 't.${name}', fields: { a: { type: 'string' } } })\n`

const namesIn = (loaded: Awaited<ReturnType<typeof loadModelsWithReport>>) =>
  loaded.sources.map(({ definition }) => (definition as { name: string }).name).sort()

/** `kind path`, relative to the folder. */
async function passedOver(root: string): Promise<string[]> {
  const short = (text: string) => text.replaceAll(new RegExp(`\\S*${path.basename(scratch)}/\\d+/?`, 'g'), '')
  return (await loadModelsWithReport(root)).skipped
    .map(({ kind, location }) => `${kind} ${short(location)}`)
    .sort()
}

async function faultsOf(place: string): Promise<readonly string[]> {
  const error: unknown = await loadModelsWithReport(place).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ConfigError)) throw new Error('the models were not rejected', { cause: error })
  return error.errors.map((fault) =>
    fault.replaceAll(new RegExp(`\\S*${path.basename(scratch)}/\\d+/?`, 'g'), ''),
  )
}

/** A checkout with two models and many scripts; each script leaves a mark when it runs. */
function checkout(): { readonly root: string; readonly marks: () => string[] } {
  const marked = path.join(scratch, `marks-${++folders}`)
  mkdirSync(marked)
  const mark = (name: string) =>
    `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(path.join(marked, name))}, '')\n`
  const root = folder({
    'model.ts': code('A'),
    'domains/B.xml': domain('<entity name="B"><string name="a"/></entity>'),
    'eslint.config.js': mark('config'),
    'scripts/audit.mjs': mark('audit'),
    'src/app.ts': mark('app'),
    'src/types.mts': `import type { RecordOf } from 'verso-records'\n${mark('types')}`,
    'src/embedding.ts': `import { createVerso } from 'verso-records'\n${mark('embedding')}`,
    'scripts/comment.js': `// import { defineModel } from 'verso-records'\n/* import { defineModel } from 'verso-records' */\n${mark('comment')}`,
    'scripts/generator.js': `${mark('generator')}const text = \`\nimport { defineModel } from 'verso-records'\n\${[1].map(() => \`}\`)}\n\`\n`,
    'scripts/quoted.js': `${mark('quoted')}const text = "import { defineModel } from 'verso-records'"\n`,
    'scripts/other.ts': `import { defineModel } from 'vue'\n${mark('other')}`,
    'test/model.spec.ts': `import { defineModel } from 'verso-records'\n${mark('test')}`,
    'build/model.js': `import { defineModel } from 'verso-records'\n${mark('build')}`,
    'dist/model.js': `import { defineModel } from 'verso-records'\n${mark('dist')}`,
    'web/target/model.js': `import { defineModel } from 'verso-records'\n${mark('target')}`,
    'node_modules/x/model.js': `import { defineModel } from 'verso-records'\n${mark('node_modules')}`,
    '.cache/model.js': `import { defineModel } from 'verso-records'\n${mark('dot')}`,
  })
  return { root, marks: () => readdirSync(marked).sort() }
}

/** A mutant: imports the scripts of all folders if their text suits a rule. */
async function importAll(root: string, rule: (text: string) => boolean): Promise<void> {
  const virtualModules = { 'verso-records': { defineModel }, vue: {} }
  const jiti = createJiti(import.meta.url, { fsCache: false, virtualModules })
  const scripts = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => /\.m?[jt]s$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
  for (const file of scripts) if (rule(readFileSync(file, 'utf8'))) await jiti.import(file)
}

const IN_FOLDERS = ['build', 'dist', 'dot', 'node_modules', 'target', 'test']

describe('a checkout as model folder', () => {
  test('a checkout yields its models, and none of its scripts runs', async () => {
    const { root, marks } = checkout()
    expect(namesIn(await loadModelsWithReport(root))).toEqual(['org.test.db.B', 't.A'])
    expect(marks()).toEqual([])
  })

  test.each([
    ['every script', () => true, ['app', 'audit', 'config', 'other']],
    ['scripts that name the package', (text: string) => text.includes('verso'), ['embedding', 'types']],
    [
      'scripts with the words of an import',
      (text: string) => /defineModel.*from 'verso-records'/.test(text),
      ['comment', 'generator', 'quoted'],
    ],
    ['scripts of all folders', importsModelFunctions, IN_FOLDERS],
  ])('a mutant of the model loader that imports %s is caught', async (_, rule, expected) => {
    const { root, marks } = checkout()
    await importAll(root, rule)
    expect(marks()).toEqual(expect.arrayContaining(expected))
  })

  test('ignored files of a checkout are listed, each ignored folder as one line', async () => {
    expect(await passedOver(checkout().root)).toEqual([
      ...['.cache', 'build', 'dist', 'node_modules', 'test', 'web/target'].map((name) => `folder ${name}`),
      ...['eslint.config.js', 'scripts/audit.mjs', 'scripts/comment.js', 'scripts/generator.js'].map(
        (name) => `script ${name}`,
      ),
      ...['scripts/other.ts', 'scripts/quoted.js', 'src/app.ts', 'src/embedding.ts', 'src/types.mts'].map(
        (name) => `script ${name}`,
      ),
    ])
  })

  test('a script named as the model file runs', async () => {
    const { root, marks } = checkout()
    expect(await faultsOf(path.join(root, 'src/app.ts'))).toEqual([
      expect.stringContaining('exports neither a model nor hooks'),
    ])
    expect(marks()).toEqual(['app'])
  })

  test.each(['test', 'node_modules/x', '.hidden', 'build'])(
    'the ignored folder %s is searched if it is named as the model folder',
    async (below) => {
      const root = folder({ [`${below}/a.ts`]: code('A'), [`${below}/b.json`]: json('B') })
      expect(namesIn(await loadModelsWithReport(path.join(root, below)))).toEqual(['t.A', 't.B'])
    },
  )

  test('a folder without models is rejected, and lists the ignored files', async () => {
    const root = folder({
      'a.js': 'export {}',
      'package.json': '{}',
      'pom.xml': '<project/>',
      'test/a.json': json('A'),
    })
    expect(await faultsOf(root)).toEqual([
      expect.stringMatching(/no model was found; to create example models, run: verso init$/),
      'skipped: 1 folder is not searched: test',
      'skipped: 1 script is not run: it imports none of defineModel, extendModel and defineHooks from "verso-records": a.js',
      'skipped: 1 JSON file has no "name" and "fields": package.json',
      'skipped: 1 XML file is not domain XML: pom.xml',
    ])
  })
})

describe('scripts that define models', () => {
  test.each([
    ["import { defineModel } from 'verso-records'"],
    ['import{extendModel}from"verso-records"'],
    ["import { defineHooks } from 'verso-records'"],
    [
      "import {\n  // of the package\n  defineModel as define,\n  type RecordOf,\n} from 'verso-records' // here",
    ],
    ["import * as verso from 'verso-records'\nexport const A = verso.defineModel({})"],
    ["const { defineModel } = require('verso-records')"],
    ["const { defineModel } = await import('verso-records')"],
    [
      "#!/usr/bin/env node\nimport type { InputOf } from 'verso-records'\nimport { defineModel } from 'verso-records'",
    ],
    ["const quote = /[`'\"/]/g, half = 4 / 2 / 1\nimport { defineModel } from 'verso-records'"],
    ["const text = `a ${`b ${{ c: '}' }.c}`} c`\nimport { defineModel } from 'verso-records'"],
    ["import { type RecordOf, type InputOf as Input, defineModel } from 'verso-records'"],
    ["import type, { defineModel } from 'verso-records'"],
    ["import it from './it.js'\nimport './side.js'\nimport { defineModel } from 'verso-records'"],
  ])('a script is recognized as a model file: %j', (text) => {
    expect(importsModelFunctions(text)).toBe(true)
  })

  test.each([
    ["import { createVerso } from 'verso-records'\nconst defineModel = 1"],
    ["import type { defineModel } from 'verso-records'"],
    ["import type{defineModel}from'verso-records'"],
    ["import type * as verso from 'verso-records'\nconst a = 'defineModel'"],
    ["import { type defineModel, type extendModel as extend, createVerso } from 'verso-records'"],
    ["import { defineModel } from 'vue'\nimport 'verso-records'"],
    ["export { defineModel } from 'verso-records'"],
    ["import { defineModel } from './verso'\n// import from 'verso-records'"],
    ["/*\nimport { defineModel } from 'verso-records'\n*/"],
    ["const text = `${a}\nimport { defineModel } from 'verso-records'\n`"],
    ["const text = 'import { defineModel } from \\'verso\\''"],
    ["import * as verso from 'verso-records'\n// verso.defineModel"],
  ])('a script is not a model file: %j', (text) => {
    expect(importsModelFunctions(text)).toBe(false)
  })
})

describe('JSON files in a model folder', () => {
  test('JSON is a model if it has a name and fields, also in a list; other JSON is ignored', async () => {
    const root = folder({
      'a.json': json('A'),
      'list.json': `[${json('B')}]`,
      'manifest.json': '{"name": "site", "files": []}',
      'data.json': '[{"name": "x"}]',
      'empty.json': '[]',
      'schema.json': '{"name": "x", "properties": {"a": {"type": "string"}}}',
      'tsconfig.base.json': '// comments\n{}',
    })
    expect(namesIn(await loadModelsWithReport(root))).toEqual(['t.A', 't.B'])
    expect(await passedOver(root)).toEqual(
      ['data.json', 'empty.json', 'manifest.json', 'schema.json', 'tsconfig.base.json'].map(
        (name) => `json ${name}`,
      ),
    )
  })

  test.each([
    ['an unknown type', '{"name": "t.B", "fields": {"a": {"type": "sting"}}}', /t\.B\.a: type must be/],
    ['invalid fields', '{"name": "t.B", "fields": 7}', /b\.json: /],
    ['a typo in "fields"', '{"name": "t.B", "feilds": {"a": {"type": "string"}}}', /unknown option "feilds"/],
    ['a typo in "name"', '{"nmae": "t.B", "fields": {"a": {"type": "string"}}}', /unknown option "nmae"/],
    ['a missing name', '{"fields": {"a": {"type": "string"}}}', /name/],
    ['a typo in a list', `[${json('C')}, {"name": "t.B"}]`, /t\.B/],
    [
      'a trailing comma',
      '{"name": "t.B", "fields": {"a": {"type": "string"},}}',
      /^b\.json: line 1, column 52: /,
    ],
  ])('a JSON model with %s is rejected', async (_, text, fault) => {
    expect(await faultsOf(folder({ 'a.json': json('A'), 'b.json': text }))).toContainEqual(
      expect.stringMatching(fault),
    )
  })

  test('malformed JSON without fields is ignored, with the position of the error', async () => {
    const root = folder({ 'a.json': json('A'), 'b.json': '{"name": "x",}' })
    expect((await loadModelsWithReport(root)).skipped).toEqual([
      {
        kind: 'no-json',
        location: expect.stringMatching(/b\.json$/),
        detail: expect.stringMatching(/^line 1, column 14: /),
      },
    ])
  })
})

describe('special files in a model folder', () => {
  test('links to folders are not followed, and broken links are reported', async () => {
    const root = folder({ 'a.json': json('A') })
    symlinkSync(root, path.join(root, 'circle'))
    symlinkSync('self.json', path.join(root, 'self.json'))
    symlinkSync('nowhere.ts', path.join(root, 'broken.ts'))
    expect(await passedOver(root)).toEqual(['folder circle', 'link broken.ts', 'link self.json'])
  })

  test('a file of more than 8 MiB inside a model folder is ignored', async () => {
    const root = folder({ 'a.json': json('A') })
    const padding = ' '.repeat(MAX_MODEL_BYTES)
    writeFileSync(path.join(root, 'b.json'), `${json('B')}${padding}`)
    writeFileSync(path.join(root, 'c.ts'), `${code('C')}${padding}`)
    writeFileSync(path.join(root, 'd.xml'), `<project>${padding}</project>`)
    expect(await passedOver(root)).toEqual(['large b.json', 'large c.ts', 'xml d.xml'])
    expect(namesIn(await loadModelsWithReport(path.join(root, 'b.json')))).toEqual(['t.B'])
  })

  test('domain XML of more than 8 MiB is rejected', async () => {
    const root = folder({ 'a.json': json('A') })
    writeFileSync(
      path.join(root, 'b.xml'),
      `<!-- ${'-'.repeat(9)} --><domain-models>${' '.repeat(MAX_MODEL_BYTES)}`,
    )
    expect(await faultsOf(root)).toEqual([`b.xml: the file has more than ${MAX_MODEL_BYTES} bytes`])
  })

  test('a model folder with too many files is rejected with advice', () => {
    const root = folder({ 'a.json': json('A'), 'b.json': json('B'), 'deep/c.json': json('C') })
    expect(findModelFiles(root, 4).files).toHaveLength(3)
    expect(findModelFiles(root, 3).errors).toEqual([
      expect.stringMatching(
        /the folder contains more than 3 files and folders; name the folder with the models$/,
      ),
    ])
  })

  test('an unreadable folder and an unreadable file are rejected', async () => {
    const root = folder({ 'a.json': json('A'), 'shut/b.json': json('B'), 'c.ts': code('C') })
    const [shut, file] = [path.join(root, 'shut'), path.join(root, 'c.ts')]
    chmodSync(shut, 0)
    chmodSync(file, 0)
    const faults = await asNobody(scratch, () => faultsOf(root))
    chmodSync(shut, 0o700)
    const words = 'permission denied; choose another location, or change the permissions'
    expect(faults).toEqual([`shut: ${words}`, `c.ts: ${words}`])
  })
})
