import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import * as imports from '../scripts/check-imports.mjs'
import * as lock from '../scripts/check-lock.mjs'

const importFaults = (files: Record<string, string>) => imports.findFaults(new Map(Object.entries(files)))

describe('imports', () => {
  test('a file may import from its own folder and from folders to its left', () => {
    const faults = importFaults({
      'errors.ts': '',
      'wire.ts': "import './errors.js'",
      'model/field.ts': "import { Refusal } from '../errors.js'",
      'model/model.ts': "import type { Field } from './field.js'",
      'store/open.ts': "import pg from 'pg'\nimport '../model/model.js'",
      'client/client.ts': "import type { Body } from '../wire.js'",
      'admin/page.ts': "import '../client/client.js'",
      'index.ts': "export * from './store/open.js'\nexport * from './client/client.js'",
    })
    expect(faults).toEqual([])
  })

  test.each([
    ["import { open } from '../store/open.js'", 'model may import only errors, model'],
    ["import type { Database } from '../store/open.js'", 'model may import only errors, model'],
    ["export * from '../store/open.js'", 'model may import only errors, model'],
    ["const open = await import('../store/open.js')", 'model may import only errors, model'],
    ["import { createApp } from '../index.js'", 'nobody in src may import it'],
    ["import { createApp } from 'verso'", 'nobody in src may import it'],
    ["import pg from 'pg'", 'only src/store may import pg'],
    ["import type { Pool } from 'pg/lib/index.js'", 'only src/store may import pg'],
    ["import { DatabaseSync } from '@photostructure/sqlite'", 'only src/store may import'],
    ["import { fastify } from 'fastify'", 'only src/http may import'],
    ["import '../errors/missing.js'", 'no such file in src'],
  ])('an import in src/model is rejected: %s', (line, reason) => {
    const faults = importFaults({ 'index.ts': '', 'store/open.ts': '', 'model/field.ts': line })
    expect(faults).toEqual([expect.stringMatching(/^src\/model\/field\.ts imports '/)])
    expect(faults[0]).toContain(reason)
  })

  test('an import between client or admin and the server is rejected', () => {
    const faults = importFaults({
      'store/open.ts': '',
      'wire.ts': '',
      'client/client.ts': "import '../store/open.js'",
      'admin/page.ts': "import '../wire.js'",
      'cli/main.ts': "import '../client/client.js'",
    })
    expect(faults).toHaveLength(3)
  })

  test('an import in a comment or a string is ignored', () => {
    const text = "// import '../store/open.js'\nconst text = \"import '../store/open.js'\""
    expect(importFaults({ 'store/open.ts': '', 'model/field.ts': text })).toEqual([])
  })

  test('a folder outside of the folder order is rejected', () => {
    const faults = importFaults({ 'errors.ts': '', 'utils/text.ts': "import '../errors.js'" })
    expect(faults).toEqual([expect.stringContaining('utils has no place in the order')])
  })

  test('an import cycle inside a folder is rejected, and reported once', () => {
    const faults = importFaults({
      'model/catalog.ts': "import './model.js'",
      'model/field.ts': "import type { Catalog } from './catalog.js'",
      'model/model.ts': "import './field.js'",
    })
    expect(faults).toEqual([
      "src/model/field.ts imports './catalog.js': a cycle, model/catalog.ts → model/model.ts → model/field.ts → model/catalog.ts",
    ])
  })

  test('every import in src follows the folder order', () => {
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
