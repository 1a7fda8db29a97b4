import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import * as imports from '../scripts/check-imports.mjs'
import * as lock from '../scripts/check-lock.mjs'
import * as shape from '../scripts/shape.mjs'

const importFaults = (files: Record<string, string>) => imports.findFaults(new Map(Object.entries(files)))

describe('imports', () => {
  test('a file may import from its own place and from places before it in the order', () => {
    const faults = importFaults({
      'errors.ts': '',
      'wire.ts': "import './errors.js'",
      'model/values/value.ts': "import { VersoError } from '../../errors.js'",
      'model/query/search.ts': "import type { Value } from '../values/value.js'\nimport './sort.js'",
      'model/query/sort.ts': '',
      'store/open.ts': "import pg from 'pg'\nimport '../model/query/search.js'",
      'index.ts': "export * from './store/open.js'",
    })
    expect(faults).toEqual([])
  })

  test.each([
    ["import { open } from '../../store/open.js'", 'model/values stands before store/open'],
    ["import type { Database } from '../../store/open.js'", 'model/values stands before store/open'],
    ["export * from '../../store/open.js'", 'model/values stands before store/open'],
    ["const open = await import('../../store/open.js')", 'model/values stands before store/open'],
    ["import type { Search } from '../query/search.js'", 'model/values stands before model/query'],
    ["import { createApp } from '../../index.js'", 'nobody in src may import it'],
    ["import { createApp } from 'verso'", 'nobody in src may import it'],
    ["import pg from 'pg'", 'only src/store may import pg'],
    ["import type { Pool } from 'pg/lib/index.js'", 'only src/store may import pg'],
    ["import { DatabaseSync } from '@photostructure/sqlite'", 'only src/store may import'],
    ["import { fastify } from 'fastify'", 'only src/http may import'],
    ["import '../../errors/missing.js'", 'no such file in src'],
  ])('an import in src/model/values is rejected: %s', (line, reason) => {
    const others = { 'index.ts': '', 'store/open.ts': '', 'model/query/search.ts': '' }
    const faults = importFaults({ ...others, 'model/values/value.ts': line })
    expect(faults).toEqual([expect.stringMatching(/^src\/model\/values\/value\.ts imports '/)])
    expect(faults[0]).toContain(reason)
  })

  test('two places that import each other are rejected', () => {
    const faults = importFaults({
      'store/sql/select.ts': "import '../records/read.js'",
      'store/sql/table.ts': '',
      'store/records/read.ts': "import '../sql/table.js'",
    })
    expect(faults).toEqual([expect.stringContaining('store/sql stands before store/records')])
  })

  test('an import in a comment or a string is ignored', () => {
    const text = "// import '../store/open.js'\nconst text = \"import '../store/open.js'\""
    expect(importFaults({ 'store/open.ts': '', 'model/values/value.ts': text })).toEqual([])
  })

  test('a folder without a place in the order is rejected', () => {
    const faults = importFaults({ 'errors.ts': '', 'utils/text/fold.ts': "import '../../errors.js'" })
    expect(faults).toEqual([expect.stringContaining('utils/text has no place in the order')])
  })

  test('an import cycle inside a place is rejected, and reported once', () => {
    const faults = importFaults({
      'model/query/filter.ts': "import './search.js'",
      'model/query/path.ts': "import type { Filter } from './filter.js'",
      'model/query/search.ts': "import './path.js'",
    })
    expect(faults).toEqual([
      "src/model/query/path.ts imports './filter.js': a cycle, model/query/filter.ts → model/query/search.ts → model/query/path.ts → model/query/filter.ts",
    ])
  })

  test('every import in src follows the order of places', () => {
    const script = fileURLToPath(new URL('../scripts/check-imports.mjs', import.meta.url))
    expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toMatch(
      /^imports in order: [1-9]\d* files$/m,
    )
  })
})

describe('package-lock.json', () => {
  const faultsOf = (packages: Record<string, lock.LockEntry>) =>
    lock.findFaults({ packages }, { allowScripts: { '@scope/known': false, 'pinned@1.2.3': true } })

  test('a lock entry that names a registry host is rejected', () => {
    const resolved = 'https://registry.npmjs.org/pg/-/pg-8.0.0.tgz'
    expect(faultsOf({ 'node_modules/pg': { resolved } })).toEqual([expect.stringContaining(resolved)])
    expect(faultsOf({ 'node_modules/pg': {} })).toEqual([])
  })

  test('a missing platform package is rejected, a nested or hoisted one is accepted', () => {
    const outer = { optionalDependencies: { 'tool-linux': '1', 'tool-windows': '1', 'tool-darwin': '1' } }
    const faults = faultsOf({
      'node_modules/outer/node_modules/tool': outer,
      'node_modules/outer/node_modules/tool/node_modules/tool-linux': {},
      'node_modules/tool-windows': {},
    })
    expect(faults).toEqual([expect.stringContaining('tool-darwin')])
  })

  test('an install script that is not on the list of known scripts is rejected', () => {
    const hasInstallScript = true
    const faults = faultsOf({
      'node_modules/@scope/known': { hasInstallScript },
      'node_modules/pinned': { hasInstallScript },
      'node_modules/fsevents': { hasInstallScript },
      'node_modules/renamed': { name: 'stranger', hasInstallScript },
    })
    expect(faults).toEqual([expect.stringContaining('stranger')])
  })
})

describe('shape of the source', () => {
  const excessesOf = (files: Record<string, string>) =>
    shape.findExcesses(shape.measure(new Map(Object.entries(files))))
  const repeat = (write: (index: number) => string) =>
    Array.from({ length: 20 }, (_, index) => write(index)).join('')

  test('a tree within all limits is accepted', () => {
    const excesses = excessesOf({
      'model/query/search.ts': [
        '/** Finds records. As many words as it takes, Of any kind. */',
        'export function find(a: number, b: number, c: number, d: number) { return new WeakMap([[a, b]]) }',
        'export type Callback = (a: 1, b: 2, c: 3, d: 4, e: 5) => void',
        'line\n'.repeat(297),
      ].join('\n'),
      'model/query/sort.ts': 'export interface Sort {}',
    })
    expect(excesses).toEqual([])
  })

  test.each<[string, Record<string, string>]>([
    ['longSignatures', { 'a.ts': repeat((index) => `const f${index} = (a, b, c, d, e) => a\n`) }],
    ['weakMaps', { 'a.ts': repeat((index) => `const m${index} = new WeakMap<object, string>()\n`) }],
    [
      'repeatedTypes',
      {
        'a.ts': repeat((index) => `type T${index} = 1\n`),
        'b.ts': repeat((index) => `class T${index} {}\n`),
      },
    ],
    [
      'repeatedFunctions',
      {
        'a.ts': repeat((index) => `function f${index}() {}\n`),
        'b.ts': repeat((index) => `export async function f${index}() {}\n`),
      },
    ],
    ['longFiles', { 'a.ts': 'line\n'.repeat(301) }],
    ['vagueCommentPercent', { 'a.ts': '/** What is asked. */\nlet a\n// Reads a line.\nlet b' }],
  ])('a tree that exceeds the limit of %s is rejected', (limit, files) => {
    expect(excessesOf(files)).toEqual([expect.stringMatching(`^${limit}: `)])
  })
})
