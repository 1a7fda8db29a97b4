// Runs the browser tests as on a machine without a browser.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))

/** The usual global set-up also compiles and starts a database, which these tests do not need. */
const SETTINGS = {
  root,
  test: {
    include: ['test/browser.test.ts'],
    globalSetup: 'test/browser-report.ts',
    pool: 'forks',
    maxWorkers: 1,
  },
}

function runWithoutBrowser(isRequired: boolean) {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-vitest-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const config = path.join(folder, 'vitest.config.mjs')
  writeFileSync(config, `export default ${JSON.stringify(SETTINGS)}\n`)
  const env = { ...process.env, NO_COLOR: '1', TEST_BROWSER: 'none', REQUIRE_BROWSER: isRequired ? '1' : '' }
  const flags = [vitest, 'run', '--config', config]
  const { status, stdout, stderr } = spawnSync(process.execPath, flags, { cwd: root, env, encoding: 'utf8' })
  return { status, printed: stdout + stderr, lastLines: stdout.trimEnd().split('\n').slice(-3) }
}

test('without a browser the tests pass, and the last lines say that the browser tests did not run', () => {
  const { status, printed, lastLines } = runWithoutBrowser(false)
  expect(status, printed).toBe(0)
  expect(printed).toMatch(/Tests .*3 skipped/)
  expect(lastLines[0]).toBe('Browser tests did not run: no browser starts.')
  expect(lastLines[1]).toContain('apt-get install chromium')
})

test('with REQUIRE_BROWSER=1 a run without a browser fails, although no test fails', () => {
  const { status, printed } = runWithoutBrowser(true)
  expect(printed).toMatch(/Tests .*4 passed/)
  expect(printed).not.toMatch(/failed/)
  expect(status, printed).toBe(1)
})
