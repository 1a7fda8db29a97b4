// Routes of one's own in the OpenAPI document: those with a schema, for those who may call them.
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RoutePlugin } from '../../src/http/ext/route-plugin.js'
import { HttpClient } from '../http-client.js'
import { grantee } from '../permissions/office-fixture.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'
import { checked, notes } from '../wire/ext-plugins.js'
import { ApiDocument, type Document } from './api-document.js'
import { findDifferences, receive } from './check-answer.js'

let service: Service
let root: HttpClient

/** Routes whose paths and schemas are hard to describe. */
const odd: RoutePlugin = async (fastify) => {
  const config = { access: 'public' } as const
  const tree = { $id: 'Tree', type: 'object', properties: { next: { $ref: 'Tree#' } } }
  fastify.addSchema(tree)
  const response = { '2xx': { $ref: 'Tree#' } }
  fastify.get('/a-b', { config, schema: {} }, async () => ({}))
  fastify.get('/a/b', { config, schema: { summary: 'Second' } }, async () => ({}))
  fastify.get('/files/*', { config, schema: { response } }, async () => ({}))
  fastify.get('/tree/:id(^\\d+$)', { config, schema: { response } }, async () => ({}))
  fastify.get('/tree/:id', { config, schema: { response } }, async () => ({}))
  fastify.all(
    '/all',
    { config, schema: { response: { 404: { type: 'string', nullable: true } } } },
    async () => '',
  )
  fastify.get('/', { config, schema: { summary: 'Root' } }, async () => ({}))
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']
  const refer = (id: (name: string) => string) =>
    Object.fromEntries(names.map((name) => [name, { $ref: `${id(name)}#` }]))
  fastify.addSchema({ $id: 'Wide', type: 'object', nullable: true, properties: refer(() => 'Wide') })
  for (const name of names)
    fastify.addSchema({ $id: `Net${name}`, type: 'object', properties: refer((other) => `Net${other}`) })
  fastify.get('/wide', { config, schema: { response: { 200: { $ref: 'Wide#' } } } }, async () => ({}))
  fastify.get('/net', { config, schema: { response: { 200: { $ref: 'Neta#' } } } }, async () => ({}))
}

beforeAll(async () => {
  service = await startService('sqlite', { routes: [checked, notes, odd] })
  root = await HttpClient.login(service.url, USERNAME, PASSWORD)
})
afterAll(() => service.close())

async function readDocument(client: HttpClient): Promise<ApiDocument> {
  const response = await client.request('GET', '/ws/openapi.json?model=')
  const document = (await response.json()) as Document
  const { valid, errors } = await new Validator().validate(document as unknown as Record<string, unknown>)
  expect([valid, errors]).toEqual([true, undefined])
  const api = new ApiDocument(document, true)
  expect(api.danglingRefs).toEqual([])
  const ids = api.calls.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !/^[A-Za-z]\w*$/.test(id))).toEqual([])
  return api
}

function listOwn(api: ApiDocument): readonly string[] {
  return api.calls
    .filter(({ operation }) => operation.tags[0] === 'Extensions')
    .map(({ method, path, operation }) => `${operation.operationId}: ${method} ${path}`)
}

test('the document has the routes with a schema that is not hidden', async () => {
  const api = await readDocument(root)
  expect(listOwn(api)).toEqual([
    'extPostOrdersByCustomer: POST /ext/orders/{customer}',
    'extGetOrdersByIdExportByFormat: GET /ext/orders/{id}/export.{format}',
    'extGetPing: GET /ext/ping',
    'extGetAB: GET /ext/a-b',
    'extGetAB_2: GET /ext/a/b',
    'extGetFilesByPath: GET /ext/files/{path}',
    'extGetTreeById: GET /ext/tree/{id}',
    ...['Get', 'Post', 'Put', 'Patch', 'Delete'].map(
      (method) => `ext${method}All: ${method.toUpperCase()} /ext/all`,
    ),
    'extGet: GET /ext',
    'extGetWide: GET /ext/wide',
    'extGetNet: GET /ext/net',
  ])
  expect(api.document.tags.map(({ name }) => name)).toContain('Extensions')
})

test('a user who is no administrator does not see the routes of administrators', async () => {
  const { client } = await grantee(service, [])
  const own = listOwn(await readDocument(client))
  expect(own).toContain('extGetPing: GET /ext/ping')
  expect(own.join()).not.toContain('export')
})

test('an operation has the schemas, the texts and the access of its route', async () => {
  const api = await readDocument(root)
  const { operation } = api.find('extPostOrdersByCustomer')
  expect(operation).toMatchObject({
    tags: ['Extensions', 'Orders'],
    summary: 'Place an order',
    description: 'Checks the stock first.',
    parameters: [
      { name: 'customer', in: 'path', required: true, schema: { type: 'integer' } },
      { name: 'urgent', in: 'query', required: true, description: 'Deliver today.' },
      { name: 'tag', in: 'query', schema: { type: 'array' } },
      { name: 'X-Channel', in: 'header' },
    ],
  })
  expect(operation.security).toBeUndefined()
  expect(api.find('extGetPing').operation.security).toEqual([])
  expect(Object.keys(operation.responses)).toEqual(['201', '400', '401', '403', '422', 'default'])
  expect(Object.keys(api.find('extGetAll').operation.responses)).toEqual(['400', '404', 'default'])
  const schema = operation.requestBody?.content['application/json']?.schema ?? {}
  expect(api.validate(schema, { lines: [{ item: 'a', amount: 1 }] })).toEqual([])
  expect(api.validate(schema, { lines: [{ item: 'a', amount: 0 }] })).toEqual([
    '/lines/0/amount must be >= 1',
  ])
})

test('schemas that refer to each other many times expand to a limited number', async () => {
  const api = await readDocument(root)
  const schemaOf = (id: string) =>
    api.find(id).operation.responses['200']?.content?.['application/json']?.schema
  const type = ['object', 'null']
  expect(schemaOf('extGetWide')).toMatchObject({ type, properties: { a: { type }, l: { type } } })
  expect(JSON.stringify(schemaOf('extGetWide')).length).toBeLessThan(1_000)
  expect(JSON.stringify(schemaOf('extGetNet')).length).toBeLessThan(1_000_000)
})

test('a live server answers as documented', async () => {
  const api = await readDocument(root)
  const differencesOf = async (id: string, path: string, body?: unknown) => {
    const call = api.find(id)
    return findDifferences(api, call, await receive(await root.request(call.method, path, body)))
  }
  const order = '/ext/orders/7?urgent=true'
  expect(await differencesOf('extPostOrdersByCustomer', order, { lines: [] })).toEqual([])
  expect(await differencesOf('extPostOrdersByCustomer', order, {})).toEqual([])
  expect(await differencesOf('extPostOrdersByCustomer', '/ext/orders/x', { lines: [] })).toEqual([])
  expect(await differencesOf('extGetOrdersByIdExportByFormat', '/ext/orders/7/export.csv')).toEqual([])
  expect(await differencesOf('extGetPing', '/ext/ping')).toEqual([])
  expect(await differencesOf('extGetAB', '/ext/a-b')).toEqual([])
  expect(await differencesOf('extGet', '/ext')).toEqual([])
})
