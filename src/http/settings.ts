import type { Compatibility } from './compat/protocol.js'

export interface HttpSettings {
  /** `localhost` stands for both loopback addresses. */
  readonly host: string
  /** 0 is any free port. */
  readonly port: number
  /** Empty, or a path such as `/verso` in front of every other. */
  readonly basePath: string
  /** Where people reach the service, if not where it listens. */
  readonly publicUrl: string | undefined
  /** Whose `X-Forwarded-*` headers are believed: nobody's, or these addresses and networks. */
  readonly trustProxy: false | readonly string[]
  /** Origins of other web pages that may call with a key. */
  readonly allowOrigins: readonly string[]
  readonly bodyLimitBytes: number
  /** Whose habits are served besides the contract. */
  readonly compat: Compatibility
  /** Whether a user name and a password may come with every request. */
  readonly basicAuth: boolean
  /** How many requests a minute each account, and each address without one, may make of this node; 0 is any number. */
  readonly rateLimitPerMinute: number
  /** How many requests may be under way at once. */
  readonly maxInFlight: number
  /** How many connections there may be at once. */
  readonly maxConnections: number
  /** How late the event loop may be before requests are refused; 0 is however late. */
  readonly maxLateMs: number
}

export const DEFAULT_HTTP_SETTINGS: HttpSettings = {
  host: 'localhost',
  port: 8080,
  basePath: '',
  publicUrl: undefined,
  trustProxy: false,
  allowOrigins: [],
  bodyLimitBytes: 2 * 1024 * 1024,
  compat: 'none',
  basicAuth: false,
  rateLimitPerMinute: 0,
  maxInFlight: 1_024,
  maxConnections: 10_000,
  // A program that has the service inside of it may hold the loop with work of its own.
  maxLateMs: 0,
}
