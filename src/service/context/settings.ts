import { MAX_PAGE_RECORDS } from '../../model/query/search.js'

export interface Settings {
  /** `sqlite:path` or `postgres://…` */
  readonly db: string
  /** The sample: an account with a known password, and no lock-out. */
  readonly isDemo: boolean
  readonly maxLimit: number
  /** The largest answer: what would be larger is refused. */
  readonly answerLimitBytes: number
  /** The largest file that is taken. */
  readonly uploadLimitBytes: number
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly statementTimeoutMs: number
  /** How much of the past is kept. */
  readonly history: Retention
  /** Connections to PostgreSQL. */
  readonly poolSize: number
  /** Hosts, addresses and networks that are no public ones, and that webhooks may call all the same. */
  readonly webhookAllow: readonly string[]
}

/** Everything, the Changes of so many days, or the newest versions of each record. */
export type Retention = 'all' | { readonly days: number } | { readonly versions: number }

export const MINUTE_MS = 60_000

export const DEFAULT_SETTINGS: Settings = {
  db: 'sqlite:data/verso.db',
  isDemo: false,
  maxLimit: MAX_PAGE_RECORDS,
  answerLimitBytes: 32 * 1024 * 1024,
  uploadLimitBytes: 25 * 1024 * 1024,
  sessionIdleMs: 60 * MINUTE_MS,
  sessionMaxMs: 12 * 60 * MINUTE_MS,
  statementTimeoutMs: 10_000,
  history: 'all',
  poolSize: 10,
  webhookAllow: [],
}
