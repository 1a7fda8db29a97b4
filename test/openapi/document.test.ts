// The OpenAPI document by itself: valid by a public validator, complete, with stable names and true examples.
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toComponentName } from '../../src/formats/component-name.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { grantee } from '../permissions/office-fixture.js'
import { asUser, expectError, openSession, send, withServer } from '../wire/exchange.js'
import { ApiDocument, type Document } from './api-document.js'

let service: Service
let root: HttpClient

beforeAll(async () => {
  service = await startService('sqlite')
  root = await HttpClient.login(service.url, USERNAME, PASSWORD)
})

afterAll(async () => {
  await service.close()
})

async function read(client: HttpClient, query = ''): Promise<Document> {
  const response = await client.request('GET', `/ws/openapi.json${query}`)
  expect(response.status).toBe(200)
  return (await response.json()) as Document
}

async function expectValid(document: Document): Promise<ApiDocument> {
  const { valid, errors } = await new Validator().validate(document as unknown as Record<string, unknown>)
  expect([valid, errors]).toEqual([true, undefined])
  const api = new ApiDocument(document, true)
  expect(api.danglingRefs).toEqual([])
  for (const name of api.schemaNames) api.validateNamed(name, {})
  const ids = api.calls.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !/^[A-Za-z_]\w*$/.test(id))).toEqual([])
  return api
}

/** Returns the errors of all examples. */
function checkExamples(api: ApiDocument): { readonly count: number; readonly errors: readonly string[] } {
  const media = api.calls.flatMap(({ operation }) =>
    [operation.requestBody ?? {}, ...Object.values(operation.responses)].flatMap(
      ({ content = {} }: { content?: object }) =>
        Object.values(content as Record<string, { schema: object; example?: unknown }>).map((each) => ({
          id: operation.operationId,
          ...each,
        })),
    ),
  )
  const examples = media.filter(({ example }) => example !== undefined)
  return {
    count: examples.length,
    errors: examples.flatMap(({ id, schema, example }) =>
      api.validate(schema as Record<string, unknown>, example).map((error) => `${id}: ${error}`),
    ),
  }
}

