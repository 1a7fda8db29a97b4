// Who asks, and from where. Guards hang on routes: one that looked at the start of the URL would be passed by another spelling.
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { BasicAuthCache } from '../../service/auth/basic-logins.js'
import type { Principal } from '../../service/context/principal.js'
import { authenticateKey, recordInvalidKey } from '../../service/auth/key-logins.js'
import { authenticate } from '../../service/auth/sessions.js'
import { buildAddressKeys, refuseIfThrottled } from '../../service/auth/throttle.js'
import { readBasicCredentials } from '../request/basic.js'
import { readSessionId } from '../request/cookies.js'
import { readApiKey } from '../request/key-header.js'
import { isLoopback } from '../connection/loopback.js'
import { refuseParameters } from '../request/parameters.js'
import type { HttpSettings } from '../settings.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whoever a guard found; null on routes that are open to all. */
    principal: Principal | null
    /** Whether its body was still on its way when they were found. */
    isBodyPending: boolean
  }
}

type Guard = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export interface Guards {
  /** For routes below /ws: 401 without a session, before anything else is looked at. */
  readonly requireLogin: Guard
  /** Once the body is there: whoever takes their time with it may be nobody by then, or may do less. */
  readonly recheckAfterBody: Guard
  /** For what takes long: whoever it is for, as they are now; 401 once they are nobody. */
  readonly reauthenticate: (request: FastifyRequest) => Promise<Principal>
  /** For routes that are open to all and tell more to those who are known. */
  readonly allowAnonymous: Guard
  /** For what proves who somebody is: not from an address that has failed too often. Before anything of the body is read. */
  readonly refuseThrottled: Guard
  /** For login, logout and all else that is for people: not from another site's page. */
  readonly requireSameSite: Guard
  /** For every other write: the same, unless it comes with a key. No browser sends one by itself, and who sends one is known by it alone. */
  readonly requireSameSiteOrKey: Guard
  /** For routes below /ws: 400 for parameters in the query string, where the handler reads none. */
  readonly refuseUnreadParameters: Guard
}

export function createGuards(app: App, settings: HttpSettings): Guards {
  const basicLogins = settings.basicAuth ? new BasicAuthCache(app) : undefined
  const findPrincipal = async (request: FastifyRequest, isUse = true): Promise<Principal | undefined> => {
    const key = readApiKey(request)
    if (key !== undefined) {
      const principal = await authenticateKey(app, key)
      if (!principal) await recordInvalidKey(app, request.ip)
      // Nobody else, if it is wrong: whoever sends a key does not mean the cookie.
      return principal
    }
    const basic = basicLogins && readBasicCredentials(request)
    if (basic) {
      const user = await basicLogins.authenticate(basic.username, basic.password, request.ip)
      return user && app.authorizer.resolvePrincipal(user)
    }
    // Pages of other origins authenticate by key, never by cookie.
    const sessionId = isAllowedOrigin(request, settings) ? undefined : readSessionId(request)
    return authenticate(app, sessionId, { isUse })
  }
  const requireLogin: Guard = async (request) => {
    request.principal = (await findPrincipal(request)) ?? null
    request.isBodyPending = !request.raw.complete
    if (request.principal) return
    throw new VersoError('unauthenticated', explainUnauthenticated(request, basicLogins !== undefined))
  }
  return {
    requireLogin,
    recheckAfterBody: async (request, reply) => {
      if (request.isBodyPending) await requireLogin(request, reply)
    },
    reauthenticate: async (request) => {
      const principal = await findPrincipal(request, false)
      if (principal) return principal
      throw new VersoError('unauthenticated', explainUnauthenticated(request, basicLogins !== undefined))
    },
    allowAnonymous: async (request) => {
      request.principal = (await findPrincipal(request)) ?? null
    },
    refuseThrottled: async ({ ip }: { readonly ip: string | undefined }) => {
      // A client that has gone has no address any more, and nobody to answer.
      if (ip !== undefined) await refuseIfThrottled(app, buildAddressKeys(ip), ip)
    },
    requireSameSite: async (request) => {
      refuseOtherSite(request, settings)
    },
    requireSameSiteOrKey: async (request) => {
      if (readApiKey(request) === undefined) refuseOtherSite(request, settings)
    },
    refuseUnreadParameters: async (request) => {
      if (settings.compat === 'none' && request.routeOptions.config.readsQuery !== true)
        refuseParameters(request)
    },
  }
}

