// Routes of the own account: identity, password, sessions.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import { changeOwnPassword } from '../../service/auth/new-password.js'
import { endSession, endSessions, listOpenSessions } from '../../service/auth/sessions.js'
import { readOwnAccount, type OwnAccount } from '../../service/auth/own-account.js'
import { hashToken } from '../../service/auth/tokens.js'
import { readBasicCredentials, readSessionId } from '../request/headers.js'
import {
  requireUserIdentity,
  requireContext,
  requirePrincipal,
  requireInteractiveUser,
} from '../route/guard.js'
import { sendData } from '../response/send.js'
import {
  buildAccountRouteDefaults,
  documented,
  type Resource,
  type RouteContext,
  type RouteHandler,
} from '../route/resource.js'
import type { HttpSettings } from '../settings.js'
import * as docs from './account-docs.js'

export function createOwnAccountResources({ app, guards, settings }: RouteContext): readonly Resource[] {
  const shared = buildAccountRouteDefaults(guards)
  const findSessionHash = (request: FastifyRequest) =>
    hashCurrentSession(request, detectLoginMethod(request, settings))
  const show: RouteHandler = async (request, reply) => {
    const account = await readOwnAccount(
      requireContext(app, request),
      requireUserIdentity(request),
      detectLoginMethod(request, settings),
    )
    return sendData(reply, [account])
  }
  const changePassword: RouteHandler = async (request, reply) => {
    const passwordChange = {
      ...readPasswords(request.body),
      address: request.ip,
      session: findSessionHash(request),
    }
    await changeOwnPassword(app, requireUserIdentity(request), requirePrincipal(request), passwordChange)
    return sendData(reply, [])
  }
  const listSessions: RouteHandler = async (request, reply) =>
    sendData(reply, await listOpenSessions(app, requireInteractiveUser(request).id, findSessionHash(request)))
  const endOthers: RouteHandler = async (request, reply) => {
    const { id } = requireInteractiveUser(request)
    // A request without a session (Basic) ends all sessions.
    await endSessions(requireContext(app, request), id, findSessionHash(request))
    return sendData(reply, [])
  }
  const endOne: RouteHandler = async (request, reply) => {
    const { session } = request.params as { readonly session: string }
    await endSession(requireContext(app, request), requireInteractiveUser(request).id, session)
    return sendData(reply, [])
  }
  return [
    { ...shared, path: '/ws/me', handlers: { GET: documented(docs.SHOW_ACCOUNT_DOCS, show) } },
    {
      ...shared,
      path: '/ws/me/password',
      handlers: { POST: documented(docs.CHANGE_PASSWORD_DOCS, changePassword) },
    },
    {
      ...shared,
      path: '/ws/me/sessions',
      handlers: {
        GET: documented(docs.LIST_SESSIONS_DOCS, listSessions),
        DELETE: documented(docs.END_OTHER_SESSIONS_DOCS, endOthers),
      },
    },
    {
      ...shared,
      path: '/ws/me/sessions/:session',
      handlers: { DELETE: documented(docs.END_SESSION_DOCS, endOne) },
    },
  ]
}

function detectLoginMethod(request: FastifyRequest, { basicAuth }: HttpSettings): OwnAccount['via'] {
  if (requireUserIdentity(request).keyId !== undefined) return 'key'
  return basicAuth && readBasicCredentials(request) ? 'basic' : 'session'
}

function hashCurrentSession(request: FastifyRequest, via: OwnAccount['via']): string | undefined {
  const id = via === 'session' ? readSessionId(request) : undefined
  return id === undefined ? undefined : hashToken(id)
}

/** Reads both passwords from `data`, or from the top level of the body. */
function readPasswords(body: unknown): { readonly old: unknown; readonly new: unknown } {
  const data = isObject(body) && isObject(body['data']) ? body['data'] : body
  if (isObject(data) && typeof data['old'] === 'string' && typeof data['new'] === 'string')
    return { old: data['old'], new: data['new'] }
  throw new VersoError(
    'bad-request',
    'Send both passwords as strings: { "data": { "old": "…", "new": "…" } }',
  )
}
