// The benchmarks of the performance page: the options of each command are valid, and each kind of benchmark runs with short options.
import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { readOptions } from '../../bench/options.mjs'
import { cleanUpAfterwards, scratch } from '../cli/program.js'
import { listPages, listShellBlocks, ROOT } from './page.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const run = promisify(execFile)

interface Benchmark {
  readonly script: string
  readonly flags: string[]
}

/** The commands of all `sh bench` blocks, without their comments. */
const benchmarks: Benchmark[] = listPages()
  .flatMap(listShellBlocks)
  .filter(({ word }) => word === 'bench')
  .flatMap(({ text }) => text.trim().split('\n'))
  // The set-up of the tests has built the program.
  .filter((line) => !line.startsWith('npm run build'))
  .map((line) => {
    const [, script = '', flags = ''] = /^npm run (bench\S*)(?: -- ([^#]*))?/.exec(line) ?? []
    return { script, flags: flags.trim().split(/\s+/) }
  })

/** Runs the first benchmark whose command contains `part`, with `short` flags, which override its own. Returns its output. */
async function runBenchmark(part: string, short: string): Promise<string> {
  const found = benchmarks.find(({ script, flags }) => [script, ...flags].join(' ').includes(part))
  if (!found) throw new Error(`no page has a benchmark with ${part}`)
  const args = ['run', '-s', found.script, '--', ...found.flags, ...short.split(' ')]
  const { stdout } = await run('npm', args, { cwd: ROOT })
  return stdout
}

const SHORT = '--seconds 0.1 --rounds 1 --starts 1 --rows 200 --connections 2 --only read --peers none'

test('each command of a bench block is a script of this package', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { scripts: object }
  expect(benchmarks.length).toBeGreaterThan(0)
  for (const { script } of benchmarks) expect(Object.keys(scripts)).toContain(script)
})

const options = benchmarks.flatMap(({ script, flags }) => (script === 'bench' ? [flags.join(' ')] : []))

test.for(options)('npm run bench accepts %s', (flags) => {
  expect(Object.keys(readOptions(flags.split(' ')))).not.toEqual([])
})

describe('with short options', () => {
  test('npm run bench compares this build with another checkout, and kinds of clients, and writes the tables and the chart', async () => {
    const folder = mkdtempSync(path.join(scratch, 'report-'))
    const [page, chart] = [path.join(folder, 'performance.md'), path.join(folder, 'performance.svg')]
    copyFileSync(path.join(ROOT, 'docs/operations/performance.md'), page)
    const before = path.join(folder, 'verso-before')
    symlinkSync(ROOT, before)
    const shared = `${SHORT} --servers verso,static --markdown ${page} --svg ${chart}`
    const beside = await runBenchmark('--markdown', `${shared} --client cookie --before ${before}`)
    expect(beside).toContain('200 contacts, 2 connections of a client with a cookie')
    expect(beside).toMatch(/^now ÷ before +engine .*\nread one +sqlite +[\d.]+ /m)
    expect(readFileSync(chart, 'utf8')).toMatch(/^<svg /)
    const clients = await runBenchmark('--markdown', `${shared} --client cookie,proxy`)
    expect(clients).toContain('200 contacts, 2 connections for each kind of client')
    expect(beside + clients).not.toContain('NOT MEASURED')
    const written = readFileSync(page, 'utf8')
    for (const marker of ['bench', 'clients'])
      expect(written).toMatch(new RegExp(`<!-- ${marker}:begin -->\\n\\n.*\\n\\n200 contacts, 2 connections`))
  })

  test('npm run bench:growth measures each size', async () => {
    const printed = await runBenchmark('bench:growth', '--seconds 0.1')
    for (const size of ['1k', '100k'])
      expect(printed).toMatch(new RegExp(`^SQLite +country = … +99 % +${size} `, 'm'))
  })

  test('npm run bench:import measures both engines', async () => {
    const printed = await runBenchmark('bench:import', '--rows 200 --rounds 1')
    expect(printed).toMatch(/^SQLite +[\d,]+ +[\d,]+ .*\nPostgreSQL +[\d,]+ /m)
  })
})