function refuseOtherSite(request: FastifyRequest, settings: HttpSettings): void {
  if (isSameSite(request, settings)) return
  throw new VersoError('forbidden', 'This request came from a page of another site')
}

function explainUnauthenticated(request: FastifyRequest, hasBasic: boolean): string {
  const login = 'Log in first: POST /callback with username and password'
  if (readApiKey(request) !== undefined) return 'There is no such key, or it is over'
  if (!readBasicCredentials(request)) return login
  return hasBasic
    ? 'The user name or the password is wrong'
    : `${login}. Basic is off here; --basic-auth turns it on`
}

export function requirePrincipal(request: FastifyRequest): Principal {
  if (!request.principal) throw new Error(`${request.routeOptions.url ?? 'a route'} has no guard`)
  return request.principal
}

/** Who has come; over HTTP nobody acts as nobody. */
export function requireUserIdentity(request: FastifyRequest): UserIdentity {
  const { user } = requirePrincipal(request)
  if (!user) throw new Error('whoever comes over HTTP is somebody')
  return user
}

/** For what people do with their own account: a key stands for a part of what its user may do, and has nothing to say there. */
export function requireInteractiveUser(request: FastifyRequest): UserIdentity {
  const user = requireUserIdentity(request)
  if (user.keyId === undefined) return user
  throw new VersoError(
    'forbidden',
    'A key is for records, not for the account of its user: log in with a password',
  )
}

function isSameSite(request: FastifyRequest, settings: HttpSettings): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const { origin } = request.headers
  return origin === undefined || isOwnOrigin(origin, request, settings)
}

function isOwnOrigin(origin: string, request: FastifyRequest, { publicUrl }: HttpSettings): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.host === request.host || (publicUrl !== undefined && url.origin === new URL(publicUrl).origin)
}

/** Whether this comes from a page of another origin that the settings let in. */
export function isAllowedOrigin(request: FastifyRequest, settings: HttpSettings): boolean {
  const { origin } = request.headers
  if (origin === undefined || settings.allowOrigins.length === 0) return false
  return settings.allowOrigins.includes(origin) && !isOwnOrigin(origin, request, settings)
}

export type HostCheck = (request: {
  readonly headers: IncomingHttpHeaders
  readonly raw: { readonly httpVersion: string }
}) => void

/** While only this machine can connect, only names of this machine are answered: a web page must not get in by renaming itself. */
export function createHostCheck(settings: HttpSettings): HostCheck {
  if (!isLoopback(settings.host)) return requireHost
  const publicHostname =
    settings.publicUrl === undefined ? undefined : parseHostname(new URL(settings.publicUrl).host)
  // Nearly every request names the same host as the one before.
  let accepted: string | undefined
  return (request) => {
    requireHost(request)
    const { host } = request.headers
    if (host === accepted) return
    const name = parseHostname(host)
    if (name === undefined || name === publicHostname || isLoopback(name)) {
      accepted = host
      return
    }
    throw new VersoError(
      'misdirected',
      'This service answers to the names of this machine only; see --public-url',
    )
  }
}

const requireHost: HostCheck = ({ headers, raw }) => {
  if (headers.host !== undefined || raw.httpVersion !== '1.1') return
  throw new VersoError('bad-request', 'A request of HTTP/1.1 names its Host')
}

function parseHostname(host: string | undefined): string | undefined {
  if (host === undefined) return undefined
  return host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
    .toLowerCase()
}
