// Mutants of the routes below /ext: one guard less, or a route that needs no access.
import type { RouteOptions } from 'fastify'
import type { RoutePlugin } from '../../src/http/ext/route-plugin.js'
import type { Guards } from '../../src/http/route/guard.js'

export type GuardMistake = (guards: Guards) => Guards

/** Lets everybody in. */
export const withoutLogin: GuardMistake = (guards) => ({
  ...guards,
  requireLogin: guards.allowAnonymous,
  requireAdmin: () => undefined,
})

/** Lets every user into the routes of administrators. */
export const withoutAdmin: GuardMistake = (guards) => ({ ...guards, requireAdmin: () => undefined })

/** Lets pages of other sites write with the session of their visitor. */
export const withoutSiteCheck: GuardMistake = (guards) => ({
  ...guards,
  requireSameSiteOrKey: () => undefined,
})

/** A route without an access is for every user. */
export function withDefaultAccess(plugin: RoutePlugin): RoutePlugin {
  return async (fastify) => {
    const route = fastify.route.bind(fastify)
    const addAccess = (options: RouteOptions) =>
      route({ ...options, config: { access: 'login', ...options.config } })
    const changed = new Proxy(fastify, {
      get: (target, name) => {
        if (name === 'route') return addAccess
        if (name === 'get')
          return (url: string, handler: RouteOptions['handler']) => addAccess({ method: 'GET', url, handler })
        return Reflect.get(target, name) as unknown
      },
    })
    await plugin(changed, {}, () => undefined)
  }
}
