// Load on a service that is about to stop: on kept and on new connections, with a session and with a key, reads and creates.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request, type OutgoingHttpHeaders } from 'node:http'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '../http-client.js'

const MODEL = 'com.axelor.contact.db.Company'
const LOAD_BEFORE_STOP_MS = 150
/** Workers of each kind. */
const WORKERS = 3
/** Kept connections that send one more request, each at another time around the end of the drain. */
const POOLED = 24
/** More than the drain, so that some requests are sent too late. */
const POOLED_SPREAD = 1.2
const PAUSE_MS = 2

export interface SentRequest {
  readonly isWrite: boolean
  /** The code of the created record. */
  readonly code: string | undefined
  /** When the last byte was passed to the system; undefined if there was no connection. */
  readonly sentAtMs: number | undefined
  /** The status, or the code of the error of the connection. */
  readonly outcome: number | string
}

export interface StoppedService {
  readonly requests: readonly SentRequest[]
  /** When the listener was closed. */
  readonly closedAtMs: number
  readonly exitCode: number | null
  /** From the signal to the exit. */
  readonly ms: number
}

export interface StartedDemo {
  readonly child: ChildProcess
  readonly url: string
  /** Resolves with the time right before the listener was closed, from the log. */
  readonly listenerClosed: Promise<number>
  readonly exited: Promise<number | null>
}

/** Starts `verso demo` of a dist folder, with a drain. */
export async function startDraining(dist: string, db: string, drainMs: number): Promise<StartedDemo> {
  const flags = ['--port', '0', '--drain', `${drainMs}ms`, '--log-level', 'info', '--log-format', 'json']
  const child = spawn(process.execPath, [path.join(dist, 'cli/main.js'), 'demo', '--db', db, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const listenerClosed = new Promise<number>((resolve) => {
    createInterface(child.stderr).on('line', (line) => {
      if (!line.includes('"stopped listening"')) return
      resolve((JSON.parse(line) as { closedAtMs: number }).closedAtMs)
    })
  })
  for await (const line of createInterface(child.stdout)) {
    const port = /^listening on http:\/\/localhost:(\d+)/.exec(line)?.[1]
    if (port !== undefined) return { child, listenerClosed, exited, url: `http://127.0.0.1:${port}` }
  }
  throw new Error('the demo did not start')
}

/** Sends one request. Resolves also if the connection fails. */
function sendOne(
  url: string,
  agent: Agent | false,
  headers: OutgoingHttpHeaders,
  code?: string,
): Promise<SentRequest> {
  return new Promise((resolve) => {
    let sentAtMs: number | undefined
    const isWrite = code !== undefined
    const settle = (outcome: number | string) => {
      resolve({ isWrite, code, sentAtMs, outcome })
    }
    const body = isWrite ? JSON.stringify({ data: { code, name: code } }) : ''
    const call = request(
      `${url}/ws/rest/${MODEL}${isWrite ? '' : '?limit=5'}`,
      {
        agent,
        method: isWrite ? 'PUT' : 'GET',
        headers: { ...headers, ...(isWrite ? { 'content-type': 'application/json' } : {}) },
      },
      (response) => {
        response.on('error', (error: NodeJS.ErrnoException) => {
          settle(error.code ?? error.message)
        })
        response.resume().once('end', () => {
          settle(response.statusCode ?? 0)
        })
      },
    )
    call.once('finish', () => {
      sentAtMs = Date.now()
    })
    call.once('error', (error: NodeJS.ErrnoException) => {
      settle(error.code ?? error.message)
    })
    call.end(body)
  })
}

let codes = 0

/** Loads a demo, stops it by SIGTERM, and goes on until no connection is accepted. */
export async function stopUnderLoad(demo: StartedDemo, drainMs: number): Promise<StoppedService> {
  const { url, child } = demo
  const { cookie } = await HttpClient.login(url, 'admin', 'admin')
  const key = await createKey(url, cookie)
  const requests: SentRequest[] = []
  const run = async (agent: Agent | false, headers: OutgoingHttpHeaders, isWriting: boolean) => {
    for (let last: number | string = 200; last !== 'ECONNREFUSED';) {
      const sent = await sendOne(url, agent, headers, isWriting ? `S${++codes}` : undefined)
      requests.push(sent)
      last = sent.outcome
      await sleep(PAUSE_MS)
    }
  }
  const kept = new Agent({ keepAlive: true })
  const working = [{ cookie }, { 'api-key': key }].flatMap((headers) =>
    [kept, false as const].flatMap((agent) =>
      [true, false].flatMap((isWriting) =>
        Array.from({ length: WORKERS }, () => run(agent, headers, isWriting)),
      ),
    ),
  )
  const pools = Array.from({ length: POOLED }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  await Promise.all(pools.map((agent) => sendOne(url, agent, { cookie })))
  await sleep(LOAD_BEFORE_STOP_MS)
  const startMs = performance.now()
  child.kill('SIGTERM')
  const pooled = pools.map(async (agent, index) => {
    await sleep(((index + 1) / POOLED) * POOLED_SPREAD * drainMs)
    requests.push(await sendOne(url, agent, { cookie }))
  })
  const exitCode = await demo.exited
  const ms = performance.now() - startMs
  await Promise.all([...working, ...pooled])
  for (const agent of [kept, ...pools]) agent.destroy()
  return { requests, closedAtMs: await demo.listenerClosed, exitCode, ms }
}

async function createKey(url: string, cookie: string): Promise<string> {
  const response = await fetch(`${url}/ws/me/keys`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ data: { name: `load ${++codes} ${Date.now()}` } }),
  })
  const { data } = (await response.json()) as { data: readonly [{ readonly key: string }] }
  return data[0].key
}

/** The requests that were sent before the listener closed and got no answer, or an error of the service. */
export function findViolations({ requests, closedAtMs }: StoppedService): SentRequest[] {
  return requests.filter(({ sentAtMs, outcome }) =>
    typeof outcome === 'number' ? outcome !== 200 : sentAtMs !== undefined && sentAtMs < closedAtMs,
  )
}

/** The codes of the records whose create was acknowledged. */
export function listAcknowledged(requests: readonly SentRequest[]): string[] {
  return requests.flatMap(({ code, outcome }) => (code !== undefined && outcome === 200 ? [code] : []))
}
