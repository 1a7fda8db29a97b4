// Runs the built program as a user does: in its own process, in a folder that is deleted afterwards.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach } from 'vitest'
import { watchLog, type Failure } from '../server-failures.js'

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
export const PASSWORD = 'correct horse battery'
export const scratch = mkdtempSync(path.join(tmpdir(), 'verso-cli-'))
const environment = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      // Messages name the program by the variables of npm.
      ([name]) => !/^(VERSO_|npm_lifecycle_)/.test(name) && !['PORT', 'HOST'].includes(name),
    ),
  ),
  // A busy test machine exceeds any limit on the event-loop delay.
  VERSO_MAX_EVENT_LOOP_DELAY: '0s',
}

let running: ChildProcess[] = []

/** For each test file that runs the program: kills leftover processes after each test and deletes the folder after the last one. */
export function cleanUpAfterwards(): void {
  mkdirSync(scratch, { recursive: true })
  afterEach(() => {
    for (const child of running) child.kill('SIGKILL')
    running = []
  })
  afterAll(() => {
    rmSync(scratch, { recursive: true })
  })
}

let databases = 0
export const newDatabase = () => `sqlite:${path.join(scratch, `${++databases}.db`)}`

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export async function verso(
  args: readonly string[],
  input = '',
  variables: Record<string, string> = {},
  main = MAIN,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd: scratch, env: { ...environment, ...variables } }
    const child = execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr })
    })
    child.stdin?.end(input)
  })
}

/** Starts a server and waits until it listens; returns its output and exit code. */
export async function start(
  args: readonly string[],
  variables: Record<string, string> = {},
  expects: readonly Failure[] = [],
  main = MAIN,
) {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: scratch,
    env: { ...environment, ...variables },
  })
  running.push(child)
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>
  let [stdout, stderr] = ['', '']
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  child.stderr.on('data', watchLog(expects))
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
      if (/^listening on /m.test(stdout)) resolve()
    })
    void ended.then(() => {
      reject(new Error(`it ended: ${stderr}`))
    })
  })
  const url = /^listening on (\S+)$/m.exec(stdout)?.[1] ?? ''
  return { child, url, stdout, output: () => stdout, log: () => stderr, ended: async () => (await ended)[0] }
}
