// Routes for administrators to create, test and inspect webhooks. Their records are at /ws/rest/verso.feed.Webhook.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../errors.js'
import { parsePageQuery } from '../model/query/search.js'
import { isObject } from '../model/values/value.js'
import { WEBHOOK_MODEL } from '../model/catalog/webhook-models.js'
import type { App } from '../service/context/app.js'
import { requireAdmin } from '../service/access/permission-checks.js'
import {
  listDeliveries,
  createWebhook,
  pingWebhook,
  rotateSecret,
  readWebhookState,
  type CreatedWebhook,
} from '../service/webhooks/webhooks.js'
import { requirePrincipal, type Guards } from './route/guard.js'
import { readRouteId } from './route/record-request.js'
import { sendData, sendJson, type RouteHandler, type Resource } from './route/resource.js'
import { createContext } from '../service/context/context.js'

const WEBHOOKS_PATH = '/ws/webhooks'

export function createWebhookResources(app: App, guards: Guards): readonly Resource[] {
  const adminGuard = async (request: FastifyRequest) => {
    requireAdmin(requirePrincipal(request))
  }
  const shared = {
    guards: [guards.requireLogin, adminGuard, guards.refuseUnreadParameters],
    writeGuards: [guards.requireSameSite],
  }
  const readWebhookId = (request: FastifyRequest) => readRouteId(app.catalog.get(WEBHOOK_MODEL), request)
  const make: RouteHandler = async (request, reply) => {
    refuseIdempotencyKey(request)
    const data = isObject(request.body) ? request.body['data'] : undefined
    return sendData(reply, [
      withSecret(await createWebhook(createContext(app, requirePrincipal(request)), data)),
    ])
  }
  const renew: RouteHandler = async (request, reply) => {
    refuseIdempotencyKey(request)
    return sendData(reply, [
      withSecret(await rotateSecret(createContext(app, requirePrincipal(request)), readWebhookId(request))),
    ])
  }
  const getDeliveries: RouteHandler = async (request, reply) => {
    const page = parsePageQuery(request.query as object, app.settings.maxLimit)
    const { total, data } = await listDeliveries(app, readWebhookId(request), page)
    return sendJson(reply, JSON.stringify({ status: 0, offset: page.offset, total, data }))
  }
  return [
    { ...shared, path: WEBHOOKS_PATH, handlers: { POST: make } },
    {
      ...{ ...shared, path: `${WEBHOOKS_PATH}/:id` },
      handlers: {
        GET: async (request, reply) => sendData(reply, [await readWebhookState(app, readWebhookId(request))]),
      },
    },
    {
      ...shared,
      path: `${WEBHOOKS_PATH}/:id/deliveries`,
      withParameters: ['GET'],
      handlers: { GET: getDeliveries },
    },
    { ...shared, path: `${WEBHOOKS_PATH}/:id/secret`, handlers: { POST: renew } },
    {
      ...{ ...shared, path: `${WEBHOOKS_PATH}/:id/ping` },
      handlers: {
        POST: async (request, reply) =>
          sendData(reply, [
            await pingWebhook(createContext(app, requirePrincipal(request)), readWebhookId(request)),
          ]),
      },
    },
  ]
}

/** No other response contains the secret. */
function withSecret({ record, secret }: CreatedWebhook): object {
  return { ...record, secret }
}

function refuseIdempotencyKey({ headers }: FastifyRequest): void {
  if (headers['idempotency-key'] !== undefined)
    throw new VersoError(
      'bad-request',
      'A secret is shown once: its answer cannot be kept under an Idempotency-Key',
    )
}
