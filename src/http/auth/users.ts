// What administrators do with the accounts of others, besides what they write in their records.
import type { FastifyRequest } from 'fastify'
import { requireUser } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { createResetLink } from '../../service/auth/new-password.js'
import { endSessions, listOpenSessions } from '../../service/auth/open-sessions.js'
import { requireAdmin } from '../../service/access/permission-checks.js'
import { callerOf, type Guards } from '../route/guard.js'
import { idOf } from '../route/record-request.js'
import { answer, type Handler, type Resource } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'

export function userResources(app: App, guards: Guards, settings: HttpSettings): readonly Resource[] {
  const administrator = async (request: FastifyRequest) => {
    requireAdmin(callerOf(request))
  }
  const shared = {
    guards: [guards.session, administrator, guards.parameters],
    writeGuards: [guards.sameSite],
  }
  const userIn = (request: FastifyRequest) => requireUser(app, idOf(app.catalog.user, request))
  const listSessions: Handler = async (request, reply) =>
    answer(reply, await listOpenSessions(app, await userIn(request)))
  const endAll: Handler = async (request, reply) => {
    await endSessions(app, callerOf(request), await userIn(request))
    return answer(reply, [])
  }
  const makeLink: Handler = async (request, reply) => {
    const { token, expiresOn } = await createResetLink(app, callerOf(request), await userIn(request))
    return answer(reply, [{ link: `${baseOf(request, settings)}/reset?token=${token}`, expiresOn }])
  }
  return [
    { ...shared, path: '/ws/users/:id/sessions', handlers: { GET: listSessions, DELETE: endAll } },
    { ...shared, path: '/ws/users/:id/reset', handlers: { POST: makeLink } },
  ]
}

/** Where people reach the service: as it was set, or as the administrator has reached it. */
function baseOf(request: FastifyRequest, { publicUrl, basePath }: HttpSettings): string {
  const origin = publicUrl === undefined ? `${request.protocol}://${request.host}` : new URL(publicUrl).origin
  return origin + basePath
}
