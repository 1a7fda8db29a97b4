// Guards authenticate requests and check their origin. They are attached to routes: a check of the URL prefix could be bypassed by another
// spelling of the path.
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { VersoError } from '../../errors.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { createContext, type Context } from '../../service/context/context.js'
import { BasicAuthCache } from '../../service/auth/basic-logins.js'
import type { Principal } from '../../service/context/principal.js'
import { authenticateKey, recordInvalidKey } from '../../service/auth/key-logins.js'
import { authenticate } from '../../service/auth/sessions.js'
import { buildAddressKeys, refuseIfThrottled } from '../../service/auth/throttle.js'
import { requireAdmin, requireKnownModel } from '../../service/access/request-checks.js'
import type { Model } from '../../model/definition/model.js'
import { readApiKey, readBasicCredentials, readSessionId } from '../request/headers.js'
import { refuseParameters } from '../request/parameters.js'
import { isAllowedOrigin, isSameSite } from './origin.js'
import type { HttpSettings } from '../settings.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal that a guard authenticated. Null on public routes. */
    principal: Principal | null
    /** True if the body had not arrived in full when the request was authenticated. */
    isBodyPending: boolean
  }
}

/** Throws or rejects to refuse a request. A guard that needs no database returns at once, without a promise. */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>

export interface Guards {
  /** For routes below /ws: rejects a request without valid credentials with 401, before any other check. */
  readonly requireLogin: Guard
  /** After `requireLogin`: rejects users who are not administrators with 403. */
  readonly requireAdmin: Guard
  /** Authenticates again after a slow body has arrived: the session or the permissions may have changed meanwhile. */
  readonly recheckAfterBody: Guard
  /** For long requests: returns the principal with its current permissions, or fails with 401 once the credentials are no longer valid. */
  readonly reauthenticate: (request: FastifyRequest) => Promise<Principal>
  /** For public routes that return more to authenticated users. */
  readonly allowAnonymous: Guard
  /** For login and password routes: rejects addresses with too many failed attempts, before the body is read. */
  readonly refuseThrottled: Guard
  /** For login, logout and account routes: rejects requests from pages of other sites. */
  readonly requireSameSite: Guard
  /** For every other write: rejects requests from pages of other sites, unless they carry an API key. No browser adds a key by itself. */
  readonly requireSameSiteOrKey: Guard
  /** For routes below /ws: rejects query parameters with 400 if the handler reads none. */
  readonly refuseUnreadParameters: Guard
}

export function createGuards(app: App, settings: HttpSettings): Guards {
  const basicLogins = settings.basicAuth ? new BasicAuthCache(app) : undefined
  // Pages of other origins authenticate by key, never by cookie.
  const readOwnSessionId = (request: FastifyRequest) =>
    isAllowedOrigin(request, settings) ? undefined : readSessionId(request)
  const findCachedPrincipal = (request: FastifyRequest): Principal | undefined => {
    const key = readApiKey(request)
    if (key !== undefined) return app.sessionCache.use('key', key, app.clock.now())
    if (basicLogins && readBasicCredentials(request)) return undefined
    return app.sessionCache.use('session', readOwnSessionId(request), app.clock.now())
  }
  const findPrincipal = async (request: FastifyRequest, isUse = true): Promise<Principal | undefined> => {
    const key = readApiKey(request)
    if (key !== undefined) {
      const principal = await authenticateKey(app, key)
      if (!principal) await recordInvalidKey(app, request.ip)
      // An invalid key does not fall back to the session cookie.
      return principal
    }
    const basic = basicLogins && readBasicCredentials(request)
    if (basic) {
      const user = await basicLogins.authenticate(basic.username, basic.password, request.ip)
      return user && app.authorizer.resolvePrincipal(user)
    }
    return authenticate(app, readOwnSessionId(request), { isUse })
  }
  const requireLogin: Guard = (request) => {
    request.principal = findCachedPrincipal(request) ?? null
    request.isBodyPending = !request.raw.complete
    return request.principal ? undefined : lookUpPrincipal(request)
  }
  const lookUpPrincipal = async (request: FastifyRequest): Promise<void> => {
    request.principal = (await findPrincipal(request)) ?? null
    request.isBodyPending = !request.raw.complete
    if (request.principal) return
    throw new VersoError('unauthenticated', explainUnauthenticated(request, basicLogins !== undefined))
  }
  return {
    requireLogin,
    requireAdmin: (request) => {
      requireAdmin(requirePrincipal(request))
    },
    recheckAfterBody: (request, reply) => (request.isBodyPending ? requireLogin(request, reply) : undefined),
    reauthenticate: async (request) => {
      const principal = await findPrincipal(request, false)
      if (principal) return principal
      throw new VersoError('unauthenticated', explainUnauthenticated(request, basicLogins !== undefined))
    },
    allowAnonymous: async (request) => {
      request.principal = (await findPrincipal(request)) ?? null
    },
    refuseThrottled: async ({ ip }: { readonly ip: string | undefined }) => {
      // A disconnected client has no address, and no client reads the response.
      if (ip !== undefined) await refuseIfThrottled(app, buildAddressKeys(ip), ip)
    },
    requireSameSite: (request) => {
      refuseOtherSite(request, settings)
    },
    requireSameSiteOrKey: (request) => {
      if (readApiKey(request) === undefined) refuseOtherSite(request, settings)
    },
    refuseUnreadParameters: (request) => {
      if (!request.raw.url?.includes('?')) return
      if (settings.compat === 'none' && request.routeOptions.config.readsQuery !== true)
        refuseParameters(request)
    },
  }
}

