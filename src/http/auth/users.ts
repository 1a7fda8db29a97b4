// Routes for administrators: sessions and reset links of other users. Their records are at /ws/rest.
import type { FastifyRequest } from 'fastify'
import { requireUser } from '../../service/auth/accounts.js'
import { createResetLink } from '../../service/auth/new-password.js'
import { endSessions, listOpenSessions } from '../../service/auth/sessions.js'
import { requireContext, readRouteId } from '../route/guard.js'
import { sendData } from '../response/send.js'
import {
  buildAdminRouteDefaults,
  documented,
  type Resource,
  type RouteContext,
  type RouteHandler,
} from '../route/resource.js'
import { buildBaseUrl } from '../route/origin.js'
import { END_USER_SESSIONS_DOCS, LIST_USER_SESSIONS_DOCS, MAKE_RESET_LINK_DOCS } from './account-docs.js'

export function createUserResources({ app, guards, settings }: RouteContext): readonly Resource[] {
  const shared = buildAdminRouteDefaults(guards)
  const requireUserFromPath = (request: FastifyRequest) =>
    requireUser(app, readRouteId(app.catalog.user, request))
  const listSessions: RouteHandler = async (request, reply) =>
    sendData(reply, await listOpenSessions(app, await requireUserFromPath(request)))
  const endAll: RouteHandler = async (request, reply) => {
    await endSessions(requireContext(app, request), await requireUserFromPath(request))
    return sendData(reply, [])
  }
  const makeLink: RouteHandler = async (request, reply) => {
    const { token, expiresOn } = await createResetLink(
      requireContext(app, request),
      await requireUserFromPath(request),
    )
    return sendData(reply, [{ link: `${buildBaseUrl(request, settings)}/reset?token=${token}`, expiresOn }])
  }
  return [
    {
      ...shared,
      path: '/ws/users/:id/sessions',
      handlers: {
        GET: documented(LIST_USER_SESSIONS_DOCS, listSessions),
        DELETE: documented(END_USER_SESSIONS_DOCS, endAll),
      },
    },
    {
      ...shared,
      path: '/ws/users/:id/reset',
      handlers: { POST: documented(MAKE_RESET_LINK_DOCS, makeLink) },
    },
  ]
}
