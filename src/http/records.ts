import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../errors.js'
import type { Wanted } from '../model/selection.js'
import { isObject } from '../model/value.js'
import type { App } from '../service/app.js'
import { recordsFor } from '../service/records.js'
import type { Page, RemoveOptions, UpdateOptions, WireRecord, Written } from '../wire.js'
import { dataOf } from './bodies.js'
import { actorOf, type Guards } from './guard.js'
import { sendJson, type Handler, type Resource } from './resource.js'

interface Params {
  readonly model: string
  readonly id: string
}
type Query = Readonly<Record<string, unknown>>

export function recordResources(app: App, guards: Guards, basePath: string): readonly Resource[] {
  const guarded = { guards: [guards.session], writeGuards: [guards.sameSite] }
  const verbs = makeHandlers(app, basePath)
  return [
    {
      ...guarded,
      path: '/ws/rest/:model',
      handlers: { GET: verbs.find, PUT: verbs.create },
      hint: 'create with PUT, update with POST to the path of the record',
    },
    {
      ...guarded,
      path: '/ws/rest/:model/:id',
      handlers: { GET: verbs.read, POST: verbs.update, DELETE: verbs.remove },
    },
    { ...guarded, path: '/ws/rest/:model/search', handlers: { POST: verbs.search } },
    { ...guarded, path: '/ws/rest/:model/:id/fetch', handlers: { POST: verbs.fetch } },
  ]
}

function makeHandlers(
  app: App,
  basePath: string,
): Record<'find' | 'search' | 'read' | 'fetch' | 'create' | 'update' | 'remove', Handler> {
  const records = (request: FastifyRequest) => recordsFor(app, actorOf(request))
  return {
    find: async (request, reply) => {
      const { model } = request.params as Params
      const page = await records(request).find(model, request.query as Query)
      const link = linksOf(`${basePath}/ws/rest/${model}`, page, request.query as Query)
      if (link !== '') void reply.header('link', link)
      return sendPage(reply, page)
    },
    search: async (request, reply) => {
      const { model } = request.params as Params
      return sendPage(reply, await records(request).search(model, request.body ?? undefined))
    },
    fetch: async (request, reply) => {
      const { model } = request.params as Params
      const wanted = wantedOf(app, request)
      const [body, etag] = print(await records(request).fetch(model, idOf(app, request), wanted))
      return sendJson(reply.header('etag', etag), body)
    },
    read: async (request, reply) => {
      const { model } = request.params as Params
      const record = await records(request).read(model, idOf(app, request))
      const [body, etag] = print(record)
      void reply.header('etag', etag)
      if (matchesAny(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return sendJson(reply, body)
    },
    create: async (request, reply) => {
      const { model } = request.params as Params
      // Before the body is looked at: a model that is not there is 404, whatever was sent.
      app.catalog.get(model)
      return answer(reply, await records(request).create(model, dataOf(request.body), keyOf(request)))
    },
    update: async (request, reply) => {
      const { model } = request.params as Params
      const id = idOf(app, request)
      const options: UpdateOptions = { ...keyOf(request), ...ifMatchOf(request) }
      return answer(reply, await records(request).update(model, id, dataOf(request.body), options))
    },
    remove: async (request, reply) => {
      const { model } = request.params as Params
      const id = idOf(app, request)
      const options: RemoveOptions = { ...keyOf(request), ...ifMatchOf(request), ...versionOf(request) }
      const { data, replayed } = await records(request).remove(model, id, options)
      if (replayed) void reply.header('idempotency-replayed', 'true')
      return sendJson(reply, JSON.stringify({ status: 0, data: [data] }))
    },
  }
}

function sendPage(reply: FastifyReply, { offset, total, data }: Page): FastifyReply {
  return sendJson(reply, JSON.stringify({ status: 0, offset, total, data }))
}

function wantedOf(app: App, request: FastifyRequest): Wanted {
  app.catalog.get((request.params as Params).model)
  const { body } = request
  if (body === undefined || body === null) return {}
  if (!isObject(body))
    throw new Refusal('bad-request', 'The body must be a JSON object with "fields" or "related"')
  return body
}

function answer(reply: FastifyReply, { data, replayed }: Written<WireRecord>): FastifyReply {
  const [body, etag] = print(data)
  if (replayed) void reply.header('idempotency-replayed', 'true')
  return sendJson(reply.header('etag', etag), body)
}

/** The body of one record, and its tag: the version for `If-Match`, all of the body for `If-None-Match`. */
function print(record: WireRecord): [body: string, etag: string] {
  const body = JSON.stringify({ status: 0, data: [record] })
  return [body, `"${record.version}.${hash('sha256', body, 'base64url').slice(0, 16)}"`]
}

function matchesAny(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}

function idOf(app: App, request: FastifyRequest): number {
  const { model, id } = request.params as Params
  const { name } = app.catalog.get(model)
  if (!/^[1-9][0-9]{0,15}$/.test(id) || !Number.isSafeInteger(Number(id))) {
    throw new Refusal('not-found', `There is no ${name} with this id: ids are whole numbers from 1`)
  }
  return Number(id)
}

/** `If-Match: "3"`, or the whole tag of an answer. */
function ifMatchOf(request: FastifyRequest): { readonly ifMatch?: number } {
  const header = request.headers['if-match']
  if (header === undefined) return {}
  const version = /^(?:W\/)?"(\d{1,16})(?:\.[^"]*)?"$/.exec(header.trim())?.[1]
  if (version === undefined) throw new Refusal('bad-request', 'If-Match must name one version, such as "3"')
  return { ifMatch: Number(version) }
}

function versionOf(request: FastifyRequest): { readonly version?: number } {
  const { version } = request.query as Query
  if (version === undefined) return {}
  if (typeof version === 'string' && /^\d{1,16}$/.test(version)) return { version: Number(version) }
  throw new Refusal('bad-request', 'version must be a whole number from 0')
}

function keyOf(request: FastifyRequest): { readonly idempotencyKey?: string } {
  const key = request.headers['idempotency-key']
  if (key === undefined) return {}
  return { idempotencyKey: Array.isArray(key) ? key.join(', ') : key }
}

/** What belongs to the question, and so to every page of the answer. */
const REPEATED = ['fields', 'sortBy', 'filter', 'q', 'archived']

function linksOf(path: string, { offset, limit, total }: Page, query: Query): string {
  if (limit === 0) return ''
  const rest = REPEATED.flatMap((name) => {
    const value = query[name]
    return typeof value === 'string' ? `&${name}=${encodeURIComponent(value)}` : []
  }).join('')
  const last = Math.max(0, Math.floor((total - 1) / limit) * limit)
  const pages = {
    first: 0,
    prev: offset > 0 ? Math.min(Math.max(0, offset - limit), last) : undefined,
    next: offset + limit < total ? offset + limit : undefined,
    last,
  }
  const links = Object.entries(pages).filter(([, start]) => start !== undefined)
  return links
    .map(([rel, start]) => `<${path}?offset=${start}&limit=${limit}${rest}>; rel="${rel}"`)
    .join(', ')
}
