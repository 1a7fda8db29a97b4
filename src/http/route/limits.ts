// Limits of one node: requests in flight, event-loop delay, requests per minute by account and address, waiting requests by account.
import type { ServerResponse } from 'node:http'
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { toNetwork } from '../../service/auth/throttle.js'
import type { Gauges } from '../../store/engine/database.js'
import type { Guards } from './guard.js'
import { RateLimiter } from '../connection/rate-limit.js'
import type { HttpSettings } from '../settings.js'

const LAG_CHECK_INTERVAL_MS = 500
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
  readonly stop: () => void
}

export function createRequestLimits({ clock }: App, settings: HttpSettings): RequestLimits {
  const { rateLimitPerMinute, maxConcurrentRequests, maxEventLoopDelayMs } = settings
  const load = new LoadMonitor(maxConcurrentRequests, maxEventLoopDelayMs)
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
      if (load.isOverloaded && !isExemptFromLimits(request))
        throw new VersoError(
          'busy',
          'The server is overloaded: retry after the seconds in Retry-After; nothing was changed',
          { retryAfterS: 1 },
        )
      if (rateLimiters && !isExemptFromLimits(request)) rateLimiters.byAddress.take(toAddressKey(request))
      load.add(reply.raw)
    },
    countByAccount: (guards) => ({
      ...guards,
      requireLogin: countAccount(guards.requireLogin),
      allowAnonymous: countAccount(guards.allowAnonymous),
    }),
    release: (reply) => {
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

/** Measures the load of this process: requests in flight and event-loop delay. */
export class LoadMonitor {
  #inFlight = 0
  /** A long-lived Set would keep removed responses alive across garbage collections, so this one is weak. */
  readonly #counted = new WeakSet<ServerResponse>()
  #isLagging = false
  readonly #timer: NodeJS.Timeout | undefined

  /** A `maxEventLoopDelayMs` of 0 disables the check of the event-loop delay. */
  constructor(
    private readonly maxConcurrentRequests: number,
    maxEventLoopDelayMs: number,
  ) {
    if (maxEventLoopDelayMs === 0) return
    let due = performance.now() + LAG_CHECK_INTERVAL_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.#isLagging = now - due > maxEventLoopDelayMs
      due = now + LAG_CHECK_INTERVAL_MS
    }, LAG_CHECK_INTERVAL_MS).unref()
  }

  get isOverloaded(): boolean {
    return this.#inFlight >= this.maxConcurrentRequests || this.#isLagging
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Counts a request until `remove`. A response that is already destroyed does not emit `close` again, so it is not counted. */
  add(response: ServerResponse): void {
    if (response.destroyed) return
    this.#counted.add(response)
    this.#inFlight++
  }

  /** Stops counting a request whose response is closed, or which only waits: long polls and event streams cost almost nothing then. */
  remove(response: ServerResponse): void {
    if (this.#counted.delete(response)) this.#inFlight--
  }

  stop(): void {
    clearInterval(this.#timer)
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
