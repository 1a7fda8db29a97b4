// The table of all settings. Flags, environment variables, the help and the documentation are derived from it. A new setting
// needs an entry here and a line in toServiceSettings or toHttpSettings (read-settings.ts).
import { COMPATIBILITIES } from '../../http/compat/protocol.js'
import * as types from './setting-types.js'
import type { OptionType } from './setting-types.js'

export type CommandName =
  | 'demo'
  | 'serve'
  | 'user'
  | 'role'
  | 'key'
  | 'schema'
  | 'models'
  | 'history'
  | 'compact'
  | 'verify'
  | 'export'
  | 'import'
  | 'prove'

export interface Setting<T> extends OptionType<T> {
  /** Commands that take the setting. */
  readonly commands: readonly CommandName[]
  readonly neededBy?: readonly CommandName[]
  /** Advice for a command that needs the setting and did not get it. */
  readonly ifMissing?: string
  /** Default value, spelled as on the command line. */
  readonly default?: string
  readonly demoDefault?: string
  /** Environment variable that is read if the setting's own variable is not set. */
  readonly fallbackVariable?: string
  /** Only read from the environment: every user of the machine can read a command line. */
  readonly isVariableOnly?: boolean
  readonly description: string
}

const SERVER_COMMANDS = ['serve', 'demo'] as const
/**
 * `history compact` has a name of its own because it takes the setting `history`, unlike the other history commands.
 */
