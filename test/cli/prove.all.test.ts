// `verso prove` as a user runs it: short runs against its own services, a running service, and one that loses updates.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { describe, expect, inject, test, vi } from 'vitest'
import type { ClientOperation } from '../../src/cli/prove/checks/operation.js'
import type { Scoreboard } from '../../src/cli/prove/scoreboard.js'
import { HttpClient } from '../http-client.js'
import { createDatabase } from '../postgres.js'
import { followPage } from '../docs/reader.js'
import { cleanUpAfterwards, MAIN, newDatabase, PASSWORD, scratch, start, verso } from './program.js'

cleanUpAfterwards()

// Each test starts several processes in sequence.
vi.setConfig({ testTimeout: 300_000 })

const MODELS = path.join(import.meta.dirname, '../../examples/prove')
const MODEL = 'prove.TokenList'
/** Enough operations of each kind, even on a slow machine. */
const TROUBLE = '--at-least 20 --drop 0.1 --duplicates 0.2'.split(' ')

async function prove(...args: string[]): Promise<Scoreboard & { readonly code: number }> {
  const { code, stdout, stderr } = await verso(['prove', '--json', ...args])
  if (stdout === '') throw new Error(stderr)
  return { code, ...(JSON.parse(stdout) as Scoreboard) }
}

