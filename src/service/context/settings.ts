import { MAX_PAGE_RECORDS } from '../../model/query/search.js'

export interface Settings {
  /** `sqlite:path` or `postgres://…` */
  readonly db: string
  /** Demo mode: an account with a known password, and no limit of failed logins. */
  readonly isDemo: boolean
  readonly maxPageSize: number
  /** Larger answers are rejected. */
  readonly responseLimitBytes: number
  /** Larger files are rejected. */
  readonly uploadLimitBytes: number
  readonly sessionIdleTimeoutMs: number
  readonly sessionMaxAgeMs: number
  readonly statementTimeoutMs: number
  /** While queries wait much longer for a query worker, those that cannot run soon are rejected. SQLite only; 0 rejects none. */
  readonly maxQueueDelayMs: number
  /** The retention of the change log. */
  readonly retention: Retention
  /** Maximum number of connections to PostgreSQL. */
  readonly poolSize: number
  /** The size of the file that keeps room for logins and deletes on a full disk. SQLite only; undefined leaves the file to the service. */
  readonly diskReserveBytes: number | undefined
  /** The limits of the check after an unclean stop. SQLite only; undefined or a time of 0 disables it. */
  readonly quickCheck: { readonly sizeBytes: number; readonly timeMs: number } | undefined
  /** Non-public hosts, addresses and networks that webhooks may call. */
  readonly webhookAllow: readonly string[]
}

/** A command may run beside the service, which keeps the reserve and checks the database. */
export const COMMAND_SETTINGS = { diskReserveBytes: undefined, quickCheck: undefined } as const

/** Keeps all Changes, those of the last days, or the newest versions of each record. */
export type Retention = 'all' | { readonly days: number } | { readonly versions: number }

export const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS

export const DEFAULT_SETTINGS: Settings = {
  db: 'sqlite:data/verso.db',
  isDemo: false,
  maxPageSize: MAX_PAGE_RECORDS,
  responseLimitBytes: 32 * 1024 * 1024,
  uploadLimitBytes: 25 * 1024 * 1024,
  sessionIdleTimeoutMs: 60 * MINUTE_MS,
  sessionMaxAgeMs: 12 * 60 * MINUTE_MS,
  statementTimeoutMs: 10_000,
  maxQueueDelayMs: 0,
  retention: 'all',
  poolSize: 10,
  diskReserveBytes: 16 * 1024 * 1024,
  quickCheck: { sizeBytes: 1024 ** 3, timeMs: 30_000 },
  webhookAllow: [],
}
