// Before any test: dist is what src says, and one PostgreSQL runs for all of them.
import { spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { buildAdmin } from '../scripts/admin.mjs'
import { startPostgres } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
    /** A folder that all files of tests share. */
    runFolder: string
    /** Selects the engines and transports of this tier: see targets.ts. */
    targets: 'usual' | 'other'
  }
}

const MEMORY = '/dev/shm'
const MIN_BYTES = 2 ** 31
const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = fileURLToPath(new URL('../node_modules/@typescript/native/bin/tsc', import.meta.url))

export async function setup(project: TestProject): Promise<() => void> {
  build()
  // Many tests stop `verso serve`, which drains for five seconds by default.
  process.env['VERSO_DRAIN'] ??= '0s'
  const hasApplication = buildApplication()
  const memory = memoryFolder()
  const server = await startPostgres(memory === undefined ? {} : { besides: memory })
  project.provide('postgresUrl', server.url)
  if (memory !== undefined) process.env['TMPDIR'] = path.join(memory, 'tmp')
  const runFolder = mkdtempSync(path.join(tmpdir(), 'verso-run-'))
  project.provide('runFolder', runFolder)
  return () => {
    rmSync(runFolder, { recursive: true, force: true })
    // The process that ends the server removes the folder in memory, too.
    if (memory !== undefined && server.pid === undefined) rmSync(memory, { recursive: true, force: true })
    server.abandon()
    if (!hasApplication) failRun('admin cannot be built, so the tests used its former build')
  }
}

/** For what the tests write: a disk is waited for at every commit, and only what is killed is lost here, never a machine. */
function memoryFolder(): string | undefined {
  if (process.platform !== 'linux' || process.env['TMPDIR'] !== undefined) return undefined
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize < MIN_BYTES) return undefined
  } catch {
    return undefined
  }
  const folder = mkdtempSync(path.join(MEMORY, 'verso-'))
  chmodSync(folder, 0o755)
  mkdirSync(path.join(folder, 'tmp'), { mode: 0o755 })
  return folder
}

function build(): void {
  // `npm run check` checks the types, which takes most of the time of a build.
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--noCheck'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('src does not compile, so there is nothing to test: see the errors above')
}

/** Returns false if the web application cannot be built. The tests of the service run nevertheless, and the run fails at its end. */
function buildApplication(): boolean {
  try {
    buildAdmin(path.join(root, 'dist'))
    return true
  } catch {
    // The bundler has printed the reason.
    return false
  }
}

/** Vitest only prints what a teardown throws. */
function failRun(reason: string): void {
  process.stderr.write(`\n${reason}: see the errors at the beginning\n`)
  process.exitCode = 1
}
