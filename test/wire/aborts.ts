// Clients that disconnect before the response, on every route of a server.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../../src/http/server.js'
import type { Settings } from '../../src/service/context/settings.js'
import type { Gauges } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HeldDatabase } from '../held-database.js'
import { preparedLocation, startService, type Engine, type Service } from '../targets.js'
import { asUser, openSession, addressOf, rawRequest, send } from './exchange.js'
import { routesOf } from './routes.js'

const FORM = [
  ...['--b', 'Content-Disposition: form-data; name="file"; filename="a.txt"', '', 'content'],
  ...['--b', 'Content-Disposition: form-data; name="field"', '', 'scan', '--b--', ''],
].join('\r\n')
/** Requests that differ from others in more than path and method. */
const MORE: readonly (readonly [line: string, headers: Readonly<Record<string, string>>])[] = [
  ['GET /ws/changes', { accept: 'text/event-stream' }],
  ['GET /ws/changes?wait=30', {}],
  ['GET /ws/rest/crm.Contact/999999', {}],
  ['GET /ws/rest/crm.Contact?offset=0&limit=10', {}],
  ['GET /nothing', {}],
]

export type RequestText = (cookie: string) => string

/** The subset for `npm test`. */
export const SAMPLE: readonly RequestText[] = [...MORE, ['PUT /ws/rest/crm.Contact', {}] as const].map(textOf)

/** One request for each method of each path. */
export async function requestsOf({ server, url }: Service, cookie: string): Promise<readonly RequestText[]> {
  const requests: RequestText[] = [...SAMPLE]
  for (const route of routesOf(server.fastify).keys()) {
    const path = filled(route)
    const { headers } = await send(url, { method: 'OPTIONS', path, headers: { cookie } })
    for (const method of headers.allow?.split(', ') ?? []) requests.push(textOf([`${method} ${path}`, {}]))
  }
  return requests
}

function textOf([line, headers]: (typeof MORE)[number]): RequestText {
  return (cookie) => requestFor(line, { cookie, ...headers })
}

function filled(path: string): string {
  const isFile = path.includes('/upload') || path.includes('/download')
  return path
    .replace(':model', isFile ? 'doc.Paper' : 'crm.Contact')
    .replace(':field', 'scan')
    .replace(':version', '0')
    .replaceAll(':id', '1')
}

function requestFor(line: string, headers: Readonly<Record<string, string>>): string {
  const alive = { ...headers, connection: 'keep-alive' }
  if (!/^(PUT|POST|PATCH)/.test(line)) return rawRequest(`${line} HTTP/1.1`, alive)
  const isForm = line.endsWith('/upload')
  const type = line.startsWith('PATCH') ? 'application/merge-patch+json' : 'application/json'
  const body = isForm ? FORM : '{"data":{"version":0,"firstName":"Ada"},"records":[{}],"requests":[]}'
  return rawRequest(
    `${line} HTTP/1.1`,
    {
      ...{ ...alive, 'content-type': isForm ? 'multipart/form-data; boundary=b' : type },
      'content-length': String(body.length),
    },
    body,
  )
}

export async function connectTo(url: string): Promise<Socket> {
  const socket = connect(addressOf(url))
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Between two statements a request shows up in no gauge for a few turns of the event loop. */
const TURNS = 10
const PATIENCE = 100
/** Database work ends by itself, but a query worker may take seconds to start on a busy machine. */
const WORKING_PATIENCE = 4_000
const WORK = [
  'questionsAsked',
  'searchesWaiting',
  'searchesRunning',
  'connectionsInUse',
  'connectionsAwaited',
]

/** Waits until the gauges are stable; returns those that are not 0. */
export async function restOf(server: Pick<Server, 'gauges'>): Promise<Gauges> {
  const left = () => Object.fromEntries(Object.entries(server.gauges()).filter(([, value]) => value !== 0))
  let seen: Gauges = {}
  let before = ''
  // By what was seen: work that ends right after it was counted must be counted again.
  const patience = () => (WORK.some((name) => (seen[name] ?? 0) !== 0) ? WORKING_PATIENCE : PATIENCE)
  for (let turns = 0, unchanged = 0; turns < TURNS && unchanged < patience();) {
    seen = left()
    const now = JSON.stringify(seen)
    turns = now === '{}' ? turns + 1 : 0
    unchanged = now === before ? unchanged + 1 : 0
    before = now
    await (turns > 0 ? new Promise(setImmediate) : sleep(5))
  }
  return seen
}

/** A service whose database answers on request, and clients that do not wait for it. */
export class Abandoned {
  #cookie = ''

  private constructor(
    readonly service: Service,
    private readonly database: HeldDatabase,
  ) {}

  static async start(
    engine: Engine,
    late?: () => Promise<void>,
    settings: Partial<Settings> = {},
  ): Promise<Abandoned> {
    const location = await preparedLocation(engine)
    const inner = await openDatabase(location.url, { poolSize: 6, statementTimeoutMs: 10_000 })
    const database = new HeldDatabase(inner, late)
    const service = await startService(engine, { database, location, settings, setupToken: 'token' })
    const abandoned = new Abandoned(service, database)
    await asUser(service.url, await abandoned.cookie()).create('crm.Contact', { firstName: 'Ada' })
    return abandoned
  }

  async close(): Promise<void> {
    await this.service.close()
    this.service.location.remove()
  }

  /** The cookie of an open, cached session. */
  async cookie(url = this.service.url): Promise<string> {
    const { status } = await send(url, { path: '/ws/me', headers: { cookie: this.#cookie } })
    if (status !== 200) this.#cookie = await openSession(url)
    return this.#cookie
  }

  /** Sends these requests on one connection and resets it while the first statement has no result. */
  async abort(bytes: string, { server, url }: Pick<Service, 'server' | 'url'> = this.service): Promise<void> {
    const isAsked = this.database.hold()
    const client = await connectTo(url)
    const isGone = new Promise<void>((resolve) => {
      server.fastify.server.once('request', ({ socket }) => {
        socket.once('close', () => {
          resolve()
        })
      })
    })
    client.write(bytes)
    // Some requests need no database.
    await Promise.race([isAsked, once(client, 'data')])
    client.resetAndDestroy()
    await isGone
    this.database.release()
  }
}

/** Hides disconnects from the server: its responses still look writable. */
export function hideDepartures({ fastify }: Pick<Server, 'fastify'>): void {
  fastify.server.prependListener('request', (_, response) => {
    response.once('close', () => {
      Object.defineProperty(response, 'destroyed', { value: false })
      // Writes on a closed response have no effect.
      response.write = () => false
      response.end = () => response
    })
  })
}