describe('verso prove', () => {
  test('verso prove on SQLite with kills finds no lost update', async () => {
    const { code, ...score } = await prove('--seconds', '3', '--kills', '2', ...TROUBLE)
    expect(score.violations).toEqual([])
    expect(code).toBe(0)
    expect(score).toMatchObject({ nodes: 1, clients: 16, kills: 2 })
    expect(score.feedChanges).toBeGreaterThanOrEqual(score.updates + score.creates)
    for (const count of [score.updates, score.conflicts, score.dropped, score.duplicates, score.finds])
      expect(count).toBeGreaterThan(0)
  })

  test('verso prove on three PostgreSQL nodes with kills and duplicate writes finds no lost update', async () => {
    const db = await createDatabase(inject('postgresUrl'))
    const load = '--nodes 3 --seconds 4 --kills 2 --duplicates 1 --drop 0.1 --at-least 20'.split(' ')
    const { code, ...score } = await prove('--db', db, ...load)
    expect(score.violations).toEqual([])
    expect(code).toBe(0)
    expect(score).toMatchObject({ nodes: 3, kills: 2 })
    expect(score.feedChanges).toBeGreaterThanOrEqual(score.updates + score.creates)
    expect(Math.min(score.updates, score.conflicts)).toBeGreaterThan(0)
    const again = await verso(['prove', '--db', db, '--seconds', '1'])
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('is in use; name an empty database')
  })

  test('verso prove reports a store where the last write wins, in every run', async () => {
    for (let run = 1; run <= 5; run++) {
      const { code, violations } = await prove('--adapter', 'last-write-wins', '--seconds', '1')
      expect(code).toBe(1)
      expect(new Set(violations.map(({ rule }) => rule))).toContain('lost-update')
    }
  })

  test('the scoreboard of verso prove describes lost updates in plain words', async () => {
    const { code, stdout } = await verso(['prove', '--adapter', 'last-write-wins', '--seconds', '1'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ {2}updates ok +[\d,]+$/m)
    expect(stdout).toMatch(/^ {2}violations +[\d,]+$/m)
    expect(stdout).toContain('lost-update: an acknowledged update is missing\n    record ')
    expect(stdout).toMatch(/and [\d,]+ more\n$/)
  })
})

test('verso prove reports a feed that omits or repeats changes, and accepts a correct one', async () => {
  const file = path.join(import.meta.dirname, 'store-with-feed.mjs')
  const rules = async (mutant: string) => {
    const flags = ['prove', '--json', '--adapter', file, '--seconds', '1']
    const { stdout } = await verso(flags, '', { FEED_MUTANT: mutant })
    const { violations, feedChanges } = JSON.parse(stdout) as Scoreboard
    expect(feedChanges).toBeGreaterThan(0)
    return [...new Set(violations.map(({ rule }) => rule))]
  }
  expect(await rules('none')).toEqual([])
  expect(await rules('forgets')).toContain('feed-gap')
  expect(await rules('repeats')).toEqual(['feed-order'])
})

describe('verso prove --url', () => {
  test('verso prove --url works beside existing records, and removes its own', async () => {
    const db = newDatabase()
    const { url } = await start(['serve', '--models', MODELS, '--db', db, '--port', '0'], {
      VERSO_ADMIN_PASSWORD: PASSWORD,
    })
    const client = await HttpClient.login(url, 'admin', PASSWORD)
    const { data: foreign } = await client.create(MODEL, { run: 'somebody else', tokens: ['x'] })
    const target = ['--url', `${url}/`, '--model', MODEL, '--field', 'tokens']
    const journal = path.join(scratch, 'journal.ndjson')
    const flags = [
      ...target,
      '--user',
      'admin',
      '--mark',
      'run',
      '--seconds',
      '2',
      '--at-least',
      '200',
      '--journal',
      journal,
    ]
    const { code, stdout, stderr } = await verso(['prove', ...flags], '', { VERSO_PROVE_PASSWORD: PASSWORD })
    expect(stdout, stderr).toMatch(/violations +0$/m)
    expect(code).toBe(0)
    const { data } = await client.find(MODEL)
    expect(data).toEqual([expect.objectContaining({ id: foreign.id, version: 0 })])
    const lines = readFileSync(journal, 'utf8').trimEnd().split('\n')
    const operations = lines.map((line) => JSON.parse(line) as ClientOperation)
    const kinds = operations.map(({ kind }) => kind)
    expect(new Set(kinds)).toEqual(new Set(['create', 'read', 'update', 'remove', 'total']))
    const updates = operations.filter(({ kind }) => kind === 'update')
    const keyed = updates.filter(({ key }) => key !== undefined)
    expect(keyed.length / updates.length).toBeGreaterThan(0.5)
    expect(keyed.length).toBeLessThan(updates.length)

    const wrong = await verso(['prove', ...target, '--user', 'admin', '--password', 'not it'])
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain('the login of admin failed: 401')
    expect(wrong.stderr).not.toContain('clients for')
  })

  test('verso prove --url accepts an API key, and skips totals without --mark', async () => {
    const db = newDatabase()
    const models = path.join(scratch, 'notes.json')
    writeFileSync(models, JSON.stringify({ name: 'crm.Note', fields: { extra: { type: 'json' } } }))
    const { url } = await start(['serve', '--models', models, '--db', db, '--port', '0'], {
      VERSO_ADMIN_PASSWORD: PASSWORD,
    })
    const key = (await verso(['key', 'add', 'admin', '--name', 'prove', '--db', db])).stdout.trim()
    const flags = ['--url', url, '--key', key, '--seconds', '1', '--model']
    const score = await prove(...flags, 'crm.Note', '--field', 'extra')
    expect(score).toMatchObject({ code: 0, violations: [], finds: null })
    const unknown = await verso(['prove', ...flags, 'crm.Nothing', '--field', 'extra'])
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toContain('crm.Nothing: 404, unknown-model')
    const unfit = await verso(['prove', ...flags, 'crm.Note', '--field', 'other'])
    expect(unfit).toMatchObject({ code: 1, stdout: '' })
    expect(unfit.stderr).toContain(
      'The service was not tested:\n  - no record could be created: the response was 422, invalid',
    )
  })
})

describe('wrong usage of verso prove', () => {
  test('verso prove reports an unwritable journal before the run', async () => {
    const { code, stderr } = await verso(['prove', '--journal', path.join(scratch, 'nowhere', 'journal')])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The service was not tested:\n {2}- the file of --journal cannot be written: ENOENT.*\n$/,
      ),
    ])
  })

  test.for(['127.0.0.1', 'localhost'])(
    'verso prove --url reports a refused connection to %s',
    async (host) => {
      // A port that was just closed, so nothing listens there.
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      server.close()
      await once(server, 'close')
      const url = `http://${host}:${port}`
      const flags = ['--url', url, '--user', 'ada', '--password', 'x', '--model', MODEL, '--field', 'tokens']
      const { code, stdout, stderr } = await verso(['prove', ...flags])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(
        /^The service was not tested:\n {2}- \S+ cannot be reached: connect ECONNREFUSED \S+\n$/,
      )
      expect(stderr).toContain(url)
    },
  )

  test('verso prove reports all invalid options together and exits with 2', async () => {
    const flags = ['--seconds', '0', '--clients', 'many', '--drop', '2', '--nodes', '0', '--user', 'ada']
    const { code, stdout, stderr } = await verso(['prove', ...flags])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    for (const flag of ['--seconds', '--clients', '--drop', '--nodes'])
      expect(stderr).toContain(`error: ${flag} must be `)
    expect(stderr).toContain('error: --user needs --url')
    const other = await verso(['prove', '--url', 'http://localhost:1', '--kills', '--db', 'sqlite:x.db'])
    expect(other.code).toBe(2)
    for (const fault of [
      '--kills applies only to nodes',
      '--db applies only to nodes',
      '--model is missing',
      '--field is missing',
    ])
      expect(other.stderr).toContain(fault)
  })

  test('verso prove reports a missing and an incomplete adapter', async () => {
    const file = path.join(scratch, 'adapter.mjs')
    const missing = await verso(['prove', '--adapter', file])
    expect(missing.stderr).toContain(
      'the file does not exist; the built-in adapters are verso, last-write-wins',
    )
    writeFileSync(file, 'export const adapter = { create() {}, read() {} }')
    const half = await verso(['prove', '--adapter', file])
    expect(half).toMatchObject({ code: 1 })
    expect(half.stderr).toContain('the adapter lacks these methods: update, remove')
  })
})

