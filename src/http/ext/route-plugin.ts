// Routes of an application: Fastify plugins whose routes say who may call them.
import type { FastifyInstance } from 'fastify'
import { ConfigError } from '../../errors.js'
import type { UserSummary } from '../../model/definition/hooks.js'
import type { RecordsHandle } from '../../model/definition/typed-records.js'
import type { OperationAccess } from '../route/documentation.js'

/**
 * A Fastify plugin. The service registers its routes below `/ext`. Every route names its `access`.
 *
 * @example
 * const reports: RoutePlugin = async (fastify) => {
 *   fastify.get('/report', { config: { access: 'login' } }, async () => ({ open: 3 }))
 * }
 */
export type RoutePlugin = (
  fastify: FastifyInstance,
  options: Readonly<Record<string, unknown>>,
  done: (error?: Error) => void,
) => Promise<void> | void

// A registered symbol is the same in every copy of this module that a file may load.
const ROUTES_MARKER = Symbol.for('verso.routes')

/**
 * Marks a plugin, so that `--routes` serves it from any export of a file. Returns the plugin.
 *
 * @example
 * export const reports = defineRoutes(async (fastify) => {
 *   fastify.get('/report', { config: { access: 'login' } }, async (request) => {
 *     const { total } = await request.verso.records.of(Task).find({ filter: { state: 'open' } })
 *     return { open: total }
 *   })
 * })
 */
export function defineRoutes(plugin: RoutePlugin): RoutePlugin {
  if (!isCallable(plugin))
    throw new ConfigError('Routes are invalid', [
      'defineRoutes takes a function: defineRoutes(async (fastify) => { … })',
    ])
  return Object.defineProperty(plugin, ROUTES_MARKER, { value: true })
}

/** Returns true for what `defineRoutes` returned. */
export function isDefinedRoutes(value: unknown): value is RoutePlugin {
  return typeof value === 'function' && ROUTES_MARKER in value
}

/** A class is a function too, but it cannot be called. */
export function isCallable(value: unknown): value is RoutePlugin {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value))
}

/** The callers that a route admits: `admin` only administrators, `login` every user, `public` everybody. */
export type RouteAccess = Exclude<OperationAccess, 'password'>

export const ROUTE_ACCESSES = ['public', 'login', 'admin'] as const satisfies readonly RouteAccess[]

/** The user of a request and the records that the user may access, as `request.verso`. */
export interface VersoRequest {
  /** Null on a public route if the caller is not logged in. */
  readonly user: UserSummary | null
  /**
   * Reads and writes with the permissions of the user; `records.asSystem()` permits everything. Without a user, only `records.asSystem()`
   * works, and the service is the author of its changes.
   */
  readonly records: RecordsHandle
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller of a route below `/ext`. */
    verso: VersoRequest
  }
  interface FastifyContextConfig {
    /** The callers that a route below `/ext` admits. A route without this option stops the start. */
    readonly access?: RouteAccess
  }
  // These types equal those of @fastify/swagger, which may be installed beside this package.
  interface FastifySchema {
    /** Hides the route from the API documents. */
    hide?: boolean
    summary?: string
    description?: string
    tags?: readonly string[]
  }
}
