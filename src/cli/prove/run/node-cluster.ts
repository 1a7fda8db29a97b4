// Starts nodes of the service as processes on this computer, which prove may kill.
import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../../../errors.js'
import { resolvePackageFile } from '../../package-files.js'
import type { NodeAddress } from './connection.js'

const NODE_SCRIPT = fileURLToPath(new URL('../../node-process.js', import.meta.url))
const MAX_OUTPUT_CHARS = 2_000
const STOP_TIMEOUT_MS = 5_000

/** Many fast clients share one address, and the test itself delays the event loop, so both limits are off. */
const NODE_FLAGS = {
  host: '127.0.0.1',
  port: '0',
  'rate-limit': '0',
  'max-event-loop-delay': '0s',
  'log-level': 'fatal',
}

export class NodeCluster {
  readonly username = 'admin'
  readonly password = randomBytes(16).toString('base64url')
  kills = 0
  readonly #nodes: NodeProcess[] = []

  constructor(private readonly db: string) {
    // Leaves no process behind, however this process exits.
    process.on('exit', this.#killAll)
  }

  get addresses(): readonly NodeAddress[] {
    return this.#nodes
  }

  /** The first node creates the tables, so it starts alone. */
  async start(count: number): Promise<void> {
    await this.#add()
    await Promise.all(Array.from({ length: count - 1 }, () => this.#add()))
  }

  /** Kills the node with SIGKILL and starts it again. */
  async kill(index: number): Promise<void> {
    const node = this.#nodes[index]
    if (!node) return
    this.kills++
    await node.end('SIGKILL')
    await node.start()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.end('SIGTERM')))
    process.off('exit', this.#killAll)
  }

  readonly #killAll = () => {
    for (const node of this.#nodes) node.killNow()
  }

  async #add(): Promise<void> {
    const node = new NodeProcess(this.db, this.password)
    this.#nodes.push(node)
    await node.start()
  }
}

class NodeProcess {
  url = ''
  #child: ChildProcess | undefined
  #exited = Promise.resolve()
  #isStopped = false

  constructor(
    private readonly db: string,
    private readonly password: string,
  ) {}

  async start(): Promise<void> {
    const flags = Object.entries(NODE_FLAGS).flatMap(([name, value]) => [`--${name}`, value])
    const models = resolvePackageFile('examples/prove')
    // The database URL goes into the environment, because every user of the machine can read a command line.
    const own = { VERSO_ADMIN_PASSWORD: this.password, VERSO_DB: this.db }
    const child = fork(NODE_SCRIPT, ['serve', '--models', models, ...flags], {
      execArgv: [],
      env: { ...copyForeignEnvironment(), ...own },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child = child
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()))
    if (this.#isStopped) this.killNow()
    this.url = await waitForListening(child)
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const timer = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_TIMEOUT_MS)
    this.#isStopped = signal === 'SIGTERM'
    this.#child?.kill(signal)
    await this.#exited
    clearTimeout(timer)
  }

  killNow(): void {
    this.#isStopped = true
    this.#child?.kill('SIGKILL')
  }
}

async function waitForListening(child: ChildProcess): Promise<string> {
  let [output, errorOutput] = ['', '']
  child.stderr?.on('data', (chunk: Buffer) => {
    errorOutput = (errorOutput + chunk.toString()).slice(-MAX_OUTPUT_CHARS)
  })
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARS)
      const url = /listening on (\S+)\n/.exec(output)?.[1]
      if (url !== undefined) resolve(url)
    })
    child.once('error', reject)
    child.once('exit', () => {
      reject(new ConfigError('A node did not start', [errorOutput.trim() || 'it printed no error']))
    })
  })
}

/** Copies the environment without settings that are meant for another service. */
function copyForeignEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('VERSO_') && name !== 'HOST' && name !== 'PORT',
    ),
  )
}
