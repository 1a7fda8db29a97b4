import { VersoError } from '../../errors.js'
import type { Clock } from '../../service/context/app.js'
import { MINUTE_MS } from '../../service/context/settings.js'

const MAX_BUCKETS = 10_000
/** A flood of new keys must not trigger a scan of all buckets for each of them. */
const SWEEP_INTERVAL_MS = 1_000

interface TokenBucket {
  tokens: number
  /** Time at which `tokens` was correct. */
  atMs: number
}

/** A token bucket for each key: it holds the requests of one minute and refills continuously. Buckets live in the memory of one node. */
export class RateLimiter {
  readonly #buckets = new Map<string | number, TokenBucket>()
  #lastSweepMs = -Infinity

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
    private readonly maxBuckets = MAX_BUCKETS,
  ) {}

  /** Number of buckets in memory. */
  get size(): number {
    return this.#buckets.size
  }

  take(key: string | number): void {
    const now = this.clock.now()
    const bucket = this.#buckets.get(key) ?? this.#add(key, now)
    this.#refill(bucket, now)
    if (bucket.tokens < 1) {
      const retryAfterS = Math.max(1, Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / this.perMinute / 1000))
      throw new VersoError(
        'too-many',
        'Rate limit exceeded (--rate-limit, requests per minute): retry after the seconds in Retry-After; nothing was changed',
        { retryAfterS },
      )
    }
    bucket.tokens--
  }

  /** Gives a token back when the request is charged to another key. */
  refund(key: string | number): void {
    const bucket = this.#buckets.get(key)
    if (bucket) bucket.tokens = Math.min(this.perMinute, bucket.tokens + 1)
  }

  #add(key: string | number, now: number): TokenBucket {
    if (this.#buckets.size >= this.maxBuckets) this.#evict(now)
    const bucket = { tokens: this.perMinute, atMs: now }
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** A clock that is set back neither adds nor removes tokens. */
  #refill(bucket: TokenBucket, now: number): void {
    const filled = (Math.max(0, now - bucket.atMs) * this.perMinute) / MINUTE_MS
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + filled)
    bucket.atMs = now
  }

  /** Drops full buckets, which hold no information. If all are in use, it drops the oldest. */
  #evict(now: number): void {
    if (Math.abs(now - this.#lastSweepMs) >= SWEEP_INTERVAL_MS) {
      this.#lastSweepMs = now
      for (const [key, bucket] of this.#buckets) {
        this.#refill(bucket, now)
        if (bucket.tokens >= this.perMinute) this.#buckets.delete(key)
      }
    }
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size >= this.maxBuckets && oldest !== undefined) this.#buckets.delete(oldest)
  }
}
