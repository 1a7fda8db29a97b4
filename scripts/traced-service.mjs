// A service in this process whose requests can be traced, and the requests to trace.
import http from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'

const CONTACT = '/ws/rest/trace.Contact'
const COMPANY = '/ws/rest/trace.Company'
const LINE = '/ws/rest/trace.Line'
const USER = { username: 'ada', password: 'a long and unused one' }
const JSON_TYPE = { 'content-type': 'application/json' }
const COMPANIES = 13
const RECORDS = { contact: 1, referring: 2, stale: 3, nested: 1 }

/**
 * Starts the service of a built checkout. A role permits the user everything; the user is no administrator. Returns {
 * kinds, requests, close }: `kinds` maps a kind of client to a function that sends a request.
 */
export async function startTracedService({ dist, db }) {
  const load = (file) => import(pathToFileURL(path.join(dist, file)).href)
  const { createApp } = await load('service/create-app.js')
  const { createServer } = await load('http/server.js')
  const { DEFAULT_HTTP_SETTINGS } = await load('http/settings.js')
  const { defineModel } = await load('index.js')
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-trace-'))
  const log = pino({ level: 'info' }, new Writable({ write: (_chunk, _encoding, done) => done() }))
  const models = describeModels().map((model) => ({ file: model.name, definition: defineModel(model) }))
  const settings = { db: db ?? `sqlite:${path.join(folder, 'trace.db')}` }
  const app = await createApp({ settings, models, log })
  const key = await addUser(load, app)
  const usual = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, rateLimitPerMinute: 0 }
  const bare = await createServer(app, usual)
  const proxied = await createServer(app, { ...usual, trustProxy: ['127.0.0.1'] })
  const [[url], [proxiedUrl]] = [await bare.listen(), await proxied.listen()]
  const kinds = await openClients(url, proxiedUrl, key)
  await createRecords(kinds.cookie)
  const close = async () => {
    for (const { agent } of Object.values(kinds)) agent.destroy()
    await Promise.all([bare.close(), proxied.close()])
    await app.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { kinds, requests: buildRequests(), close }
}

function describeModels() {
  return [
    {
      name: 'trace.Contact',
      fields: {
        firstName: { type: 'string' },
        lastName: { type: 'string', required: true },
        fullName: { type: 'string', computed: '{firstName} {lastName}' },
        email: { type: 'string' },
        phone: { type: 'string' },
        company: { type: 'many-to-one', target: 'trace.Company' },
      },
      nameField: 'fullName',
      listFields: ['fullName', 'email', 'phone'],
    },
    {
      name: 'trace.Company',
      fields: {
        name: { type: 'string', required: true },
        lines: { type: 'one-to-many', target: 'trace.Line', mappedBy: 'company', owned: true },
      },
      listFields: ['name'],
    },
    {
      name: 'trace.Line',
      fields: {
        text: { type: 'string', required: true },
        company: { type: 'many-to-one', target: 'trace.Company' },
      },
    },
  ]
}

async function addUser(load, app) {
  const { addUser: add } = await load('service/auth/accounts.js')
  const { createKey } = await load('service/auth/keys.js')
  const { recordsForPrincipal } = await load('service/records/records.js')
  const { SERVICE_PRINCIPAL } = await load('service/context/principal.js')
  const { createContext } = await load('service/context/context.js')
  const may = { canRead: true, canCreate: true, canUpdate: true, canRemove: true }
  const permissions = describeModels().map(({ name }) => ({ model: name, ...may }))
  await recordsForPrincipal(app, SERVICE_PRINCIPAL).create('verso.auth.Role', { name: 'clerk', permissions })
  const user = await add(app, { ...USER, roles: ['clerk'] })
  return (await createKey(createContext(app, SERVICE_PRINCIPAL), { user, name: 'trace' })).key
}

