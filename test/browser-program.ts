// Finds a Chromium that starts: TEST_BROWSER, else the one from npm (Linux x64 only), else an installed browser.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chromium, type Browser, type LaunchOptions } from 'playwright-core'

/** A place to look for a browser. `locate` returns undefined where there is none. */
interface Candidate {
  readonly name: string
  readonly locate: () => Promise<LaunchOptions | undefined>
}

export interface BrowserSearch {
  readonly browser?: Browser
  /** A line for each browser that did not start, with its reason. */
  readonly failures: readonly string[]
}

const REASON_CHARS = 300
const START_TIMEOUT_MS = 60_000
const INSTALLED = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/snap/bin/chromium']
const CHANNELS = ['chrome', 'msedge']
// A container often has a /dev/shm of 64 MB, which is too small for Chromium.
const FLAGS = ['--disable-dev-shm-usage', '--disable-gpu']
const run = promisify(execFile)
const caches = fileURLToPath(new URL('../node_modules/.cache', import.meta.url))

/** Launches the first browser that starts. `TEST_BROWSER` names the only one to try; `none` means no browser at all. */
export async function launchBrowser(chosen = process.env['TEST_BROWSER']): Promise<BrowserSearch> {
  const failures: string[] = []
  for (const { name, locate } of listCandidates(chosen)) {
    try {
      const options = await locate()
      if (options) return { browser: await launch(options), failures }
    } catch (error) {
      failures.push(`${name}: ${String(error).slice(0, REASON_CHARS)}`)
    }
  }
  return { failures }
}

function listCandidates(chosen: string | undefined): readonly Candidate[] {
  if (chosen === 'none') return []
  if (chosen !== undefined && chosen !== '')
    return [{ name: `TEST_BROWSER=${chosen}`, locate: async () => ({ executablePath: chosen }) }]
  return [
    { name: '@sparticuz/chromium', locate: locateNpmChromium },
    ...INSTALLED.map((executablePath) => ({
      name: executablePath,
      locate: async () => (existsSync(executablePath) ? { executablePath } : undefined),
    })),
    ...CHANNELS.map((channel) => ({ name: channel, locate: async () => ({ channel }) })),
  ]
}

/** Chromium's sandbox does not work for root, nor in a container without user namespaces. */
async function launch(options: LaunchOptions): Promise<Browser> {
  // Vitest ends its workers by a signal. Chromium ends by itself when its pipe to the worker closes.
  const signals = { handleSIGTERM: false, handleSIGINT: false, handleSIGHUP: false }
  const common = { timeout: START_TIMEOUT_MS, ...signals, ...options, headless: true, args: FLAGS }
  const isRoot = process.platform === 'linux' && process.getuid?.() === 0
  if (isRoot) return chromium.launch({ ...common, chromiumSandbox: false })
  try {
    return await chromium.launch({ ...common, chromiumSandbox: true })
  } catch (error) {
    if (process.platform !== 'linux') throw error
    return chromium.launch({ ...common, chromiumSandbox: false })
  }
}

async function locateNpmChromium(): Promise<LaunchOptions | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  const home = await unpackNpmChromium()
  const { FONTCONFIG_PATH, LD_LIBRARY_PATH, ...others } = process.env
  const env = {
    ...others,
    LD_LIBRARY_PATH: [LD_LIBRARY_PATH, path.join(home, 'al2023', 'lib')].filter(Boolean).join(':'),
    FONTCONFIG_PATH: existsSync('/etc/fonts/fonts.conf') ? FONTCONFIG_PATH : path.join(home, 'fonts'),
  }
  return { executablePath: path.join(home, 'chromium'), env }
}

/**
 * Unpacks once, and renames the complete folder, because other workers may unpack at the same time. The package unpacks into the folder for
 * temporary files, and its libraries only if it believes that it runs in AWS Lambda. A process of its own gets that environment.
 */
async function unpackNpmChromium(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = createRequire(entry)('../../package.json') as { version: string }
  const home = path.join(caches, `chromium-${version}`)
  if (existsSync(home)) return home
  mkdirSync(caches, { recursive: true })
  const scratch = mkdtempSync(path.join(caches, 'chromium-'))
  try {
    const program = `import chromium from '@sparticuz/chromium'; await chromium.executablePath()`
    await run(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: path.dirname(fileURLToPath(import.meta.url)),
      env: { ...process.env, TMPDIR: scratch, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs22.x' },
    })
    renameSync(scratch, home)
  } catch (error) {
    rmSync(scratch, { recursive: true, force: true })
    // Another worker was faster.
    if (!existsSync(home)) throw error
  }
  return home
}
