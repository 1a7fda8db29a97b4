// Routes for administrators to create, test and inspect webhooks. Their records are at /ws/rest/verso.feed.Webhook.
import type { FastifyRequest } from 'fastify'
import { parsePageQuery } from '../model/query/search.js'
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
import { sendData, sendJson } from './response/send.js'
import {
  buildAdminRouteDefaults,
  type Resource,
  type RouteContext,
  type RouteHandler,
} from './route/resource.js'

const WEBHOOKS_PATH = '/ws/webhooks'

export function createWebhookResources({ app, guards }: RouteContext): readonly Resource[] {
  const shared = buildAdminRouteDefaults(guards)
  const readWebhookId = (request: FastifyRequest) => readRouteId(app.catalog.get(WEBHOOK_MODEL), request)
  const create: RouteHandler = async (request, reply) => {
    refuseIdempotencyKey(request, 'secret')
    const data = isObject(request.body) ? request.body['data'] : undefined
    return sendData(reply, [withSecret(await createWebhook(requireContext(app, request), data))])
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
    { ...shared, path: WEBHOOKS_PATH, handlers: { POST: create } },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id`,
      handlers: {
        GET: async (request, reply) => sendData(reply, [await readWebhookState(app, readWebhookId(request))]),
      },
    },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/deliveries`,
      readsQueryFor: ['GET'],
      handlers: { GET: getDeliveries },
    },
    { ...shared, path: `${WEBHOOKS_PATH}/:id/secret`, handlers: { POST: rotate } },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/ping`,
      handlers: {
        POST: async (request, reply) =>
          sendData(reply, [await pingWebhook(requireContext(app, request), readWebhookId(request))]),
      },
    },
  ]
}

/** No other response contains the secret. */
function withSecret({ record, secret }: CreatedWebhook): object {
  return { ...record, secret }
}
