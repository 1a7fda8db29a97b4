import { VersoError } from '../../errors.js'
import type { Clock } from '../../service/context/app.js'

const MINUTE_MS = 60_000
const MAX_BUCKETS = 10_000
/** Looking through all buckets is not to be what a flood of new keys costs. */
const SWEEP_EVERY_MS = 1_000

interface Bucket {
  tokens: number
  /** When it held them. */
  atMs: number
}

/** For each key a bucket that holds the requests of one minute and fills as time goes by. In the memory of this node alone. */
export class RateLimit {
  readonly #buckets = new Map<string | number, Bucket>()
  #sweptMs = -Infinity

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
    this.#fill(bucket, now)
    if (bucket.tokens < 1) {
      const retryAfterS = Math.max(1, Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / this.perMinute / 1000))
      throw new VersoError('too-many', 'Too many requests in a minute (--rate-limit)', { retryAfterS })
    }
    bucket.tokens--
  }

  /** It turned out to be somebody else's request. */
  giveBack(key: string | number): void {
    const bucket = this.#buckets.get(key)
    if (bucket) bucket.tokens = Math.min(this.perMinute, bucket.tokens + 1)
  }

  #add(key: string | number, now: number): Bucket {
    if (this.#buckets.size >= this.maxBuckets) this.#makeRoom(now)
    const bucket = { tokens: this.perMinute, atMs: now }
    this.#buckets.set(key, bucket)
    return bucket
  }

  /** A clock that is put back fills nothing, and takes nothing. */
  #fill(bucket: Bucket, now: number): void {
    const filled = (Math.max(0, now - bucket.atMs) * this.perMinute) / MINUTE_MS
    bucket.tokens = Math.min(this.perMinute, bucket.tokens + filled)
    bucket.atMs = now
  }

  /** A full bucket says no more than none: those go first, and only then the oldest. */
  #makeRoom(now: number): void {
    if (Math.abs(now - this.#sweptMs) >= SWEEP_EVERY_MS) {
      this.#sweptMs = now
      for (const [key, bucket] of this.#buckets) {
        this.#fill(bucket, now)
        if (bucket.tokens >= this.perMinute) this.#buckets.delete(key)
      }
    }
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size >= this.maxBuckets && oldest !== undefined) this.#buckets.delete(oldest)
  }
}