/** Combines guards into one hook, which runs them one after the other. */
export function runGuards(guards: readonly Guard[]): onRequestHookHandler {
  const runFrom = (
    first: number,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> | undefined => {
    for (let index = first; index < guards.length; index++) {
      const pending = guards[index]?.(request, reply)
      if (pending) return pending.then(() => runFrom(index + 1, request, reply))
    }
    return undefined
  }
  return (request, reply, done) => {
    let pending: Promise<void> | undefined
    try {
      pending = runFrom(0, request, reply)
    } catch (error) {
      done(error as Error)
      return
    }
    if (!pending) done()
    else
      pending.then(
        () => {
          done()
        },
        (error: unknown) => {
          done(error instanceof Error ? error : new Error('a guard failed'))
        },
      )
  }
}

function refuseOtherSite(request: FastifyRequest, settings: HttpSettings): void {
  if (isSameSite(request, settings)) return
  throw new VersoError(
    'forbidden',
    'Cross-site request rejected: a page of another origin needs --allow-origin and an API key; nothing was changed',
  )
}

function explainUnauthenticated(request: FastifyRequest, hasBasic: boolean): string {
  const login = 'Not logged in: send username and password to POST /callback, or send an API key'
  if (readApiKey(request) !== undefined) return 'Unknown or expired API key'
  if (!readBasicCredentials(request)) return login
  return hasBasic
    ? 'Wrong user name or password'
    : `${login}. Basic authentication is off; --basic-auth enables it`
}

export function requirePrincipal(request: FastifyRequest): Principal {
  if (!request.principal) throw new Error(`${request.routeOptions.url ?? 'a route'} has no guard`)
  return request.principal
}

/** Returns the context in which the service acts for the principal of the request. */
export function requireContext(app: App, request: FastifyRequest): Context {
  return createContext(app, requirePrincipal(request))
}

/** Returns the user of the request. Every principal over HTTP has one. */
export function requireUserIdentity(request: FastifyRequest): UserIdentity {
  const { user } = requirePrincipal(request)
  if (!user) throw new Error('an HTTP request has a principal without a user')
  return user
}

/** For routes of the own account: rejects API keys, which may access records only. */
export function requireInteractiveUser(request: FastifyRequest): UserIdentity {
  const user = requireUserIdentity(request)
  if (user.keyId === undefined) return user
  throw new VersoError(
    'forbidden',
    'An API key gives access to records, not to the account of its user: log in with a password',
  )
}

export interface RecordRouteParams {
  readonly model: string
  readonly id: string
}

/** Fails with 404 for an unknown model and for a model that the principal may not know. Call it before the body is checked. */
export function readRouteModel(app: App, request: FastifyRequest): Model {
  return requireKnownModel(app, requirePrincipal(request), (request.params as RecordRouteParams).model)
}

export function readRouteId(model: Model, request: FastifyRequest): number {
  return parseRecordId(model, (request.params as RecordRouteParams).id)
}

/** Parses an optional id of a query string. */
export function parseOptionalRecordId(model: Model, id: unknown): number | undefined {
  return id === undefined ? undefined : parseRecordId(model, typeof id === 'string' ? id : '')
}

function parseRecordId({ name }: Model, id: string): number {
  if (!/^[1-9][0-9]{0,15}$/.test(id) || !Number.isSafeInteger(Number(id))) {
    throw new VersoError('not-found', `This ${name} does not exist: ids are whole numbers from 1`)
  }
  return Number(id)
}
