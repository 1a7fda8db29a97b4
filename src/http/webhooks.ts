// Webhooks: made, tried and looked at, by administrators. Their records are at /ws/rest/verso.feed.Webhook.
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
import { callerOf, type Guards } from './route/guard.js'
import { idOf } from './route/record-request.js'
import { answer, sendJson, type Handler, type Resource } from './route/resource.js'

const PLACE = '/ws/webhooks'

export function webhookResources(app: App, guards: Guards): readonly Resource[] {
  const administrator = async (request: FastifyRequest) => {
    requireAdmin(callerOf(request))
  }
  const shared = {
    guards: [guards.session, administrator, guards.parameters],
    writeGuards: [guards.sameSite],
  }
  const idIn = (request: FastifyRequest) => idOf(app.catalog.get(WEBHOOK_MODEL), request)
  const make: Handler = async (request, reply) => {
    refuseKey(request)
    const data = isObject(request.body) ? request.body['data'] : undefined
    return answer(reply, [told(await createWebhook(app, callerOf(request), data))])
  }
  const renew: Handler = async (request, reply) => {
    refuseKey(request)
    return answer(reply, [told(await rotateSecret(app, callerOf(request), idIn(request)))])
  }
  const getDeliveries: Handler = async (request, reply) => {
    const page = parsePageQuery(request.query as object, app.settings.maxLimit)
    const { total, data } = await listDeliveries(app, idIn(request), page)
    return sendJson(reply, JSON.stringify({ status: 0, offset: page.offset, total, data }))
  }
  return [
    { ...shared, path: PLACE, handlers: { POST: make } },
    {
      ...{ ...shared, path: `${PLACE}/:id` },
      handlers: {
        GET: async (request, reply) => answer(reply, [await readWebhookState(app, idIn(request))]),
      },
    },
    {
      ...shared,
      path: `${PLACE}/:id/deliveries`,
      withParameters: ['GET'],
      handlers: { GET: getDeliveries },
    },
    { ...shared, path: `${PLACE}/:id/secret`, handlers: { POST: renew } },
    {
      ...{ ...shared, path: `${PLACE}/:id/ping` },
      handlers: {
        POST: async (request, reply) =>
          answer(reply, [await pingWebhook(app, callerOf(request), idIn(request))]),
      },
    },
  ]
}

/** The only answer that has it. */
function told({ record, secret }: CreatedWebhook): object {
  return { ...record, secret }
}

function refuseKey({ headers }: FastifyRequest): void {
  if (headers['idempotency-key'] !== undefined)
    throw new VersoError(
      'bad-request',
      'A secret is shown once: its answer cannot be kept under an Idempotency-Key',
    )
}
