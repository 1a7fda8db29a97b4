// Nodes of our own: processes that serve one database, on this computer only, and may be killed.
import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../errors.js'
import { packageFile } from '../package-files.js'
import type { Place } from './connection.js'

const SCRIPT = fileURLToPath(new URL('../node-process.js', import.meta.url))
const COMPLAINT_CHARS = 2_000
const STOP_MS = 5_000

/** What many quick clients from one address need; lateness is what the test causes. */
const SETTINGS = {
  host: '127.0.0.1',
  port: '0',
  'rate-limit': '0',
  'max-late': '0s',
  'log-level': 'fatal',
}

export class Nodes {
  readonly username = 'admin'
  readonly password = randomBytes(16).toString('base64url')
  kills = 0
  readonly #nodes: Node[] = []

  constructor(private readonly db: string) {
    // Whatever ends this process: nothing is left behind.
    process.on('exit', this.#endAtOnce)
  }

  get places(): readonly Place[] {
    return this.#nodes
  }

  /** The first one makes the tables. */
  async start(count: number): Promise<void> {
    await this.#add()
    await Promise.all(Array.from({ length: count - 1 }, () => this.#add()))
  }

  /** Kill -9, and start it again. */
  async kill(index: number): Promise<void> {
    const node = this.#nodes[index]
    if (!node) return
    this.kills++
    await node.end('SIGKILL')
    await node.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.end('SIGTERM')))
    process.off('exit', this.#endAtOnce)
  }

  readonly #endAtOnce = () => {
    for (const node of this.#nodes) node.endAtOnce()
  }

  async #add(): Promise<void> {
    const node = new Node(this.db, this.password)
    this.#nodes.push(node)
    await node.start()
  }
}

class Node {
  url = ''
  #child: ChildProcess | undefined
  #gone = Promise.resolve()
  #isOver = false

  constructor(
    private readonly db: string,
    private readonly password: string,
  ) {}

  async start(): Promise<void> {
    const flags = Object.entries(SETTINGS).flatMap(([name, value]) => [`--${name}`, value])
    const models = packageFile('examples/prove')
    // The database comes by the environment: everybody on the machine can read a command line.
    const own = { VERSO_ADMIN_PASSWORD: this.password, VERSO_DB: this.db }
    const child = fork(SCRIPT, ['serve', '--models', models, ...flags], {
      ...{ execArgv: [], env: { ...foreignVariables(), ...own } },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child = child
    this.#gone = new Promise((resolve) => child.once('exit', () => resolve()))
    if (this.#isOver) this.endAtOnce()
    this.url = await listening(child)
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_MS)
    this.#isOver = signal === 'SIGTERM'
    this.#child?.kill(signal)
    await this.#gone
    clearTimeout(timer)
  }

  endAtOnce(): void {
    this.#isOver = true
    this.#child?.kill('SIGKILL')
  }
}

async function listening(child: ChildProcess): Promise<string> {
  let [output, complaints] = ['', '']
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk.toString()).slice(-COMPLAINT_CHARS)
  })
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-COMPLAINT_CHARS)
      const url = /listening on (\S+)\n/.exec(output)?.[1]
      if (url !== undefined) resolve(url)
    })
    child.once('error', reject)
    child.once('exit', () => {
      reject(new ConfigError('A node did not start', [complaints.trim() || 'it said nothing']))
    })
  })
}

/** Without settings that are meant for another service. */
function foreignVariables(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('VERSO_') && name !== 'HOST' && name !== 'PORT',
    ),
  )
}
