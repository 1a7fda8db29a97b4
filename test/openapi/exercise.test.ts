// Documented = routed = exercised: the router, the document and a live server agree on every operation.
import { fastify } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { collectRoutes } from '../../src/http/openapi/openapi-routes.js'
import { addResource, documented } from '../../src/http/route/resource.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import type { Model } from '../../src/model/definition/model.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { withServer } from '../wire/exchange.js'
import { routesOf, withoutSlash } from '../wire/routes.js'
import { ApiDocument, type Document, type Schema } from './api-document.js'
import { findDifferences } from './check-answer.js'
import { exerciseGeneral, exerciseModels, type ExercisedModel, type Sender } from './exercise.js'
import { SmallestRecords } from './smallest-value.js'

const SETUP_TOKEN = 'a setup token'
const OTHER_PASSWORD = 'another correct horse'
let service: Service
let root: HttpClient
let api: ApiDocument

beforeAll(async () => {
  service = await startService('sqlite', { setupToken: SETUP_TOKEN })
  root = await HttpClient.login(service.url, USERNAME, PASSWORD)
  api = await readDocument(root)
})

afterAll(async () => {
  await service.close()
})

async function readDocument(client: HttpClient, query = ''): Promise<ApiDocument> {
  const response = await client.request('GET', `/ws/openapi.json${query}`)
  return new ApiDocument((await response.json()) as Document)
}

function senderOf(client: HttpClient): Sender {
  return async (method, path, { json, form, headers = {} } = {}) => {
    if (form)
      return fetch(`${client.url}${path}`, {
        method,
        headers: { cookie: client.cookie, ...headers },
        body: form,
      })
    return client.request(method, path, json, headers)
  }
}

/** Returns method and path of every operation, with `:model` for the models. */
function listDocumented({ calls }: ApiDocument): Set<string> {
  return new Set(
    calls.map(({ method, path }) => `${method} ${path.replace(/^\/ws\/rest\/[^/]+/, '/ws/rest/{model}')}`),
  )
}

/** Asks every path of the router for its methods. */
async function listRouted(client: HttpClient, server: Service['server']): Promise<Set<string>> {
  const routed = new Set<string>()
  for (const path of routesOf(server.fastify).keys()) {
    if (path.includes('*')) continue
    const filled = path.replace(':model', 'crm.Contact').replace(/:\w+/g, '1')
    const response = await client.request('OPTIONS', filled)
    const methods = (response.headers.get('allow') ?? 'UNKNOWN').split(', ')
    for (const method of methods.filter((each) => each !== 'HEAD' && each !== 'OPTIONS'))
      routed.add(`${method} ${withoutSlash(path).replace(/:(\w+)/g, '{$1}')}`)
  }
  return routed
}

/** The models with ways to make their records. */
async function listModels(client: HttpClient, document: ApiDocument): Promise<readonly ExercisedModel[]> {
  const { storedModels } = service.app.catalog
  const findSchema = async ({ name }: Model) => {
    const response = await client.request('GET', `/ws/meta/schema/${name}`)
    const { $defs } = (await response.json()) as { $defs: Record<string, Schema> }
    return $defs['create']
  }
  const smallest = new SmallestRecords(storedModels, findSchema, client)
  const names = new Set(document.document.tags.map(({ name }) => name))
  return storedModels
    .filter(({ name }) => names.has(name))
    .map((model) => {
      let known: number | undefined
      return {
        name: model.name,
        makeRecord: async (isNew) => {
          const id =
            (isNew ? undefined : known) ??
            (await smallest.create(model)) ??
            (await findAny(client, model.name))
          if (!isNew) known = id
          return id
        },
        makeData: async () => smallest.build(model),
        versionOf: async (id) => (await client.read(model.name, id)).version,
      }
    })
}

async function findAny(client: HttpClient, model: string): Promise<number> {
  if (model === 'verso.auth.ApiKey') await client.request('POST', '/ws/me/keys', { data: { name: 'a key' } })
  return (await client.find(model, { limit: 1, sortBy: '-id' })).data[0]?.id ?? 0
}

