import type { Compatibility } from './compat/protocol.js'

export interface HttpSettings {
  /** `localhost` means both loopback addresses. */
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** Empty, or a prefix of every path such as `/verso`. */
  readonly basePath: string
  /** The URL at which users reach the service, if it differs from the address that it listens on. */
  readonly publicUrl: string | undefined
  /** Addresses and networks of proxies whose `X-Forwarded-*` headers are trusted. */
  readonly trustProxy: false | readonly string[]
  /** Origins of other sites whose pages may call the service with an API key. */
  readonly allowOrigins: readonly string[]
  readonly bodyLimitBytes: number
  /** Compresses large responses for clients that accept it. */
  readonly compression: boolean
  /** The clients whose protocol is accepted beside the strict one. */
  readonly compat: Compatibility
  /** Accepts `Authorization: Basic` on every request. */
  readonly basicAuth: boolean
  /** Requests per minute and node for each account, and for each address without an account. 0 disables the limit. */
  readonly rateLimitPerMinute: number
  /** Maximum number of requests in flight. */
  readonly maxConcurrentRequests: number
  /** Maximum number of open connections. */
  readonly maxConnections: number
  /** How long requests may wait for their turn in the event loop; see `LoadShedder`. 0 refuses none. */
  readonly maxEventLoopDelayMs: number
  /** A server that closes still accepts requests for this long, while `/readyz` is 503 and each response closes its connection. */
  readonly drainMs: number
}

export const DEFAULT_HTTP_SETTINGS: HttpSettings = {
  host: 'localhost',
  port: 8080,
  basePath: '',
  publicUrl: undefined,
  trustProxy: false,
  allowOrigins: [],
  bodyLimitBytes: 2 * 1024 * 1024,
  compression: true,
  compat: 'none',
  basicAuth: false,
  rateLimitPerMinute: 0,
  maxConcurrentRequests: 1_024,
  maxConnections: 10_000,
  // A program that embeds the service may delay the event loop with its own work.
  maxEventLoopDelayMs: 0,
  drainMs: 0,
}