describe('the OpenAPI document', () => {
  test('is valid for an administrator, and its schemas compile', async () => {
    const api = await expectValid(await read(root))
    expect(api.document.openapi).toBe('3.1.0')
    expect(api.schemaNames).toEqual(
      expect.arrayContaining(['CrmContact', 'CrmContactCreate', 'CrmContactUpdate', 'CrmContactPage']),
    )
  })

  test('has examples that are valid against their schemas', async () => {
    const { count, errors } = checkExamples(new ApiDocument(await read(root)))
    expect(errors).toEqual([])
    expect(count).toBeGreaterThan(100)
  })

  test('is valid for a user with few permissions, and has only what the user may use', async () => {
    const who = await grantee(service, [
      { model: 'crm.Contact', canRead: true, readable: ['firstName', 'email'] },
      { model: 'test.Note', canRead: true, canCreate: true },
    ])
    const api = await expectValid(await read(who.client))
    const paths = Object.keys(api.document.paths)
    const models = paths.filter((path) => path.startsWith('/ws/rest/')).map((path) => path.split('/')[3])
    expect([...new Set(models)].sort()).toEqual(['com.axelor.meta.db.MetaModel', 'crm.Contact', 'test.Note'])
    const methodsOf = (path: string) => Object.keys(api.document.paths[path] ?? {})
    expect(methodsOf('/ws/rest/crm.Contact')).toEqual(['get'])
    expect(methodsOf('/ws/rest/crm.Contact/{id}')).toEqual(['get'])
    expect(methodsOf('/ws/rest/test.Note').sort()).toEqual(['get', 'post', 'put'])
    expect(methodsOf('/ws/rest/test.Note/{id}')).toEqual(['get'])
    expect(paths).not.toContain('/ws/webhooks')
    expect(paths).not.toContain('/ws/rest/crm.Contact/export')
    expect(
      Object.keys((api.resolve('#/components/schemas/CrmContact') as { properties: object }).properties),
    ).toEqual(['id', 'version', 'firstName', 'email'])
    expect(api.schemaNames).not.toContain('CrmContactCreate')
  })

  test('describes one model or several with ?model=', async () => {
    const one = await expectValid(await read(root, '?model=rel.Person'))
    expect(Object.keys(one.document.paths).every((path) => path.startsWith('/ws/rest/rel.Person'))).toBe(true)
    expect(one.document.tags.map(({ name }) => name)).toEqual(['rel.Person'])
    const all = await read(root)
    for (const [path, item] of Object.entries(one.document.paths)) expect(item).toEqual(all.paths[path])
    const two = await read(root, '?model=test.Note&model=crm.Contact')
    expect(two.tags.map(({ name }) => name)).toEqual(['crm.Contact', 'test.Note'])
    expect(await read(root, '?model=crm.Contact,test.Note')).toEqual(two)
  })

  test('rejects an unknown model like a hidden one, and unknown parameters', async () => {
    const who = await grantee(service, [{ model: 'test.Note', canRead: true }])
    const told = async (model: string) => {
      const response = await who.client.request('GET', `/ws/openapi.json?model=${model}`)
      const { data } = (await response.json()) as { data: Record<string, string> }
      return [response.status, data['kind'], data['message']?.replace(model, '…')]
    }
    expect(await told('crm.Contact')).toEqual(await told('crm.Nothing'))
    expect(await told('crm.Contact')).toEqual([404, 'unknown-model', 'There is no model "…"'])
    expect((await root.request('GET', '/ws/openapi.json?models=a')).status).toBe(400)
  })

  test('has the operations that belong to no model with an empty ?model=', async () => {
    const { document } = await expectValid(await read(root, '?model='))
    const all = await read(root)
    const isOfModel = (path: string) => path.startsWith('/ws/rest/')
    expect(Object.keys(document.paths)).toEqual(Object.keys(all.paths).filter((path) => !isOfModel(path)))
  })

  test('needs a login, and so does the JSON Schema', async () => {
    for (const path of ['/ws/openapi.json', '/ws/meta/schema/crm.Contact'])
      expectError(await send(service.url, { path }), 401, 'unauthenticated')
  })

  test('has an ETag that changes with the permissions', async () => {
    const who = await grantee(service, [{ model: 'test.Note', canRead: true }])
    const ask = async (etag?: string) =>
      who.client.request(
        'GET',
        '/ws/openapi.json',
        undefined,
        etag === undefined ? {} : { 'if-none-match': etag },
      )
    const first = await ask()
    const etag = first.headers.get('etag') ?? ''
    await first.arrayBuffer()
    expect(etag).toMatch(/^"[\w-]{22}/)
    expect((await ask(etag)).status).toBe(304)
    const { id } = (
      await root.create('verso.auth.Permission', {
        role: { id: who.role },
        model: 'crm.Contact',
        canRead: true,
      })
    ).data
    service.clock.letASecondPass()
    const changed = await ask(etag)
    expect([id > 0, changed.status]).toEqual([true, 200])
    expect(await changed.text()).toContain('/ws/rest/crm.Contact')
  })

  test('names the server by base path, public URL and proxy', async () => {
    const serverOf = async (url: string, path: string, headers: Record<string, string> = {}) => {
      const cookie = await openSession(url)
      const answer = await asUser(url, cookie).get(path, headers)
      expect(answer.status).toBe(200)
      const document = JSON.parse(answer.text) as Document
      expect(Object.keys(document.paths)[0]).toMatch(/^\/(?!app)/)
      await expectValid(document)
      return document.servers
    }
    await withServer(service, { basePath: '/app' }, async (url) => {
      expect(await serverOf(url, '/ws/openapi.json?model=')).toEqual([{ url }])
      expect(url).toMatch(/\/app$/)
    })
    await withServer(service, { basePath: '/app', publicUrl: 'https://records.example.org' }, async (url) => {
      expect(await serverOf(url, '/ws/openapi.json?model=test.Note')).toEqual([
        { url: 'https://records.example.org/app' },
      ])
    })
    await withServer(service, { trustProxy: ['127.0.0.1'], host: '0.0.0.0' }, async (url) => {
      const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'proxy.example.org' }
      const local = url.replace('0.0.0.0', '127.0.0.1')
      expect(await serverOf(local, '/ws/openapi.json?model=test.Note', forwarded)).toEqual([
        { url: 'https://proxy.example.org' },
      ])
    })
  })

  test('lists Basic authentication only if it is enabled', async () => {
    expect(Object.keys((await read(root)).components['securitySchemes'] ?? {})).toEqual([
      'session',
      'key',
      'bearer',
    ])
    await withServer(service, { basicAuth: true }, async (url) => {
      const answer = await asUser(url, await openSession(url)).get('/ws/openapi.json?model=test.Note')
      const { components } = JSON.parse(answer.text) as Document
      expect(Object.keys(components['securitySchemes'] ?? {})).toContain('basic')
    })
  })
})

describe('the name of a component', () => {
  test('is readable and depends on the model alone', () => {
    expect(
      ['crm.Contact', 'crm.SalesOrder', 'crm.sales.Order', 'verso.auth.User'].map(toComponentName),
    ).toEqual(['CrmContact', 'CrmSalesOrder', 'CrmSales_Order', 'VersoAuth_User'])
  })

  test('is different for different models, also with the endings of schemas', () => {
    const names = [
      ...[
        'a.BC',
        'a.b.C',
        'aB.C',
        'ab.C',
        'a.bC',
        'a.b_C',
        'a_b.C',
        'a._B',
        'A.B',
        'a.Order',
        'a.OrderCreate',
      ],
      ...['a.OrderItem', 'a.b.OrderPage', 'a.b.Order', 'ab.Order', 'a.bOrder'],
    ]
    const endings = ['', 'Create', 'Update', 'Item', 'Page', 'Result', 'Saved', 'Reference', 'Input']
    const components = names.flatMap((name) => endings.map((ending) => toComponentName(name) + ending))
    expect(new Set(components).size).toBe(components.length)
    expect(components.filter((name) => !/^[A-Za-z]\w*$/.test(name))).toEqual([])
  })
})