describe('documented = routed = exercised', () => {
  test('the router and the document have the same operations', async () => {
    const [described, routed] = [listDocumented(api), await listRouted(root, service.server)]
    console.log(`operations: ${described.size} documented, ${routed.size} routed`)
    expect([...described].sort()).toEqual([...routed].sort())
  })

  test('a live server answers every operation on every model as documented', async () => {
    const models = await listModels(root, api)
    const { called, succeeded, differences, statuses } = await exerciseModels(api, models, senderOf(root))
    const documented = api.calls.filter(({ path }) => path.startsWith('/ws/rest/'))
    console.log(
      `operations on ${models.length} models: ${documented.length} documented, ${called.length} exercised, by status: ${JSON.stringify([...statuses])}`,
    )
    expect(differences).toEqual([])
    expect(called.length).toBe(documented.length)
    expect([...succeeded].sort()).toEqual([
      ...[
        'atVersion',
        'bulkRemove',
        'clear',
        'copy',
        'create',
        'deleted',
        'details',
        'download',
        'export',
        'fetch',
        'find',
      ],
      ...[
        'history',
        'massUpdate',
        'patch',
        'permitted',
        'read',
        'remove',
        'revert',
        'save',
        'search',
        'update',
      ],
      ...['upload', 'verify'],
    ])
  })

  test('a live server answers every other operation as documented', async () => {
    const documented = api.calls.filter(({ path }) => !path.startsWith('/ws/rest/'))
    const send = senderOf(root)
    const { called, succeeded, differences } = await exerciseGeneral(api, generalRequests(), send)
    await send('POST', '/ws/me/password', { json: { data: { old: OTHER_PASSWORD, new: PASSWORD } } })
    console.log(`other operations: ${documented.length} documented, ${called.length} exercised`)
    expect(differences).toEqual([])
    expect([...called].sort()).toEqual(documented.map(({ operation }) => operation.operationId).sort())
    expect(called.filter((id) => !succeeded.has(id))).toEqual([
      'submitResetForm',
      'showSetupForm',
      'submitSetupForm',
    ])
  })

  test('operations need credentials exactly where the document says so', async () => {
    for (const call of api.calls.filter(({ path }) => !/rest\/(?!crm\.Contact)/.test(path))) {
      const path = call.path.replace(/\{\w+\}/g, '1')
      const response = await fetch(`${service.url}${path}`, { method: call.method, redirect: 'manual' })
      const isPublic = call.operation.security?.length === 0
      const { kind } = ((await response.text().then(parse)) as { data?: { kind?: string } }).data ?? {}
      // A login without credentials is rejected by the same status.
      const isRejected = response.status === 401 && !call.operation.operationId.startsWith('logIn')
      expect([call.operation.operationId, isRejected, kind]).toEqual([
        call.operation.operationId,
        !isPublic,
        isPublic ? kind : 'unauthenticated',
      ])
    }
  })

  test('with compat axelor, errors about records are documented as 200', async () => {
    await withServer(service, { compat: 'axelor' }, async (url) => {
      const client = await HttpClient.login(url, USERNAME, PASSWORD)
      const compat = await readDocument(client, '?model=crm.Contact,test.Limited,rel.Address,doc.Folder')
      const models = await listModels(client, compat)
      const { called, differences, statuses } = await exerciseModels(compat, models, senderOf(client))
      expect(differences).toEqual([])
      expect(called.length).toBe(compat.calls.length)
      const download = [...statuses.keys()].filter((status) => status >= 400)
      // Clients check the status of a download only.
      expect(download).toEqual([404])
      // Problems keep their status, also for these clients.
      const call = compat.find('readCrmContact')
      const response = await client.request('GET', '/ws/rest/crm.Contact/999999', undefined, {
        accept: 'application/problem+json',
      })
      const answer = { status: response.status, headers: response.headers, text: await response.text() }
      expect([answer.status, findDifferences(compat, call, answer)]).toEqual([404, []])
      // The strict document would be wrong here.
      const sentAs200 = { ...answer, status: 200, text: '{"status":-1,"data":{}}' }
      expect(findDifferences(api, api.find('readCrmContact'), sentAs200)).not.toEqual([])
    })
  })
})

function parse(text: string): unknown {
  return text.startsWith('{') ? JSON.parse(text) : {}
}

