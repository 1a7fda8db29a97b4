// The servers under test: each with a database of its own in one temporary folder, on a free port of the loopback.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const REFERENCE = path.join(ROOT, 'bench/reference-server.mjs')
const SERVICE = path.join(ROOT, 'dist/cli/main.js')
const START_MS = 120_000
const STOP_MS = 10_000
const TMPFS = 0x01021994

export const SERVERS = {
  verso: {
    title: 'Verso',
    // `demo` is `serve` with sample contacts, a known account and no rate limit, however late it is; it logs every request, as `serve` does.
    command: (folder, rows) => [
      ...[SERVICE, 'demo', '--host', '127.0.0.1', '--port', '0', '--log-level', 'info'],
      ...['--db', `sqlite:${path.join(folder, 'verso.db')}`, '--sample', String(rows)],
    ],
    login: { username: 'admin', password: 'admin' },
  },
  full: {
    title: 'reference, FULL',
    command: (folder, rows) => [REFERENCE, path.join(folder, 'full.db'), 'full', String(rows)],
  },
  normal: {
    title: 'reference, NORMAL',
    command: (folder, rows) => [REFERENCE, path.join(folder, 'normal.db'), 'normal', String(rows)],
  },
}

const children = new Set()
let folder
let isEnding = false

/** On a disk that is memory, a durable commit costs nothing. */
export function isFolderInMemory() {
  return process.platform === 'linux' && statfsSync(tmpdir()).type === TMPFS
}

/** Starts all of them with the same contacts; each has { pid, url, cookie }. */
export async function startServers(rows) {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-bench-'))
  const started = {}
  for (const name of Object.keys(SERVERS)) started[name] = await start(SERVERS[name], rows)
  return started
}

async function start({ title, command, login }, rows) {
  const words = command(folder, rows)
  const child = own(spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'], cwd: folder }))
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS)
  try {
    const url = await addressOf(child)
    return { pid: child.pid, url, cookie: login && (await logIn(url, login)) }
  } catch (cause) {
    throw new Error(`${title} did not start; try: node ${words.join(' ')}`, { cause })
  } finally {
    clearTimeout(late)
  }
}

/** Ends with the benchmark, however that ends. */
export function own(child) {
  if (isEnding) child.kill('SIGKILL')
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

async function addressOf(child) {
  const lines = createInterface(child.stdout)
  for await (const line of lines) {
    const url = /^listening on (\S+)$/.exec(line)?.[1]
    if (url === undefined) continue
    child.stdout.resume()
    return url
  }
  throw new Error('it ended before it listened')
}

export async function logIn(url, credentials) {
  const response = await fetch(`${url}/callback`, { method: 'POST', body: JSON.stringify(credentials) })
  if (!response.ok) throw new Error(`the login was answered with ${response.status}`)
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ')
}

/** Stops what was started and removes what was written; safe to call twice. */
export async function stopAll() {
  isEnding = true
  await Promise.all([...children].map(stop))
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}

async function stop(child) {
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await exit
  clearTimeout(late)
}
