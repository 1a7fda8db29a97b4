// A real PostgreSQL for the tests, from npm: also as root, in a private folder, with install scripts off and beside a local server.
import { execFile, execFileSync, fork, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { othersMayReach, prepareBinaries, type Owner } from './postgres-binaries.js'

export interface PostgresOptions {
  /** Keeps what was committed through a crash. Off by default, for speed. */
  durable?: boolean
  extraArgs?: string[]
  /** Uses an installed PostgreSQL with its client programs, not the one from npm. */
  installed?: boolean
  /** A folder that goes when the tests are killed, as the server does. */
  besides?: string
}

export interface Postgres {
  url: string
  version: string
  /** The postmaster's; undefined after stop() and crash(), and for a server given by TEST_DATABASE_URL. */
  readonly pid: number | undefined
  stop(): Promise<void>
  /** Lets a process that outlives the tests stop the server and remove its files, which takes minutes after many tests. */
  abandon(): void
  /** Kills the postmaster with SIGKILL and waits for its backends, which may first finish the statement they are in. */
  crash(): Promise<void>
  /** Starts again on the same port and data; a running server is stopped first. */
  restart(): Promise<void>
}

const run = promisify(execFile)
const keeper = fileURLToPath(new URL('postgres-keeper.mjs', import.meta.url))
// The server's words must be English: we wait for some of them.
const env = { ...process.env, LC_ALL: 'C' }
const LOG_TAIL_CHARS = 10_000

/** Fails, never skips. A server with options is always our own: a given one cannot promise them. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const given = process.env['TEST_DATABASE_URL']
  if (given && !options.durable && !options.extraArgs && !options.installed) return useGiven(given)

  const owner = unprivilegedOwner()
  const scratch = mkdtempSync(path.join(reachableTemp(owner), 'verso-postgres-'))
  try {
    return await startOwn(scratch, owner, options)
  } catch (error) {
    discard(scratch)
    throw error
  }
}

/** Makes a database on the server of `url`, empty or as a copy of one that nobody uses, and returns its url. */
export async function createDatabase(url: string, original?: string): Promise<string> {
  const name = `verso_${randomBytes(8).toString('hex')}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const from = original === undefined ? '' : ` template ${client.escapeIdentifier(nameIn(original))}`
    // By its files: where nothing is synced, that is much less than block by block through the log.
    await client.query(`create database ${client.escapeIdentifier(name)}${from} strategy file_copy`)
  } finally {
    await client.end()
  }
  const created = new URL(url)
  created.pathname = `/${encodeURIComponent(name)}`
  return created.href
}

function nameIn(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}

async function startOwn(scratch: string, owner: Owner, options: PostgresOptions): Promise<Postgres> {
  const data = path.join(scratch, 'data')
  mkdirSync(data)
  if (owner) {
    chmodSync(scratch, 0o755)
    chownSync(data, owner.uid, owner.gid)
  }
  const { initdb, postgres } = prepareBinaries(scratch, owner, options.installed)
  const spawnOptions = { ...owner, cwd: data }
  const { stdout: version } = await run(postgres, ['--version'], { ...spawnOptions, env })
  await run(initdb, ['-D', data, ...initArgs], { ...spawnOptions, env })

  const port = await freePort()
  const spec = {
    command: postgres,
    args: serverArgs(data, port, options),
    options: spawnOptions,
    folders: [scratch, ...(options.besides ? [options.besides] : [])],
  }
  let server: Running | undefined = await launch(spec)

  const end = async (signal: NodeJS.Signals) => {
    const ending = server
    server = undefined
    if (!ending) return
    ending.signal(signal)
    await ending.gone
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    version: version.trim(),
    get pid() {
      return server?.pid
    },
    async stop() {
      await end('SIGINT')
      discard(scratch)
    },
    abandon() {
      server?.abandon()
    },
    async crash() {
      await end('SIGKILL')
    },
    async restart() {
      await end('SIGINT')
      // Safe because every backend is known to be gone; left in place it would stop us if its pid has a new owner.
      rmSync(path.join(data, 'postmaster.pid'), { force: true })
      server = await launch(spec)
    },
  }
}

async function useGiven(url: string): Promise<Postgres> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ version: string }>('select version()')
  await client.end()
  const reject = () => Promise.reject(new Error('the server of TEST_DATABASE_URL is not ours to crash'))
  return {
    url,
    version: rows[0]?.version ?? 'unknown',
    pid: undefined,
    stop: () => Promise.resolve(),
    abandon: () => undefined,
    crash: reject,
    restart: reject,
  }
}

function discard(scratch: string): void {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
}

const initArgs = '-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions'.split(' ')

function serverArgs(
  data: string,
  port: number,
  { durable = false, extraArgs = [] }: PostgresOptions,
): string[] {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const pairs = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', data, '-p', String(port), ...pairs, ...extraArgs]
}

interface Running {
  pid: number
  signal(name: NodeJS.Signals): void
  abandon(): void
  gone: Promise<void>
}

async function launch(spec: object): Promise<Running> {
  // In a process group of its own the keeper survives whatever ends the tests, Ctrl-C or a kill of the whole group.
  const child = fork(keeper, [JSON.stringify(spec)], {
    detached: process.platform !== 'win32',
    execArgv: [],
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  // A killed test runner leaves its workers running: they lose their channel to it, so the keeper loses the one to them.
  const abandon = () => {
    child.stderr?.destroy()
    child.disconnect()
    child.unref()
  }
  process.once('disconnect', abandon)
  child.once('disconnect', () => process.off('disconnect', abandon))
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const signal = (name: NodeJS.Signals) => {
    if (child.connected) child.send(name)
  }
  return { pid: await untilReady(child), signal, abandon, gone }
}

function untilReady(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let log = ''
    let pid: number | undefined
    const look = () => {
      if (pid !== undefined && log.includes('ready to accept connections')) resolve(pid)
    }
    child.once('message', (message: { pid: number }) => {
      pid = message.pid
      look()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-LOG_TAIL_CHARS)
      look()
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log}`)))
  })
}

/** PostgreSQL refuses to run as root, so root's server belongs to nobody. */
export function unprivilegedOwner(): Owner {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** The folder for temporary files, or another one if the owner cannot enter it. */
export function reachableTemp(owner: Owner): string {
  const folders = [tmpdir(), '/tmp', '/var/tmp']
  const folder = owner ? folders.find((each) => existsSync(each) && othersMayReach(each)) : tmpdir()
  if (!folder) throw new Error(`No temporary folder that other users may enter: ${folders.join(', ')}`)
  return folder
}

/** Below the ports that systems lend to outgoing connections: there, one could take the port of a crashed server. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const isFree = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}
