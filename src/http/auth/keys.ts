// Routes for users to list, create and delete their own API keys. Administrators see all keys at /ws/rest/verso.auth.ApiKey.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import { isObject } from '../../model/values/value.js'
import { listApiKeys, createKey, removeOwnKey } from '../../service/auth/keys.js'
import type { WireRecord } from '../../wire.js'
import { requireContext, requireInteractiveUser, readRouteId } from '../route/guard.js'
import { refuseIdempotencyKey } from '../request/headers.js'
import { sendData, sendJson } from '../response/send.js'
import { buildAccountRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import { ADD_KEY_DOCS, DROP_KEY_DOCS, LIST_KEYS_DOCS } from './account-docs.js'

export function createKeyResources({ app, guards }: RouteContext): readonly Resource[] {
  const shared = buildAccountRouteDefaults(guards)
  return [
    {
      ...shared,
      path: '/ws/me/keys',
      handlers: {
        GET: documented(LIST_KEYS_DOCS, async (request, reply) => {
          const data = (await listApiKeys(app, requireInteractiveUser(request).id)).map(toKeyJson)
          return sendJson(reply, JSON.stringify({ status: 0, total: data.length, data }))
        }),
        POST: documented(ADD_KEY_DOCS, async (request, reply) => {
          const { id: user } = requireInteractiveUser(request)
          refuseIdempotencyKey(request, 'key')
          const { record, key } = await createKey(requireContext(app, request), {
            ...readNewKeyData(request),
            user,
          })
          return sendData(reply, [{ ...toKeyJson(record), key }])
        }),
      },
    },
    {
      ...shared,
      path: '/ws/me/keys/:id',
      handlers: {
        DELETE: documented(DROP_KEY_DOCS, async (request, reply) => {
          requireInteractiveUser(request)
          const id = await removeOwnKey(
            requireContext(app, request),
            readRouteId(app.catalog.get(API_KEY_MODEL), request),
          )
          return sendData(reply, [id])
        }),
      },
    },
  ]
}

function readNewKeyData({ body }: FastifyRequest): Readonly<Record<string, unknown>> {
  const data = isObject(body) ? body['data'] : undefined
  if (!isObject(data)) throw new VersoError('bad-request', 'Send { "data": { "name": … } }')
  if ('user' in data)
    throw new VersoError(
      'invalid',
      'You can create an API key only for yourself: omit "user"; nothing was changed',
      {
        errors: { user: 'cannot be set' },
      },
    )
  return data
}

function toKeyJson(record: WireRecord): object {
  const { id, version, name, prefix, expiresOn, lastUsedOn, createdOn } = record
  const roles = (record['roles'] ?? []) as readonly { readonly name: string }[]
  return {
    id,
    version,
    name,
    prefix,
    expiresOn,
    lastUsedOn,
    createdOn,
    roles: roles.map((role) => role.name),
  }
}
