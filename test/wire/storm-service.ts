// A service with four kinds of clients: a cookie, an API key, a browser, and a cookie behind a proxy.
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { createKey } from '../../src/service/auth/keys.js'
import { createContext } from '../../src/service/context/context.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { expectFailures } from '../server-failures.js'
import { identityIn, startService, type Engine, type Service } from '../targets.js'
import { asUser, only, openSession, rawRequest, type Answer } from './exchange.js'
import { RawConnection } from './raw-connection.js'

export const KINDS = ['cookie', 'key', 'browser', 'proxy'] as const
export type Kind = (typeof KINDS)[number]

export const NOTES = '/ws/rest/test.Note'
export const CONTACTS = '/ws/rest/crm.Contact'
const LARGE_CHARACTERS = 300_000
const FORWARDED = {
  ...{ 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', 'x-real-ip': '203.0.113.7' },
  ...{ 'x-forwarded-host': 'records.example.org', via: '1.1 proxy' },
}

/** One kind of client, and the server that it talks to. */
export interface Client {
  readonly kind: Kind
  readonly url: string
  readonly server: Server
  readonly headers: Readonly<Record<string, string>>
  readonly service: StormService
}

export interface StormService {
  readonly service: Service
  readonly clients: Readonly<Record<Kind, Client>>
  /** The path of a record with a large answer. */
  readonly large: string
  /** Creates a note and returns its path. */
  createNote(title?: string): Promise<string>
  readNote(path: string): Promise<{ readonly version: number; readonly title: string }>
  /** The titles of a note by version. */
  readTitles(path: string): Promise<Map<number, string>>
  /** The number of notes with this title. */
  countNotes(title: string): Promise<number>
  close(): Promise<void>
}

export async function startStormService(engine: Engine): Promise<StormService> {
  const service = await startService(engine)
  const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, trustProxy: ['127.0.0.1'] }
  const proxied = await createServer(service.app, settings)
  expectFailures(proxied.fastify.server, [])
  const [proxiedUrl = ''] = await proxied.listen()
  const cookie = await openSession(service.url)
  const { id: user } = await identityIn(service)
  const context = createContext(service.app, SERVICE_PRINCIPAL)
  const { key } = await createKey(context, { user, name: 'storm' })
  const direct = { url: service.url, server: service.server }
  const browser = {
    ...{ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    ...{ host: new URL(service.url).host, origin: service.url, referer: `${service.url}/` },
    ...{ 'accept-language': 'en-GB,en;q=0.9', 'user-agent': 'Mozilla/5.0 Chrome/156.0.0.0' },
    ...{ accept: 'application/json, text/plain, */*', 'accept-encoding': 'gzip, deflate, br' },
  }
  const admin = asUser(service.url, cookie)
  const { id } = only(await admin.create('crm.Contact', { notes: 'n'.repeat(LARGE_CHARACTERS) }))
  const readNote = async (path: string) => {
    const { version, title } = only(await admin.get(path))
    return { version, title: String(title) }
  }
  const storm: Omit<StormService, 'clients'> = {
    service,
    large: `${CONTACTS}/${id}`,
    createNote: async (title = 'first') => `${NOTES}/${only(await admin.create('test.Note', { title })).id}`,
    readNote,
    readTitles: async (path) => {
      const { version } = await readNote(path)
      const titles = new Map<number, string>()
      for (let each = 0; each <= version; each++) {
        const { title } = only(await admin.get(`${path}/history/${each}`))
        titles.set(each, String(title))
      }
      return titles
    },
    countNotes: async (title) => {
      const filter = encodeURIComponent(`title = '${title}'`)
      return (JSON.parse((await admin.get(`${NOTES}?filter=${filter}`)).text) as { total: number }).total
    },
    close: async () => {
      await proxied.close()
      await service.close()
    },
  }
  const clients: Record<Kind, Client> = {} as Record<Kind, Client>
  const whole: StormService = { ...storm, clients }
  const add = (kind: Kind, client: Pick<Client, 'url' | 'server' | 'headers'>) => {
    clients[kind] = { kind, service: whole, ...client }
  }
  add('cookie', { ...direct, headers: { cookie } })
  add('key', { ...direct, headers: { 'api-key': key } })
  add('browser', { ...direct, headers: { ...browser, cookie: `theme=dark; ${cookie}` } })
  const proxyCookie = await openSession(proxiedUrl, FORWARDED)
  add('proxy', { url: proxiedUrl, server: proxied, headers: { ...FORWARDED, cookie: proxyCookie } })
  return whole
}

/** The bytes of a request by this client; a body is sent as JSON. */
export function requestBy(
  client: Pick<Client, 'headers'>,
  line: string,
  body?: unknown,
  more: Readonly<Record<string, string>> = {},
): string {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const sized =
    body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  const headers = { connection: 'keep-alive', ...client.headers, ...sized, ...more }
  return rawRequest(`${line} HTTP/1.1`, headers, text)
}

export function updateBy(
  client: Pick<Client, 'headers'>,
  path: string,
  version: number,
  title: string,
): string {
  return requestBy(client, `POST ${path}`, { data: { version, title } })
}

/** Sends a request alone on a connection of its own. */
export async function sendAlone(url: string, bytes: string | Buffer): Promise<Answer | undefined> {
  const connection = await RawConnection.open(url)
  connection.write(bytes)
  const answer = await connection.answer()
  connection.close()
  return answer
}

/** What a client sees of an answer, without values that differ from answer to answer. */
export function seen(answer: Answer | undefined): string {
  if (!answer) return 'no answer'
  const own = { date: '', 'x-request-id': '', 'x-commit-seq': '', etag: '', connection: '', 'keep-alive': '' }
  const headers = Object.entries({ ...answer.headers, ...own }).sort()
  const body = answer.text.replaceAll(String(answer.headers['x-request-id']), '<id>')
  return JSON.stringify({ status: answer.status, headers, body })
}
