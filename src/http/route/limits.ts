// Limits of one node: requests in flight, requests per minute by account and address, waiting requests by account.
import type { ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { toNetwork } from '../../service/auth/throttle.js'
import type { Gauges } from '../../store/engine/database.js'
import { BUSY_MESSAGES } from './errors.js'
import type { Guards } from './guard.js'
import { RateLimiter } from '../connection/rate-limit.js'
import type { HttpSettings } from '../settings.js'

/** Every waiting request evaluates its permissions after each commit, so their number is limited. */
const MAX_WAITING_PER_ACCOUNT = 100

export interface RequestLimits {
  /** Rejects a request that exceeds a limit, before authentication and before the body is read. */
  readonly admit: (request: FastifyRequest, reply: FastifyReply) => void
  /** Stops counting a request whose response is closed, or which only waits for changes. */
  readonly release: (reply: FastifyReply) => void
  /** Wraps the guards: authenticated requests count for their account instead of their address. */
  readonly countByAccount: (guards: Guards) => Guards
  /** Counts a request that may wait, by account. Rejects requests beyond `MAX_WAITING_PER_ACCOUNT`. */
  readonly addWaiting: (account: number, reply: FastifyReply) => void
  readonly gauges: () => Gauges
}

export function createRequestLimits({ clock }: App, settings: HttpSettings): RequestLimits {
  const { rateLimitPerMinute, maxConcurrentRequests } = settings
  const inFlight = new RequestsInFlight(maxConcurrentRequests)
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
    const charge = (request: FastifyRequest) => {
      const { user } = request.principal ?? {}
      if (!user) return
      rateLimiters.byAddress.refund(toAddressKey(request))
      rateLimiters.byAccount.take(user.id)
    }
    return (request, reply) => {
      const pending = guard(request, reply)
      if (pending)
        return pending.then(() => {
          charge(request)
        })
      charge(request)
      return undefined
    }
  }
  return {
    admit: (request, reply) => {
      if (inFlight.isFull && !isExemptFromLimits(request))
        throw new VersoError('busy', BUSY_MESSAGES.overloaded, { retryAfterS: 1 })
      if (rateLimiters && !isExemptFromLimits(request)) rateLimiters.byAddress.take(toAddressKey(request))
      inFlight.add(reply.raw)
    },
    countByAccount: (guards) => ({
      ...guards,
      requireLogin: countAccount(guards.requireLogin),
      allowAnonymous: countAccount(guards.allowAnonymous),
    }),
    release: (reply) => {
      inFlight.remove(reply.raw)
    },
    addWaiting: (account, reply) => {
      waiting.add(account, reply.raw)
    },
    gauges: () => ({ requestsInFlight: inFlight.count, requestsWaiting: waiting.size }),
  }
}

/** Counts the requests in flight. */
export class RequestsInFlight {
  #count = 0
  /** A long-lived Set would keep removed responses alive across garbage collections, so this one is weak. */
  readonly #members = new WeakSet<ServerResponse>()

  constructor(private readonly max: number) {}

  get isFull(): boolean {
    return this.#count >= this.max
  }

  get count(): number {
    return this.#count
  }

  /** Counts a request until `remove`. A response that is already destroyed does not emit `close` again, so it is not counted. */
  add(response: ServerResponse): void {
    if (response.destroyed) return
    this.#members.add(response)
    this.#count++
  }

  /** Stops counting a request whose response is closed, or which only waits: long polls and event streams cost almost nothing then. */
  remove(response: ServerResponse): void {
    if (this.#members.delete(response)) this.#count--
  }
}

/** Counts waiting requests by account. They do not count as requests in flight. */
class WaitingRequests {
  readonly #counts = new Map<number, number>()

  constructor(private readonly max: number) {}

  get size(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Counts the request until its response emits `close`. A destroyed response does not emit it again, so it is not counted. */
  add(account: number, response: ServerResponse): void {
    if (response.destroyed) return
    const count = this.#counts.get(account) ?? 0
    if (count >= this.max)
      throw new VersoError(
        'too-many',
        `Too many waiting requests: an account can have ${this.max} long polls and event streams open on a node`,
        {
          retryAfterS: 5,
        },
      )
    this.#counts.set(account, count + 1)
    response.once('close', () => {
      const left = (this.#counts.get(account) ?? 1) - 1
      if (left === 0) this.#counts.delete(account)
      else this.#counts.set(account, left)
    })
  }
}

/** A disconnected client has no address. */
function toAddressKey({ ip }: { readonly ip: string | undefined }): string {
  return toNetwork(ip ?? '')
}

function isExemptFromLimits({ routeOptions }: FastifyRequest): boolean {
  return (routeOptions.config as FastifyContextConfig | undefined)?.isExemptFromLimits === true
}