describe('a difference is found', () => {
  test('a route without documentation, and a documented path without a route', async () => {
    const routed = await listRouted(root, service.server)
    const { '/ws/batch': batch = {}, ...others } = api.document.paths
    const paths = { ...others, '/ws/nothing': batch }
    const documented = listDocumented(new ApiDocument({ ...api.document, paths }))
    expect([...routed].filter((each) => !documented.has(each))).toEqual(['POST /ws/batch'])
    expect([...documented].filter((each) => !routed.has(each))).toEqual(['POST /ws/nothing'])
  })

  test('a route that bypasses resources', async () => {
    const server = fastify()
    const routes = collectRoutes(server, { ...DEFAULT_HTTP_SETTINGS, basePath: '' })
    const docs = {
      id: 'one',
      summary: 'One',
      access: 'public',
      group: 'Service',
      answers: {},
      errors: [],
    } as const
    addResource(server, {
      path: '/one',
      guards: [],
      handlers: { GET: documented(docs, async () => undefined) },
    })
    server.get('/two', async () => 'two')
    await server.ready()
    expect(routes.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /one'])
    expect([...routesOf(server).keys()]).toEqual(['/one', '/two'])
    expect((await server.inject({ method: 'OPTIONS', url: '/two' })).headers['allow']).toBeUndefined()
  })

  test('an undocumented status, header, content type and body', async () => {
    const call = api.find('findCrmContact')
    const response = await root.request('GET', '/ws/rest/crm.Contact')
    const answer = { status: response.status, headers: response.headers, text: await response.text() }
    expect(findDifferences(api, call, answer)).toEqual([])
    const withHeader = new Headers(answer.headers)
    withHeader.set('location', '/x')
    const asText = new Headers(answer.headers)
    asText.set('content-type', 'text/plain')
    const mutants = [
      { ...answer, status: 418 },
      { ...answer, headers: withHeader },
      { ...answer, headers: asText },
      { ...answer, text: '{"status":0,"offset":0,"total":"1","data":[]}' },
      { ...answer, text: '{"status":0,"offset":0,"total":1,"data":[{"id":1}]}' },
    ]
    expect(mutants.map((each) => findDifferences(api, call, each).length > 0)).toEqual(
      mutants.map(() => true),
    )
  })
})

/** Requests for the operations that do not belong to a model, in an order in which they succeed. */
function generalRequests(): Parameters<typeof exerciseGeneral>[1] {
  const login = { json: { username: USERNAME, password: PASSWORD }, headers: { cookie: '' } }
  let key = 0
  let webhook = 0
  return {
    showRoot: async () => ['/'],
    readApplicationFile: async () => {
      const page = await (await fetch(service.url, { headers: { accept: 'text/html' } })).text()
      return [/src="([^"]+)"/.exec(page)?.[1] ?? '']
    },
    checkHealth: async () => ['/healthz'],
    checkReadiness: async () => ['/readyz?write'],
    logIn: async () => ['/callback', login],
    logInAtOldPath: async () => ['/login.jsp', login],
    logOutByGet: async () => ['/logout', { headers: { cookie: '' } }],
    logOut: async () => ['/logout', { headers: { cookie: '' } }],
    batch: async () => [
      '/ws/batch',
      { json: { requests: [{ op: 'create', model: 'crm.Contact', data: {} }] } },
    ],
    listChanges: async () => ['/ws/changes?since=0&limit=5&model=crm.Contact'],
    listModels: async () => ['/ws/meta/models'],
    describeModel: async () => ['/ws/meta/fields/crm.Contact'],
    getOpenapi: async () => ['/ws/openapi.json?model=crm.Contact'],
    getSchema: async () => ['/ws/meta/schema/crm.Contact'],
    showAppInfo: async () => ['/ws/public/app/info'],
    showApiReference: async () => ['/docs'],
    readApiReferenceFile: async () => {
      const page = await (await fetch(`${service.url}/docs`)).text()
      return [/src="([^"]+)"/.exec(page)?.[1] ?? '']
    },
    showAccount: async () => ['/ws/me'],
    listSessions: async () => ['/ws/me/sessions'],
    endOtherSessions: async () => ['/ws/me/sessions'],
    endSession: async () => {
      const other = await HttpClient.login(service.url, USERNAME, PASSWORD)
      const list = await (await other.request('GET', '/ws/me/sessions')).json()
      const { id } =
        (list as { data: { id: string; current: boolean }[] }).data.find(({ current }) => current) ?? {}
      return [`/ws/me/sessions/${id ?? ''}`]
    },
    addKey: async () => ['/ws/me/keys', { json: { data: { name: 'one' } } }],
    listKeys: async () => {
      const created = await root.request('POST', '/ws/me/keys', { data: { name: 'two' } })
      key = ((await created.json()) as { data: { id: number }[] }).data[0]?.id ?? 0
      return ['/ws/me/keys']
    },
    dropKey: async () => [`/ws/me/keys/${key}`],
    listUserSessions: async () => ['/ws/users/1/sessions'],
    makeResetLink: async () => ['/ws/users/1/reset'],
    showResetForm: async () => ['/reset?done'],
    submitResetForm: async () => ['/reset?token=wrong', { json: { password: 'correct horse battery' } }],
    showSetupForm: async () => ['/setup?token=wrong'],
    submitSetupForm: async () => [
      '/setup?token=wrong',
      { json: { username: 'a', password: 'correct horse battery' } },
    ],
    addWebhook: async () => [
      '/ws/webhooks',
      { json: { data: { name: 'hook', url: 'https://hooks.example.com/', paused: true } } },
    ],
    showWebhookState: async () => {
      webhook = (await root.find('verso.feed.Webhook', { limit: 1, sortBy: '-id' })).data[0]?.id ?? 0
      return [`/ws/webhooks/${webhook}`]
    },
    pingWebhook: async () => [`/ws/webhooks/${webhook}/ping`],
    listDeliveries: async () => [`/ws/webhooks/${webhook}/deliveries`],
    rotateWebhookSecret: async () => [`/ws/webhooks/${webhook}/secret`],
    changePassword: async () => [
      '/ws/me/password',
      { json: { data: { old: PASSWORD, new: OTHER_PASSWORD } } },
    ],
    endUserSessions: async () => {
      const { id } = (
        await root.create('verso.auth.User', { username: 'someone', password: 'correct horse battery' })
      ).data
      return [`/ws/users/${id}/sessions`]
    },
  }
}