const HISTORY_COMMANDS = ['history', 'compact'] as const
const TRANSFER_COMMANDS = ['export', 'import'] as const
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** Each name gives a flag and a variable: `basePath` is `--base-path` and `VERSO_BASE_PATH`. */
export const SETTINGS = {
  host: {
    ...types.host,
    commands: SERVER_COMMANDS,
    default: 'localhost',
    fallbackVariable: 'HOST',
    description: 'Where to listen: localhost is this computer only, 0.0.0.0 every IPv4 address.',
  },
  port: {
    ...types.boundedInteger(0, 65_535),
    commands: SERVER_COMMANDS,
    default: '8080',
    fallbackVariable: 'PORT',
    description: 'The port to listen on; 0 is any free one, which is printed.',
  },
  db: {
    ...types.database,
    commands: [
      ...SERVER_COMMANDS,
      'user',
      'role',
      'key',
      'schema',
      'verify',
      ...HISTORY_COMMANDS,
      ...TRANSFER_COMMANDS,
    ],
    default: 'sqlite:data/verso.db',
    demoDefault: 'sqlite:data/demo.db',
    description: 'The database: sqlite:path/to/file or postgres://user:password@host/database.',
  },
  models: {
    ...types.fileOrFolder,
    commands: [
      ...SERVER_COMMANDS,
      'role',
      'schema',
      'verify',
      'models',
      ...HISTORY_COMMANDS,
      ...TRANSFER_COMMANDS,
    ],
    neededBy: ['serve', 'schema', 'verify', 'models', ...TRANSFER_COMMANDS],
    ifMissing: 'name a file or folder with models; to get a starter folder, run: verso init',
    description: 'The file or folder with the models; demo has a sample without it.',
  },
  basePath: {
    ...types.basePath,
    commands: SERVER_COMMANDS,
    default: '/',
    description: 'A path in front of every other, such as /verso.',
  },
  publicUrl: {
    ...types.origin,
    commands: SERVER_COMMANDS,
    description: 'Where people reach the service, if not where it listens: https://records.example.org.',
  },
  trustProxy: {
    ...types.proxies,
    commands: SERVER_COMMANDS,
    description: 'The proxies whose X-Forwarded headers are believed: addresses, networks, or loopback.',
  },
  allowOrigin: {
    ...types.origins,
    commands: SERVER_COMMANDS,
    description: 'Origins of other web pages that may call the service, with a key.',
  },
  compat: {
    ...types.choice(COMPATIBILITIES),
    commands: SERVER_COMMANDS,
    default: 'none',
    description:
      'Whose habits are served besides the contract: axelor answers record errors as HTTP 200 with status -1, and more.',
  },
  basicAuth: {
    ...types.toggle,
    commands: SERVER_COMMANDS,
    description: 'Lets a user name and a password come with every request; on with --compat axelor.',
  },
  bodyLimit: {
    ...types.byteSize('1kb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '2mb',
    description: 'The longest request body that is read.',
  },
  uploadLimit: {
    ...types.byteSize('1kb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '25mb',
    description: 'The largest file that is taken.',
  },
  rateLimit: {
    ...types.boundedInteger(0, 1_000_000_000),
    commands: SERVER_COMMANDS,
    default: '300000',
    demoDefault: '0',
    description:
      'Requests a minute that each node takes from each account, and from each address without one; 0 is any number.',
  },
  maxConcurrentRequests: {
    ...types.boundedInteger(1, 1_000_000),
    commands: SERVER_COMMANDS,
    default: '1024',
    description: 'Requests that may be under way at once; what is more is answered with 503.',
  },
  maxEventLoopDelay: {
    ...types.duration('0s', '1h'),
    commands: SERVER_COMMANDS,
    default: '1s',
    demoDefault: '0s',
    description:
      'While the process is behind by more than this, requests are answered with 503; 0s is however late.',
  },
  maxConnections: {
    ...types.boundedInteger(1, 1_000_000),
    commands: SERVER_COMMANDS,
    default: '10000',
    description: 'Connections that may be open at once; what is more is closed.',
  },
  maxPageSize: {
    ...types.boundedInteger(1, 100_000),
    commands: SERVER_COMMANDS,
    default: '1000',
    description: 'The most records that one find answers; a larger limit is lowered to it.',
  },
  responseLimit: {
    ...types.byteSize('1mb', '1gb'),
    commands: SERVER_COMMANDS,
    default: '32mb',
    description: 'The largest answer about records: what would be larger is refused with 413.',
  },
  sessionIdleTimeout: {
    ...types.duration('1s', '400d'),
    commands: SERVER_COMMANDS,
    default: '60m',
    description: 'A session that is not used for so long is over.',
  },
  sessionMaxAge: {
    ...types.duration('1s', '400d'),
    commands: SERVER_COMMANDS,
    default: '12h',
    description: 'A session is over after so long, used or not.',
  },
  statementTimeout: {
    ...types.duration('10ms', '1h'),
    commands: SERVER_COMMANDS,
    default: '10s',
    description:
      'A search, and on PostgreSQL any statement, is given up after so long, and the request is answered with 503.',
  },
  poolSize: {
    ...types.boundedInteger(1, 1_000),
    commands: SERVER_COMMANDS,
    default: '10',
    description:
      'Connections to PostgreSQL, a third each for reading, searching and writing; three at least.',
  },
  webhookAllow: {
    ...types.hosts,
    commands: SERVER_COMMANDS,
    description:
      'Hosts, addresses and networks such as 10.0.0.0/8 that webhooks may call although they are not public.',
  },
  retention: {
    ...types.retention,
    commands: [...SERVER_COMMANDS, 'compact'],
    default: 'all',
    description:
      'How much of the past is kept: all, the Changes of so many days (90d), or the newest versions of each record (100v).',
  },
  logLevel: {
    ...types.choice(LOG_LEVELS),
    commands: SERVER_COMMANDS,
    default: 'info',
    demoDefault: 'warn',
    description:
      'How much is logged, as lines of JSON on stderr: fatal, error, warn, info, debug, trace or silent.',
  },
  adminPassword: {
    ...types.password,
    commands: ['serve'],
    isVariableOnly: true,
    description:
      'The password of the first administrator, called admin, who is made if there is no administrator.',
  },
  fromPassword: {
    ...types.anyPassword,
    commands: ['import'],
    isVariableOnly: true,
    description: 'The password for the service that `--from` names.',
  },
  provePassword: {
    ...types.anyPassword,
    commands: ['prove'],
    isVariableOnly: true,
    description: 'The password of the user that `--user` names.',
  },
  proveKey: {
    ...types.anyPassword,
    commands: ['prove'],
    isVariableOnly: true,
    description: 'An API key for the service that `--url` names.',
  },
  sample: {
    ...types.boundedInteger(0, 10_000_000),
    commands: ['demo'],
    default: '12',
    description: 'Sample contacts there are in all: what is missing is made, nothing is ever removed.',
  },
  unsafeOpenDemo: {
    ...types.toggle,
    commands: ['demo'],
    default: 'false',
    description: 'Lets the demo listen beyond this computer although everybody knows its password.',
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS
type ParsedSetting<K extends SettingName> = Exclude<ReturnType<(typeof SETTINGS)[K]['parse']>, undefined>
type MissingSetting<K extends SettingName> = (typeof SETTINGS)[K] extends { readonly default: string }
  ? never
  : undefined

export type SettingValues = { readonly [K in SettingName]: ParsedSetting<K> | MissingSetting<K> }
