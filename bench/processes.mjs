// Child processes and the temporary folder of a benchmark. Both are removed at its end, however it ends.
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { createJiti } from 'jiti'

const STOP_MS = 10_000
const TAIL_CHARS = 2_000
const TMPFS = 0x01021994

const children = new Set()
let scratch
let postgres
let isEnding = false

/** A durable commit costs nothing on a file system in memory. */
export function isFolderInMemory() {
  return process.platform === 'linux' && statfsSync(tmpdir()).type === TMPFS
}

export function getFolder() {
  scratch ??= mkdtempSync(path.join(tmpdir(), 'verso-bench-'))
  return scratch
}

/**
 * Starts one PostgreSQL server for all benchmarks, with fsync on: { url, pid, version, database() → url of a new
 * database }.
 */
export async function startPostgresServer() {
  const { startPostgres, createDatabase } = await createJiti(import.meta.url).import('../test/postgres.ts')
  postgres ??= startPostgres({ durable: true })
  const { url, pid, version } = await postgres
  return { url, pid, version, database: () => createDatabase(url) }
}

/** Registers a child, to be stopped at the end of the benchmark. */
export function registerChild(child) {
  if (isEnding) child.kill('SIGKILL')
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs a program and returns its output. */
export async function runProgram(command, words, { input, timeoutMs, ...options } = {}) {
  const child = registerChild(
    spawn(command, words, { cwd: getFolder(), ...options, stdio: ['pipe', 'pipe', 'pipe'] }),
  )
  const timer = timeoutMs && setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  let [printed, complaints] = ['', '']
  child.stdout.on('data', (chunk) => (printed += chunk))
  child.stderr.on('data', (chunk) => (complaints = (complaints + chunk).slice(-TAIL_CHARS)))
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  if (code === 0) return printed
  const how =
    signal === 'SIGKILL' && timeoutMs
      ? `took longer than ${timeoutMs / 1_000} s`
      : `ended with ${code ?? signal}`
  throw new Error(
    `${[path.basename(command), ...words].join(' ')} ${how}: ${complaints.trim() || printed.slice(-TAIL_CHARS)}`,
  )
}

/** Starts a server and waits until a line of its output matches `pattern`: { child, found }. Its stderr is ignored. */
export async function startListening(command, words, pattern, { timeoutMs = 120_000, ...options } = {}) {
  const child = registerChild(
    spawn(command, words, { cwd: getFolder(), ...options, stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
  try {
    for await (const line of createInterface(child.stdout)) {
      const found = pattern.exec(line)
      if (!found) continue
      child.stdout.resume()
      return { child, found }
    }
    throw new Error(`${[path.basename(command), ...words].join(' ')} ended before it listened`)
  } finally {
    clearTimeout(timer)
  }
}

/** Starts the load generator: run(message) → its result. */
export function startLoadGenerator() {
  const load = registerChild(fork(new URL('./load.mjs', import.meta.url)))
  const ended = once(load, 'exit').then(() => [{ error: 'the load generator has ended' }])
  return {
    async run(message) {
      load.send(message)
      const [{ result, error }] = await Promise.race([once(load, 'message'), ended])
      if (error) throw new Error(error)
      return result
    },
    pid: load.pid,
    end: () => stopChild(load),
  }
}

export async function stopChild(child) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await exit
  clearTimeout(timer)
}

/** Stops all servers of a section. PostgreSQL stays for the next one. */
export async function stopServers() {
  await Promise.all([...children].map(stopChild))
}

/** Stops all children and removes the folder; safe to call twice. */
export async function stopAll() {
  isEnding = true
  await Promise.all([...children].map(stopChild))
  await (await postgres?.catch(() => undefined))?.stop()
  if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
}

/** Runs a benchmark and cleans up after it in any case. */
export async function runBenchmark(main) {
  for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
    process.on(signal, async () => {
      if (isEnding) return
      await stopAll()
      process.exit(128 + number)
    })
  }
  try {
    await main()
  } catch (error) {
    // While stopping, the end of a child is expected.
    if (!isEnding) console.error(error.cause ? error : error.message)
    process.exitCode = 1
  } finally {
    if (!isEnding) await stopAll()
  }
}
