import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import { toAccount } from '../../service/context/identity.js'
import { login, logout } from '../../service/auth/sessions.js'
import {
  clearSessionCookies,
  readBasicCredentials,
  readSessionId,
  setSessionCookies,
} from '../request/headers.js'
import { acceptsHtml } from '../assets/page.js'
import { sendData, sendRedirect, type SentReply } from '../response/send.js'
import { documented, type Resource, type RouteContext, type RouteHandler } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'
import { LOGIN_DOCS, LOGOUT_BY_GET_DOCS, LOGOUT_DOCS, OLD_LOGIN_DOCS } from './session-docs.js'

/** Both paths accept JSON or a form; see `acceptCredentials`. */
export function createLoginResources({ app, guards, settings }: RouteContext): readonly Resource[] {
  const { basicAuth } = settings
  const cookiePath = getCookiePath(settings)
  const POST: RouteHandler = async (request, reply) => {
    const body = isObject(request.body) ? request.body : {}
    const isInBody = body['username'] !== undefined || body['password'] !== undefined
    const credentials = (basicAuth && !isInBody && readBasicCredentials(request)) || body
    const { sessionId, user } = await login(app, credentials, {
      address: request.ip,
      oldSessionId: readSessionId(request),
      agent: request.headers['user-agent'],
    })
    setSessionCookies(request, reply, cookiePath, {
      sessionId,
      csrfToken: randomBytes(24).toString('base64url'),
    })
    const { roles } = await app.authorizer.resolvePrincipal(user)
    return sendData(reply, [toAccount(user, roles)])
  }
  const writeGuards = [guards.requireSameSite, guards.refuseThrottled]
  const shared = { guards: [], writeGuards }
  return [
    { ...shared, path: '/callback', handlers: { POST: documented(LOGIN_DOCS, POST) } },
    { ...shared, path: '/login.jsp', handlers: { POST: documented(OLD_LOGIN_DOCS, POST) } },
  ]
}

export function createLogoutResource({ app, guards, settings }: RouteContext): Resource {
  const cookiePath = getCookiePath(settings)
  const logOut: RouteHandler = async (request, reply) => {
    refusePrefetch(request)
    await logout(app, readSessionId(request), request.ip)
    clearSessionCookies(reply, cookiePath)
    return isNavigation(request) ? redirectToRoot(reply, cookiePath) : sendData(reply, [])
  }
  // The GET has side effects, so it is guarded like a write and has no HEAD.
  return {
    path: '/logout',
    guards: [guards.requireSameSite],
    handlers: { GET: documented(LOGOUT_BY_GET_DOCS, logOut), POST: documented(LOGOUT_DOCS, logOut) },
    hasHead: false,
    isExemptFromLimits: true,
  }
}

function getCookiePath({ basePath }: HttpSettings): string {
  return basePath === '' ? '/' : basePath
}

function isNavigation(request: FastifyRequest): boolean {
  return request.method === 'GET' && acceptsHtml(request)
}

function redirectToRoot(reply: FastifyReply, cookiePath: string): SentReply {
  return sendRedirect(reply, cookiePath === '/' ? '/' : `${cookiePath}/`)
}

/** A browser that prefetches links must not log the user out. */
function refusePrefetch({ headers }: FastifyRequest): void {
  const purpose = [headers['sec-purpose'], headers['purpose'], headers['x-moz']].join(' ').toLowerCase()
  if (purpose.includes('prefetch') || purpose.includes('prerender')) {
    throw new VersoError('forbidden', 'A prefetch request cannot log out; the session stays open')
  }
}
