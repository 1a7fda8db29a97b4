// Routes for administrators to create, test and inspect webhooks. Their records are at /ws/rest/verso.feed.Webhook.
import type { FastifyRequest } from 'fastify'
import { PAGING_PARAMETERS, parsePageQuery } from '../model/query/search.js'
import { isObject } from '../model/values/value.js'
import { WEBHOOK_MODEL } from '../model/catalog/webhook-models.js'
import {
  listDeliveries,
  createWebhook,
  pingWebhook,
  rotateSecret,
  readWebhookState,
  type CreatedWebhook,
} from '../service/webhooks/webhooks.js'
import { requireContext, readRouteId } from './route/guard.js'
import { refuseIdempotencyKey } from './request/headers.js'
import { sendData, sendJson, setHeader } from './response/send.js'
import {
  answerWithList,
  BODY_ERRORS,
  bodyWithData,
  COUNT_SCHEMA,
  LOGIN_ERRORS,
  refTo,
  type OperationDocs,
} from './route/documentation.js'
import {
  buildAdminRouteDefaults,
  documented,
  type Resource,
  type RouteContext,
  type RouteHandler,
} from './route/resource.js'

const WEBHOOKS_PATH = '/ws/webhooks'

export function createWebhookResources({ app, guards, settings }: RouteContext): readonly Resource[] {
  const shared = buildAdminRouteDefaults(guards)
  const readWebhookId = (request: FastifyRequest) => readRouteId(app.catalog.get(WEBHOOK_MODEL), request)
  const create: RouteHandler = async (request, reply) => {
    refuseIdempotencyKey(request, 'secret')
    const data = isObject(request.body) ? request.body['data'] : undefined
    const created = await createWebhook(requireContext(app, request), data)
    setHeader(reply, 'location', `${settings.basePath}${WEBHOOKS_PATH}/${created.record.id}`)
    return sendData(reply, [withSecret(created)])
  }
  const rotate: RouteHandler = async (request, reply) => {
    refuseIdempotencyKey(request, 'secret')
    return sendData(reply, [
      withSecret(await rotateSecret(requireContext(app, request), readWebhookId(request))),
    ])
  }
  const getDeliveries: RouteHandler = async (request, reply) => {
    const page = parsePageQuery(request.query as object, app.settings.maxPageSize)
    const { total, data } = await listDeliveries(app, readWebhookId(request), page)
    return sendJson(reply, JSON.stringify({ status: 0, offset: page.offset, total, data }))
  }
  return [
    { ...shared, path: WEBHOOKS_PATH, handlers: { POST: documented(ADD_WEBHOOK_DOCS, create) } },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id`,
      handlers: {
        GET: documented(WEBHOOK_STATE_DOCS, async (request, reply) =>
          sendData(reply, [await readWebhookState(app, readWebhookId(request))]),
        ),
      },
    },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/deliveries`,
      readsQueryFor: ['GET'],
      handlers: { GET: documented(DELIVERIES_DOCS, getDeliveries) },
    },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/secret`,
      handlers: { POST: documented(ROTATE_SECRET_DOCS, rotate) },
    },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/ping`,
      handlers: {
        POST: documented(PING_DOCS, async (request, reply) =>
          sendData(reply, [await pingWebhook(requireContext(app, request), readWebhookId(request))]),
        ),
      },
    },
  ]
}

/** No other response contains the secret. */
function withSecret({ record, secret }: CreatedWebhook): object {
  return { ...record, secret }
}

const ADMIN = { group: 'Administration', access: 'admin' } as const
const TIME = { type: ['string', 'null'], format: 'date-time' }
const WITH_SECRET = answerWithList('The webhook with its secret, which no other answer contains.', {
  type: 'object',
  required: ['id', 'version', 'secret'],
  additionalProperties: true,
  properties: { id: refTo('VersoId'), version: COUNT_SCHEMA, secret: { type: 'string' } },
})
const DELIVERY = {
  type: 'object',
  required: ['message', 'on', 'ms', 'attempt', 'changes', 'first', 'last', 'status', 'error'],
  properties: {
    message: { type: 'string' },
    on: { type: 'string', format: 'date-time' },
    ms: { type: 'number' },
    attempt: { type: 'integer' },
    changes: COUNT_SCHEMA,
    first: { type: ['integer', 'null'] },
    last: { type: ['integer', 'null'] },
    status: {
      type: ['integer', 'null'],
      description: 'The HTTP status of the receiver; null without an answer.',
    },
    error: { type: ['string', 'null'] },
  },
}

const ADD_WEBHOOK_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'addWebhook',
  summary: 'Create a webhook',
  body: bodyWithData(
    {
      type: 'object',
      required: ['name', 'url'],
      properties: { name: { type: 'string' }, url: { type: 'string' } },
      additionalProperties: true,
    },
    { data: { name: 'warehouse', url: 'https://hooks.example.com/changes' } },
  ),
  answers: { 200: { ...WITH_SECRET, headers: ['Location'] } },
  errors: [...LOGIN_ERRORS, ...BODY_ERRORS, 'invalid', 'not-unique'],
}

const WEBHOOK_STATE_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'showWebhookState',
  summary: 'Show the progress of a webhook',
  answers: {
    200: answerWithList('The state of its deliveries.', {
      type: 'object',
      required: ['id', 'paused', 'position', 'last', 'lag', 'failures', 'nextAttemptOn'],
      properties: {
        id: refTo('VersoId'),
        paused: { type: 'boolean' },
        position: COUNT_SCHEMA,
        last: COUNT_SCHEMA,
        lag: COUNT_SCHEMA,
        failures: COUNT_SCHEMA,
        nextAttemptOn: TIME,
      },
    }),
  },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

const DELIVERIES_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'listDeliveries',
  summary: 'List the deliveries of a webhook',
  query: PAGING_PARAMETERS,
  answers: {
    200: answerWithList('Deliveries, newest first.', DELIVERY, {
      others: { offset: COUNT_SCHEMA, total: COUNT_SCHEMA },
    }),
  },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

const ROTATE_SECRET_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'rotateWebhookSecret',
  summary: 'Replace the secret of a webhook',
  answers: { 200: WITH_SECRET },
  errors: [...LOGIN_ERRORS, 'not-found'],
}

const PING_DOCS: OperationDocs = {
  ...ADMIN,
  id: 'pingWebhook',
  summary: 'Send a call to the receiver of a webhook',
  answers: { 200: answerWithList('The result of the call.', DELIVERY) },
  errors: [...LOGIN_ERRORS, 'not-found'],
}
