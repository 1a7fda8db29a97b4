import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { serializeRequest } from '../bench/apis.mjs'
import {
  buildClientNotes,
  buildClientsTable,
  buildEqualityTable,
  type Turn,
} from '../bench/clients-report.mjs'
import { listSteps, orderTurns, shareWarmUp } from '../bench/interleaved.mjs'
import { readOptions } from '../bench/options.mjs'
import * as imports from '../scripts/check-imports.mjs'
import * as lock from '../scripts/check-lock.mjs'
import * as shape from '../scripts/shape.mjs'
import * as trace from '../scripts/trace-request.mjs'

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
    ["import { createVerso } from '../../index.js'", 'nobody in src may import it'],
    ["import { createVerso } from 'verso-records'", 'nobody in src may import it'],
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

  test('the web application has an order of its own', () => {
    const files = {
      'form/record-page.tsx': '',
      'service/session.ts': "import '../form/record-page.js'",
      'logo.svg': '',
    }
    const faults = imports.findFaults(new Map(Object.entries(files)), imports.ADMIN)
    expect(faults).toEqual([expect.stringContaining('service stands before form')])
    const picture = { 'logo.svg': '', 'layout/wordmark.tsx': "import logo from '../logo.svg'" }
    expect(imports.findFaults(new Map(Object.entries(picture)), imports.ADMIN)).toEqual([])
  })

  test('every import in src and admin follows the order of places', () => {
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

test('two trees are compared by folder, in files and lines', () => {
  const measured = (files: Record<string, string>) => shape.measure(new Map(Object.entries(files)))
  const before = measured({ 'http/short.ts': 'a\nb\n', 'http/route/guard.ts': 'a\n', 'errors.ts': 'a' })
  const now = measured({ 'http/route/guard.ts': 'a\nb\nc\n', 'errors.ts': 'a' })
  expect(shape.compareFolders(before, now).rows).toEqual([
    ['.', '1', '1', '1', '1'],
    ['http', '2', '1', '3', '3'],
    ['  http/route', '1', '1', '1', '3'],
    ['all', '3', '2', '4', '4'],
  ])
})

describe('trace of a request', () => {
  const traceOf = (...files: string[]): trace.Trace =>
    new Map(files.map((file) => [file, new Map([['run@1', 1]])]))
  const text = [
    '## The life of an update: `POST /ws/rest/crm.Contact/7`',
    '',
    'First `http/records/write` → `service/save`; hooks such as `validate` run. If the version is old, the answer is `conflict` with',
    'verdicts from `model/write/merge`. Then `store/log` appends.',
    '',
    '## The life of a login',
    'See `http/auth/login`.',
  ].join('\n')
  const plain = ['http/records/write', 'service/save', 'store/log/append']

  test('functions that ran count, code at the top level of a module does not', () => {
    const script = (url: string, ...functions: [name: string, start: number, count: number][]) => ({
      url,
      functions: functions.map(([functionName, startOffset, count]) => ({
        functionName,
        ranges: [{ startOffset, endOffset: 100, count }],
      })),
    })
    const scripts = [
      script('file:///verso/dist/http/server.js', ['', 0, 1], ['send', 5, 2], ['close', 9, 0], ['', 20, 1]),
      script('file:///verso/dist/wire.js', ['', 0, 1]),
      script('file:///verso/node_modules/pg/index.js', ['query', 5, 1]),
      script('node:internal/http', ['parse', 5, 1]),
    ]
    expect(trace.listCalls(scripts, '/verso/dist')).toEqual(
      new Map([
        [
          'http/server',
          new Map([
            ['send@5', 2],
            ['function@20', 1],
          ]),
        ],
      ]),
    )
  })

  test('a function that did not run for every request is no part of a trace', () => {
    const one: trace.Trace = new Map([
      ['a', new Map([['f@1', 3]])],
      ['timer', new Map([['tick@1', 1]])],
    ])
    const other: trace.Trace = new Map([['a', new Map([['f@1', 2]])]])
    expect(trace.intersect([one, other])).toEqual(new Map([['a', new Map([['f@1', 2]])]]))
  })

  test('the paragraph about an update names its files, apart from those of a conflict', () => {
    expect(trace.findNamedFiles(text)).toEqual({
      plain: ['http/records/write', 'service/save', 'store/log'],
      conflict: ['model/write/merge'],
    })
  })

  test('a paragraph that names what runs is accepted', () => {
    const updates = { cookie: traceOf(...plain), key: traceOf(...plain) }
    expect(trace.findFaults(text, updates, traceOf('model/write/merge'))).toEqual([])
  })

  test.each<[string, Record<string, trace.Trace>, trace.Trace, string]>([
    [
      'a named file that does not run',
      { key: traceOf(...plain.slice(1)) },
      traceOf('model/write/merge'),
      'http/records/write does not run in an update with key',
    ],
    [
      'a named file that does not run in a conflict',
      { key: traceOf(...plain) },
      traceOf('service/save'),
      'model/write/merge does not run in a stale update',
    ],
    [
      'a file that only one kind of client runs',
      { cookie: traceOf(...plain, 'http/cookie-path'), key: traceOf(...plain) },
      traceOf('model/write/merge'),
      'http/cookie-path runs in an update with cookie, not with key',
    ],
    [
      'an update that runs too many files',
      { key: traceOf(...plain, ...Array.from({ length: 38 }, (_, index) => `store/more-${index}`)) },
      traceOf('model/write/merge'),
      'an update with key runs 41 files, more than 40',
    ],
  ])('%s is rejected', (_, updates, stale, fault) => {
    expect(trace.findFaults(text, updates, stale)).toEqual([fault])
  })

  test('an update runs the files that ARCHITECTURE.md names, the same for a cookie, a key and a proxy', () => {
    const script = fileURLToPath(new URL('../scripts/trace-request.mjs', import.meta.url))
    const { stdout } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
    expect(stdout).toMatch(/^update, proxy +[1-9]\d/m)
    expect(stdout).toContain('the life of an update is as ARCHITECTURE.md tells it')
  })

  test('a document without the paragraph is rejected', () => {
    expect(trace.findFaults('', { key: traceOf(...plain) }, traceOf())).toHaveLength(1)
  })
})

describe('options of the benchmark', () => {
  const KINDS = ['cookie', 'key', 'browser', 'proxy']

  test('without --client both sections run, the servers with a cookie and the clients with all kinds', () => {
    const { sideBySide, clients } = readOptions([])
    expect(sideBySide).toMatchObject({ clients: ['cookie'], rounds: 3, seconds: 2, rows: 100_000 })
    expect(sideBySide?.only).toEqual(['read', 'list0', 'list50', 'update', 'mixed', 'create'])
    expect(clients).toMatchObject({ clients: KINDS, servers: ['verso', 'static'] })
    expect(clients?.only).toEqual(
      expect.arrayContaining(['sorted', 'filtered', 'small', 'smallSorted', 'smallFiltered']),
    )
  })

  test('one kind of client chooses the servers side by side, several choose the clients', () => {
    expect(readOptions(['--client', 'key'])).toMatchObject({ sideBySide: { clients: ['key'] } })
    expect(readOptions(['--client', 'key'])).not.toHaveProperty('clients')
    expect(readOptions(['--client', 'all'])).not.toHaveProperty('sideBySide')
    const flags = ['--only', 'read', '--rounds', '4', '--seconds', '0.1', '--before', '../other']
    const expected = {
      clients: ['cookie', 'proxy'],
      only: ['read'],
      rounds: 4,
      seconds: 0.1,
      before: '../other',
    }
    expect(readOptions(['--client', 'cookie,proxy', ...flags]).clients).toMatchObject(expected)
  })

  test.each([
    [['--client', 'robot'], '--client knows no robot'],
    [['--client', 'none'], '--client takes at least one name'],
    [['--client', 'all', '--rows', '300'], '--rows must be at least'],
    [['--client', 'all', '--rounds', '3'], '--rounds must be a multiple of --starts'],
    [['--client', 'key', '--starts', '2', '--rounds', '4'], '--starts needs --before'],
    [['--seconds', '0'], '--seconds must be a number above 0'],
  ])('%j is rejected', (args, reason) => {
    expect(() => readOptions(args)).toThrow(reason)
  })
})

describe('turns of the benchmark', () => {
  test('every cell has one turn in each round, and none always follows the same other one', () => {
    const orders = Array.from({ length: 8 }, (_, round) => orderTurns(4, round))
    for (const order of orders) expect([...order].sort()).toEqual([0, 1, 2, 3])
    const first = new Map<number, number>()
    for (const [cell = -1] of orders) first.set(cell, (first.get(cell) ?? 0) + 1)
    expect([...first.values()]).toEqual([2, 2, 2, 2])
    const isBefore = orders.map((order) => order.indexOf(0) < order.indexOf(1))
    expect(isBefore.filter(Boolean)).toHaveLength(4)
  })

  test('clients of the same server share its warm-up', () => {
    const cells = [{ pid: 1 }, { pid: 1 }, { pid: 2 }]
    expect(cells.map((_, index) => shareWarmUp(cells, index, 2))).toEqual([1, 1, 2])
  })

  test('operations that make tables longer come after all starts of the others', () => {
    expect(listSteps(['create', 'read', 'update', 'mixed'], 2)).toEqual([
      { operations: ['read', 'update'], start: 0 },
      { operations: ['read', 'update'], start: 1 },
      { operations: ['create'], start: 0 },
      { operations: ['create'], start: 1 },
      { operations: ['mixed'], start: 0 },
      { operations: ['mixed'], start: 1 },
    ])
    expect(listSteps(['create'], 1)).toEqual([{ operations: ['create'], start: 0 }])
  })

  test('headers of writes are sent with writes only', () => {
    const text = (body?: unknown) =>
      serializeRequest(
        { method: 'PUT', path: '/', ...(body === undefined ? {} : { body }) },
        { cookie: 'a=b' },
        { origin: 'http://localhost' },
      ).toString()
    expect(text()).toBe('PUT / HTTP/1.1\r\nhost: localhost\r\ncookie: a=b\r\n\r\n')
    expect(text({})).toContain('\r\norigin: http://localhost\r\n')
  })
})

describe('report about kinds of clients', () => {
  const turns = (...pairs: [perSecond: number, cpuUs: number][]): Turn[] =>
    pairs.map(([perSecond, cpuUs]) => ({ perSecond, cpuUs, faults: [] }))
  /** The second round ran on a busy machine. */
  const read = {
    'verso cookie': turns([1000, 100], [500, 200], [1000, 100]),
    'verso key': turns([980, 102], [490, 204], [980, 102]),
    'verso proxy': turns([800, 120], [400, 240], [800, 120]),
    'before cookie': turns([2000, 50], [1000, 100], [2000, 50]),
    'static cookie': turns([4000, 25], [2000, 50], [4000, 25]),
  }

  test('ratios are taken within a round, against a cookie, the build before and static answers', () => {
    const { headings, rows } = buildClientsTable({ read }, ['cookie', 'key', 'browser', 'proxy'])
    const column = (name: string) => rows.map((row) => row[headings.indexOf(name)])
    expect(column('client')).toEqual(['cookie', 'API key', 'proxy'])
    expect(column('÷ cookie, CPU')).toEqual(['', '1.02 (1.02–1.02)', '1.20 (1.20–1.20)'])
    expect(column('÷ cookie, requests/s')).toEqual(['', '0.98 (0.98–0.98)', '0.80 (0.80–0.80)'])
    expect(column('÷ before, CPU')).toEqual(['2.00 (2.00–2.00)', '', ''])
    expect(column('÷ static, requests/s')).toEqual(['0.25 (0.25–0.25)', '', ''])
  })

  test('a comparison that was not measured has no column', () => {
    const { headings } = buildClientsTable({ read: { 'verso cookie': read['verso cookie'] } }, ['cookie'])
    expect(headings).toEqual(['operation', 'engine', 'client', 'requests/s', 'CPU µs'])
  })

  test('the kind that is farthest from a cookie decides whether all kinds are equal', () => {
    const told = (clients: string[]) => buildEqualityTable({ read }, clients).rows[0]?.slice(2)
    expect(told(['cookie', 'key'])).toEqual(['API key', '1.02 (1.02–1.02)', 'reached'])
    expect(told(['cookie', 'key', 'proxy'])).toEqual(['proxy', '1.20 (1.20–1.20)', 'missed'])
  })

  test('a proxy is compared with the cookie on its own server', () => {
    const cells = { ...read, 'verso cookie-beside-proxy': turns([800, 118], [400, 236], [800, 118]) }
    const told = buildEqualityTable({ read: cells }, ['cookie', 'proxy']).rows[0]?.slice(2)
    expect(told).toEqual(['proxy', '1.02 (1.02–1.02)', 'reached'])
    const { headings, rows } = buildClientsTable({ read: cells }, ['cookie', 'proxy'])
    expect(rows.map((row) => row[headings.indexOf('÷ cookie, requests/s')])).toEqual(['', '1.00 (1.00–1.00)'])
  })

  test('the verdict shows the confidence interval of the ratio', () => {
    const judge = (slowRounds: number) => {
      const cookie = turns(...Array.from({ length: 100 }, (): [number, number] => [1000, 100]))
      const key = turns(
        ...Array.from({ length: 100 }, (_, round): [number, number] => [
          1000,
          round < slowRounds ? 120 : 100,
        ]),
      )
      const cells = { 'verso cookie': cookie, 'verso key': key }
      return buildEqualityTable({ read: cells }, ['cookie', 'key']).rows[0]?.slice(3)
    }
    expect(judge(30)).toEqual(['1.00 (1.00–1.00)', 'reached'])
    expect(judge(45)).toEqual(['1.00 (1.00–1.20)', 'reached'])
    expect(judge(55)).toEqual(['1.20 (1.00–1.20)', 'missed'])
    expect(judge(90)).toEqual(['1.20 (1.20–1.20)', 'missed'])
  })

  test('failed requests are listed', () => {
    const failed: Turn = { perSecond: 0, cpuUs: 0, faults: [['status 503', 2]] }
    expect(buildClientNotes({ read: { 'verso key': [failed, failed] } })).toEqual([
      'NOT ALL SUCCEEDED: verso key, read one: status 503 × 4',
    ])
  })
})
