// One process of the service, as `verso serve` starts it, on a port that it keeps when it is started again.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const MAIN_PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
export const MODELS_FOLDER = fileURLToPath(new URL('models', import.meta.url))
const gcOnRequest = new URL('gc-on-request.mjs', import.meta.url).href
export const ADMIN_PASSWORD = 'kept-promises-only'
const START_TIMEOUT_MS = 120_000
const LOG_TAIL_CHARACTERS = 20_000

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: unknown
}

/** Where requests are sent: a service, or a proxy in front of it. */
export class HttpTarget {
  readonly agent = new Agent({ keepAlive: true, maxSockets: 200 })
  cookie = ''

  constructor(readonly url: string) {}

  /** Rejects if the connection is lost before the whole response has arrived. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const own = { cookie: this.cookie, ...(text === '' ? {} : { 'content-type': 'application/json' }) }
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.url}${path}`,
        {
          method,
          agent: this.agent,
          headers: { ...own, 'content-length': Buffer.byteLength(text), ...headers },
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('close', () => reject(new Error('the response is incomplete')))
          response.on('end', () => {
            const answer = Buffer.concat(chunks).toString()
            const { statusCode: status = 0, headers: received } = response
            resolve({ status, headers: received, body: parse(answer) })
          })
        },
      )
      sent.on('error', reject)
      sent.end(text)
    })
  }

  async login(username = 'admin', password = ADMIN_PASSWORD): Promise<void> {
    const answer = await this.send('POST', '/callback', { username, password })
    if (answer.status !== 200) throw new Error(`the login was answered with ${answer.status}`)
    this.cookie = [answer.headers['set-cookie'] ?? []]
      .flat()
      .map((each) => each.split(';')[0])
      .join('; ')
  }

  close(): void {
    this.agent.destroy()
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export interface ProcessOptions {
  readonly db: string
  readonly flags?: readonly string[]
  /** Another build of the service. */
  readonly program?: string
  /** Answers `measure`. */
  readonly measuresMemory?: boolean
}

export interface MemorySample {
  readonly heapUsed: number
  readonly rss: number
  readonly external: number
  readonly descriptors: number
  readonly delayP999Ms: number
}

export class ServiceProcess {
  #child: ChildProcess | undefined
  #log = ''

  private constructor(
    readonly port: number,
    private readonly options: ProcessOptions,
    readonly target: HttpTarget,
  ) {}

  static async start(options: ProcessOptions): Promise<ServiceProcess> {
    const port = await findFreePort()
    const service = new ServiceProcess(port, options, new HttpTarget(`http://127.0.0.1:${port}`))
    await service.start()
    await service.target.login()
    return service
  }

  /** The end of the error output. */
  get log(): string {
    return this.#log
  }

  /** Starts the process. Resolves when it listens. */
  async start(): Promise<void> {
    const { db, flags = [], program = MAIN_PROGRAM, measuresMemory = false } = this.options
    const node = measuresMemory ? ['--expose-gc', '--import', gcOnRequest] : []
    const own = ['serve', '--models', MODELS_FOLDER, '--port', String(this.port), '--db', db]
    const child = spawn(process.execPath, [...node, program, ...own, '--log-level', 'warn', ...flags], {
      env: { ...process.env, VERSO_ADMIN_PASSWORD: ADMIN_PASSWORD },
      stdio: ['ignore', 'pipe', 'pipe', ...(measuresMemory ? (['ipc'] as const) : [])],
    })
    this.#child = child
    killAtExit(child)
    let output = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#log = (this.#log + String(chunk)).slice(-LOG_TAIL_CHARACTERS)
    })
    const listening = new Promise<void>((resolve, reject) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        output += String(chunk)
        if (output.includes('listening on ')) resolve()
      })
      child.once('exit', (code) => reject(new Error(`the service ended with ${String(code)}: ${this.#log}`)))
    })
    const timer = new AbortController()
    const timeout = sleep(START_TIMEOUT_MS, undefined, { signal: timer.signal }).then(() => {
      throw new Error('the service did not start in time')
    })
    await Promise.race([listening, timeout]).finally(() => timer.abort())
    timeout.catch(() => undefined)
  }

  /** Sends a signal. Resolves with the exit code, which is null after SIGKILL. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
    const exited = once(child, 'exit') as Promise<[number | null]>
    child.kill(signal)
    return (await exited)[0]
  }

  /** Stops all its work at once, without ending it, or lets it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(name)
  }

  async measure(): Promise<MemorySample> {
    const child = this.#child
    if (!child) throw new Error('the service does not run')
    const answer = once(child, 'message') as Promise<[MemorySample]>
    child.send('measure')
    return (await answer)[0]
  }

  async close(): Promise<void> {
    this.target.close()
    await this.end('SIGKILL')
  }
}

/** A lane that fails or is interrupted leaves no service behind. */
function killAtExit(child: ChildProcess): void {
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
