import type { Compatibility } from './habits.js'

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
}