/** Running child processes. */
function childrenOf(pid: number | undefined): number[] {
  const all = execFileSync('ps', ['-A', '-o', 'ppid=,pid='], { encoding: 'utf8' }).trim().split('\n')
  const pairs = all.map((line) => line.trim().split(/\s+/).map(Number))
  return pairs.flatMap(([parent, child = 0]) => (parent === pid ? [child] : []))
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  'the nodes of verso prove end with it on %s',
  async (signal) => {
    const folder = path.join(scratch, `ended by ${signal}`)
    mkdirSync(folder)
    const child = spawn(process.execPath, [MAIN, 'prove', '--seconds', '60'], {
      env: { ...process.env, TMPDIR: folder },
    })
    const [said] = (await once(child.stderr, 'data')) as [Buffer]
    expect(said.toString()).toContain('16 clients for 60 s')
    const nodes = childrenOf(child.pid)
    expect(nodes).toHaveLength(1)
    child.kill(signal)
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).toBe({ SIGINT: 130, SIGTERM: 143, SIGKILL: null }[signal])
    await vi.waitUntil(() => !nodes.some(isRunning), { timeout: 60_000 })
    if (signal !== 'SIGKILL') expect(readdirSync(folder)).toEqual([])
  },
)

test('the commands and the adapter of docs/operations/prove.md work when pasted', async () => {
  const { outputs, folder } = await followPage('docs/operations/prove.md', {
    adapt: (step) => ({ ...step, text: step.text.replaceAll('--seconds 5', '--seconds 2') }),
  })
  const printed = outputs.join('')
  expect(printed.match(/^ {2}violations +0$/gm)).toHaveLength(4)
  expect(printed).toContain('\ncaught\n')

  const file = path.join(folder, 'lists.mjs')
  const adapter = readFileSync(file, 'utf8')
  const careless = adapter.replace(/^.*412\)\n/m, '')
  expect(careless).not.toBe(adapter)
  writeFileSync(file, careless)
  const caught = await verso(['prove', '--adapter', file, '--seconds', '2'])
  expect(caught.code).toBe(1)
  expect(caught.stdout).toContain('lost-update')
})
