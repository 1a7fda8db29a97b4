// What one node takes: so many requests at once, and so many a minute from each account and each address.
import type { ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { toNetwork } from '../../service/auth/network.js'
import type { Principal } from '../../service/context/principal.js'
import type { Gauges } from '../../store/engine/database.js'
import type { Guards } from './guard.js'
import { LoadMonitor } from '../connection/load.js'
import { RateLimiter } from '../connection/rate-limit.js'
import type { HttpSettings } from '../settings.js'

/** Each asks for itself who may see what, whenever something is committed. */
const MAX_WAITING_PER_ACCOUNT = 100

export interface RequestLimits {
  /** Refuses what is too much, before anything of the request is looked up or read. */
  readonly check: (request: FastifyRequest, reply: FastifyReply) => void
  /** The same guards; who they find is counted by account, and no more by address. */
  readonly countByAccount: (guards: Guards) => Guards
  /** Whether a request of somebody who is known may go on; if not, nothing is counted, and `check` says why. */
  readonly admit: (response: ServerResponse, principal: Principal) => boolean
  /** It is checked again, from the beginning. */
  readonly readmit: (response: ServerResponse, principal: Principal) => void
  /** From here on the request only waits. */
  readonly markWaiting: (reply: FastifyReply) => void
  /** Counts a request that may wait, for its account; refuses those beyond the most. */
  readonly addWaiting: (account: number, reply: FastifyReply) => void
  readonly gauges: () => Gauges
  readonly stop: () => void
}

export function createRequestLimits({ clock }: App, settings: HttpSettings): RequestLimits {
  const { rateLimitPerMinute, maxInFlight, maxLateMs } = settings
  const load = new LoadMonitor(maxInFlight, maxLateMs)
  const waiting = new WaitingRequests(MAX_WAITING_PER_ACCOUNT)
  const rateLimiters =
    rateLimitPerMinute === 0
      ? undefined
      : {
          byAddress: new RateLimiter(rateLimitPerMinute, clock),
          byAccount: new RateLimiter(rateLimitPerMinute, clock),
        }
  const countAccount = (guard: Guards['requireLogin']): Guards['requireLogin'] => {
    if (!rateLimiters) return guard
    return async (request, reply) => {
      await guard(request, reply)
      const { user } = request.principal ?? {}
      if (!user) return
      rateLimiters.byAddress.refund(toAddressKey(request))
      rateLimiters.byAccount.take(user.id)
    }
  }
  return {
    check: (request, reply) => {
      if (load.isOverloaded && !isExemptFromLimits(request))
        throw new VersoError('busy', 'There is too much to do: try again in a moment', { retryAfterS: 1 })
      if (rateLimiters && !isExemptFromLimits(request)) rateLimiters.byAddress.take(toAddressKey(request))
      load.add(reply.raw)
    },
    countByAccount: (guards) => ({
      ...guards,
      requireLogin: countAccount(guards.requireLogin),
      allowAnonymous: countAccount(guards.allowAnonymous),
    }),
    admit: (response, { user }) => {
      if (load.isOverloaded || !user) return false
      try {
        if (rateLimiters) rateLimiters.byAccount.take(user.id)
      } catch {
        return false
      }
      load.add(response)
      return true
    },
    readmit: (response, { user }) => {
      load.remove(response)
      if (user) rateLimiters?.byAccount.refund(user.id)
    },
    markWaiting: (reply) => {
      load.remove(reply.raw)
    },
    addWaiting: (account, reply) => {
      waiting.add(account, reply.raw)
    },
    gauges: () => ({ requestsInFlight: load.inFlight, requestsWaiting: waiting.size }),
    stop: () => {
      load.stop()
    },
  }
}

/** How many wait for each account: they are not counted among the requests under way. */
export class WaitingRequests {
  readonly #counts = new Map<number, number>()

  constructor(private readonly max: number) {}

  get size(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Until the response is closed; one that is closed already would be counted for ever. */
  add(account: number, response: ServerResponse): void {
    if (response.destroyed) return
    const count = this.#counts.get(account) ?? 0
    if (count >= this.max)
      throw new VersoError('too-many', `At most ${this.max} requests of an account wait at once on a node`, {
        retryAfterS: 5,
      })
    this.#counts.set(account, count + 1)
    response.once('close', () => {
      const left = (this.#counts.get(account) ?? 1) - 1
      if (left === 0) this.#counts.delete(account)
      else this.#counts.set(account, left)
    })
  }
}

/** Whoever has gone already has no address any more. */
function toAddressKey({ ip }: { readonly ip: string | undefined }): string {
  return toNetwork(ip ?? '')
}

function isExemptFromLimits({ routeOptions }: FastifyRequest): boolean {
  return (routeOptions.config as FastifyContextConfig | undefined)?.isAlwaysAnswered === true
}
