// One's own account: who somebody is here, their password, their sessions.
import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { changeOwnPassword } from '../../service/auth/new-password.js'
import { endSession, endSessions, listOpenSessions } from '../../service/auth/open-sessions.js'
import { readOwnAccount, type OwnAccount } from '../../service/auth/own-account.js'
import { hashToken } from '../../service/auth/tokens.js'
import { basicCredentialsOf } from '../request/basic.js'
import { sessionIdOf } from '../request/cookies.js'
import { actorIn, callerOf, personIn, type Guards } from '../route/guard.js'
import { answer, type Handler, type Resource } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'

export function meResources(app: App, guards: Guards, settings: HttpSettings): readonly Resource[] {
  const shared = { guards: [guards.session, guards.parameters], writeGuards: [guards.sameSite] }
  const currentOf = (request: FastifyRequest) => currentSession(request, viaOf(request, settings))
  const show: Handler = async (request, reply) => {
    const account = await readOwnAccount(app, callerOf(request), actorIn(request), viaOf(request, settings))
    return answer(reply, [account])
  }
  const changePassword: Handler = async (request, reply) => {
    const sent = { ...passwordsIn(request.body), address: request.ip, session: currentOf(request) }
    await changeOwnPassword(app, actorIn(request), callerOf(request), sent)
    return answer(reply, [])
  }
  const listSessions: Handler = async (request, reply) =>
    answer(reply, await listOpenSessions(app, personIn(request).id, currentOf(request)))
  const endOthers: Handler = async (request, reply) => {
    const { id } = personIn(request)
    // Who has no session of their own here ends them all.
    await endSessions(app, callerOf(request), id, currentOf(request))
    return answer(reply, [])
  }
  const endOne: Handler = async (request, reply) => {
    const { id } = request.params as { readonly id: string }
    await endSession(app, callerOf(request), personIn(request).id, id)
    return answer(reply, [])
  }
  return [
    { ...shared, path: '/ws/me', handlers: { GET: show } },
    { ...shared, path: '/ws/me/password', handlers: { POST: changePassword } },
    { ...shared, path: '/ws/me/sessions', handlers: { GET: listSessions, DELETE: endOthers } },
    { ...shared, path: '/ws/me/sessions/:id', handlers: { DELETE: endOne } },
  ]
}

function viaOf(request: FastifyRequest, { basicAuth }: HttpSettings): OwnAccount['via'] {
  if (actorIn(request).keyId !== undefined) return 'key'
  return basicAuth && basicCredentialsOf(request) ? 'basic' : 'session'
}

function currentSession(request: FastifyRequest, via: OwnAccount['via']): string | undefined {
  const id = via === 'session' ? sessionIdOf(request) : undefined
  return id === undefined ? undefined : hashToken(id)
}

/** In `data` as everywhere, or bare. */
function passwordsIn(body: unknown): { readonly old: unknown; readonly new: unknown } {
  const data = isObject(body) && isObject(body['data']) ? body['data'] : body
  if (isObject(data) && typeof data['old'] === 'string' && typeof data['new'] === 'string')
    return { old: data['old'], new: data['new'] }
  throw new VersoError('bad-request', 'Send { "data": { "old": "…", "new": "…" } }: both passwords, as text')
}
