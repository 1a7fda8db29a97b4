// Checks that every route below /ext says who may call it, and guards it.
import type { FastifyRequest, RouteOptions } from 'fastify'
import { didYouMean } from '../../model/values/did-you-mean.js'
import type { Guard, Guards } from '../route/guard.js'
import { ROUTE_ACCESSES, type RouteAccess } from './route-plugin.js'

/** These methods change nothing, so a page of another site may send them. The browser hides the answer from it. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

const ACCESS_ADVICE = `add config: { access: 'login' } to its options; 'admin' lets administrators in, 'public' lets everybody in`

/** Returns the problem of a route, or undefined. `root` is the path below which all routes must be. */
export function findRouteProblem({ method, url, config }: RouteOptions, root: string): string | undefined {
  const methods = [method].flat()
  const name = `${methods.length > 3 ? 'ALL' : methods.join(', ')} ${url}`
  if (url !== root && !url.startsWith(`${root}/`))
    return `${name} is not below ${root}: begin its path with /`
  if (url.split('/').some((part) => part === '..' || part === '.'))
    return `${name} is not below ${root}: remove the dots from its path`
  const access: unknown = config?.access
  if (access === undefined) return `${name} has no access: ${ACCESS_ADVICE}`
  if (isRouteAccess(access)) return undefined
  const word = typeof access === 'string' ? access : JSON.stringify(access)
  return `${name} has the unknown access "${word}"${didYouMean(word, ROUTE_ACCESSES)}: ${ACCESS_ADVICE}`
}

function isRouteAccess(access: unknown): access is RouteAccess {
  return ROUTE_ACCESSES.some((known) => known === access)
}

/**
 * Returns the guard of all routes below /ext. It reads the access of the route that the router has found, so another spelling of a path
 * cannot avoid it.
 */
export function createRouteGuard(guards: Guards): Guard {
  const requireUser: Guard = async (request, reply) => {
    if (isWrite(request)) await guards.requireSameSiteOrKey(request, reply)
    await guards.requireLogin(request, reply)
  }
  const guardByAccess: Readonly<Record<RouteAccess, Guard>> = {
    login: requireUser,
    admin: async (request, reply) => {
      await requireUser(request, reply)
      await guards.requireAdmin(request, reply)
    },
    public: async (request, reply) => {
      await guards.allowAnonymous(request, reply)
      if (!request.principal) return
      // A browser has sent the session, possibly for a page of another site.
      if (isWrite(request)) await guards.requireSameSiteOrKey(request, reply)
      request.isBodyPending = !request.raw.complete
    },
  }
  return (request, reply) => {
    if (request.is404) return undefined
    return guardByAccess[readAccess(request)](request, reply)
  }
}

/** Returns the guard that runs after the body has arrived: `recheckAfterBody` may have found other permissions. */
export function createBodyGuard({ requireAdmin }: Guards): Guard {
  return (request, reply) =>
    !request.is404 && readAccess(request) === 'admin' ? requireAdmin(request, reply) : undefined
}

/** The start has checked all routes. A hook of a plugin may change them afterwards. */
function readAccess({ routeOptions }: FastifyRequest): RouteAccess {
  const { access } = routeOptions.config
  if (isRouteAccess(access)) return access
  throw new Error(`${routeOptions.url ?? 'a route'} has lost its access`)
}

function isWrite({ method }: FastifyRequest): boolean {
  return !SAFE_METHODS.has(method)
}