/** Each kind of client has a connection of its own, which stays open. */
async function openClients(url, proxiedUrl, key) {
  const forwarded = {
    ...{ 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', via: '1.1 proxy' },
    'x-forwarded-host': 'records.example.org',
  }
  const cookie = await logIn(createClient(url, {}))
  const browser = {
    ...{ 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    ...{ origin: url, referer: `${url}/`, accept: 'application/json, text/plain, */*' },
    ...{ 'accept-language': 'en-GB,en;q=0.9', 'user-agent': 'Mozilla/5.0 Chrome/156.0.0.0' },
  }
  return {
    cookie: createClient(url, { cookie }),
    key: createClient(url, { 'api-key': key }),
    browser: createClient(url, { cookie: `theme=dark; ${cookie}`, ...browser }),
    proxy: createClient(proxiedUrl, {
      cookie: await logIn(createClient(proxiedUrl, forwarded)),
      ...forwarded,
    }),
  }
}

function createClient(url, headers) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const send = (request) =>
    sendRequest(url, agent, { ...request, headers: { ...headers, ...request.headers } })
  return { send, agent }
}

async function logIn({ send, agent }) {
  const { headers } = await send(buildLogin())
  agent.destroy()
  return headers['set-cookie'].map((cookie) => cookie.split(';')[0]).join('; ')
}

function sendRequest(url, agent, { method, path: to, headers, body, status: expected = 200 }) {
  const text = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = http.request(url + to, {
      ...{ method, agent },
      headers: {
        ...headers,
        ...(text === undefined ? {} : { ...JSON_TYPE, 'content-length': Buffer.byteLength(text) }),
      },
    })
    request.on('error', reject)
    request.on('response', (response) => {
      let answer = ''
      response.setEncoding('utf8').on('data', (chunk) => (answer += chunk))
      response.on('end', () => {
        if (response.statusCode === expected) resolve({ headers: response.headers, body: JSON.parse(answer) })
        else reject(new Error(`${method} ${to} is answered with ${response.statusCode}: ${answer}`))
      })
    })
    request.end(text)
  })
}

async function createRecords({ send }) {
  for (let number = 0; number < COMPANIES; number++) {
    const lines = number === 0 ? [{ text: 'one' }, { text: 'two' }] : []
    await send({ method: 'PUT', path: COMPANY, body: { data: { name: `Company ${number}`, lines } } })
  }
  for (const lastName of Object.keys(RECORDS)) {
    const data = { firstName: 'Ada', lastName, email: `${lastName}@example.org` }
    await send({ method: 'PUT', path: CONTACT, body: { data } })
  }
}

function buildLogin() {
  return { method: 'POST', path: '/callback', body: USER }
}

/** Maps a title to a function that builds the next request, given a client that may read current versions. */
function buildRequests() {
  let count = 0
  const readRecord = async ({ send }, to) => (await send({ method: 'GET', path: to })).body.data[0]
  const update = async (client, id, more = () => ({})) => {
    const { version } = await readRecord(client, `${CONTACT}/${id}`)
    const phone = `+1 202 555 ${String(count++).padStart(4, '0')}`
    return { method: 'POST', path: `${CONTACT}/${id}`, body: { data: { version, phone, ...more() } } }
  }
  return {
    update: (client) => update(client, RECORDS.contact),
    'update with a reference': (client) =>
      update(client, RECORDS.referring, () => ({ company: { id: 1 + (count % COMPANIES) } })),
    'nested update': async (client) => {
      const company = await readRecord(client, `${COMPANY}/${RECORDS.nested}`)
      const lines = []
      for (const { id } of company.lines) {
        const { version } = await readRecord(client, `${LINE}/${id}`)
        lines.push({ id, version, text: `line ${count++}` })
      }
      const data = { version: company.version, lines }
      return { method: 'POST', path: `${COMPANY}/${RECORDS.nested}`, body: { data } }
    },
    'stale update': async (client) => {
      await client.send(await update(client, RECORDS.stale))
      const data = { version: 0, phone: 'stale' }
      return { method: 'POST', path: `${CONTACT}/${RECORDS.stale}`, body: { data }, status: 409 }
    },
    create: async () => ({ method: 'PUT', path: CONTACT, body: { data: { lastName: `Harper ${count++}` } } }),
    read: async () => ({ method: 'GET', path: `${CONTACT}/${RECORDS.contact}` }),
    find: async () => ({ method: 'GET', path: `${CONTACT}?limit=2` }),
    'small list, sorted': async () => ({ method: 'GET', path: `${COMPANY}?limit=40&sortBy=name` }),
    login: async () => buildLogin(),
  }
}
