import { VersoError } from '../../errors.js'
import type { Clock } from '../../service/context/app.js'

const MINUTE_MS = 60_000
const MAX_BUCKETS = 10_000
/** Looking through all buckets is not to be what a flood of new keys costs. */
const SWEEP_INTERVAL_MS = 1_000

interface TokenBucket {
  tokens: number
  /** When it held them. */
  atMs: number
}

/** For each key a bucket that holds the requests of one minute and fills as time goes by. In the memory of this node alone. */
export class RateLimiter {
  readonly #buckets = new Map<string | number, TokenBucket>()
  #lastSweepMs = -Infinity

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
    private readonly maxBuckets = MAX_BUCKETS,
  ) {}

  /** How many buckets are remembered. */
  get size(): number {
    return this.#buckets.size
  }

  take(key: string | number): void {
    const now = this.clock.now()
    const bucket = this.#buckets.get(key) ?? this.#add(key, now)
    this.#refill(bucket, now)
    if (bucket.tokens < 1) {
      const retryAfterS = Math.max(1, Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / this.perMinute / 1000))
      throw new VersoError('too-many', 'Too many requests in a minute (--rate-limit)', { retryAfterS })
    }
    bucket.tokens--
  }

  /** It turned out to be somebody else's request. */
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

  /** A clock that is put back fills nothing, and takes nothing. */
  #refill(bucket: TokenBucket, now: number): void {
    const filled = (Math.max(0, now - bucket.atMs) * this.perMinute) / MINUTE_MS
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + filled)
    bucket.atMs = now
  }

  /** A full bucket says no more than none: those go first, and only then the oldest. */
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
