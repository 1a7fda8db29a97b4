// The table of all settings. Flags, environment variables, the help and the documentation are derived from it. A new setting
// needs an entry here and a line in toServiceSettings or toHttpSettings (read-settings.ts).
import { COMPATIBILITIES } from '../../http/compat/protocol.js'
import { MEMORY_URL } from '../../store/open.js'
import { LIMIT_SETTINGS } from './limit-settings.js'
import { OPERATION_SETTINGS } from './operation-settings.js'
import { SECRET_SETTINGS } from './secret-settings.js'
import * as types from './setting-types.js'
import { isServerCommand, SERVER_COMMANDS, type Setting } from './setting.js'

/**
 * `history compact` has a name of its own because it takes the setting `retention`, unlike the other history commands.
 */
const HISTORY_COMMANDS = ['history', 'compact'] as const
/** `hooks failed` and `hooks retry` need no models, unlike `hooks`. */
const HOOK_COMMANDS = ['hooks', 'hook-failures'] as const
const TRANSFER_COMMANDS = ['export', 'import'] as const
const BACKUP_COMMANDS = ['backup', 'restore'] as const
const ON_OFF = ['on', 'off'] as const

/** Each name gives a flag and a variable: `basePath` is `--base-path` and `VERSO_BASE_PATH`. */
export const SETTINGS = {
  host: {
    group: 'address',
    ...types.host,
    commands: SERVER_COMMANDS,
    default: 'localhost',
    fallbackVariable: 'HOST',
    description:
      'The address to listen on: localhost for this computer only, 0.0.0.0 for every IPv4 address.',
  },
  port: {
    group: 'address',
    ...types.boundedInteger(0, 65_535),
    commands: SERVER_COMMANDS,
    default: '8080',
    fallbackVariable: 'PORT',
    description: 'The port to listen on. 0 chooses a free port and prints it.',
  },
  db: {
    group: 'data',
    ...types.database,
    commands: [
      ...SERVER_COMMANDS,
      'user',
      'role',
      'key',
      'schema',
      'verify',
      ...HOOK_COMMANDS,
      ...HISTORY_COMMANDS,
      ...TRANSFER_COMMANDS,
      ...BACKUP_COMMANDS,
    ],
    findObjection: (text, command) =>
      text === MEMORY_URL && !isServerCommand(command)
        ? `${MEMORY_URL} ends with its process: name a file or a PostgreSQL database`
        : undefined,
    default: 'sqlite:data/verso.db',
    demoDefault: 'sqlite:data/demo.db',
    description:
      'The database: sqlite:path/to/file, postgres://user:password@host/database, or sqlite::memory: for tests (deleted when the process exits).',
  },
  models: {
    group: 'data',
    ...types.fileOrFolder,
    commands: [
      ...SERVER_COMMANDS,
      'role',
      'schema',
      'verify',
      'models',
      'hooks',
      'types',
      ...HISTORY_COMMANDS,
      ...TRANSFER_COMMANDS,
      'restore',
    ],
    neededBy: ['serve', 'schema', 'verify', 'models', 'hooks', ...TRANSFER_COMMANDS],
    ifMissing: 'name the file or folder with your models, or create a starter folder with: verso init',
    devDefault: 'models',
    description: 'The file or folder with your models. The demo has a sample without it.',
  },
  routes: {
    group: 'data',
    ...types.fileOrFolder,
    commands: ['serve', 'dev'],
    description: 'The file or folder with your routes, which are served below /ext, and your schedules.',
  },
  basePath: {
    group: 'address',
    ...types.basePath,
    commands: SERVER_COMMANDS,
    default: '/',
    description: 'Prefix of every path, such as /verso.',
  },
  publicUrl: {
    group: 'address',
    ...types.origin,
    commands: SERVER_COMMANDS,
    description:
      'The URL that users see, if it differs from the address that the service listens on: https://records.example.org.',
  },
  trustProxy: {
    group: 'address',
    ...types.proxies,
    commands: SERVER_COMMANDS,
    description: 'Reverse proxies whose X-Forwarded-* headers are trusted: addresses, networks, or loopback.',
  },
  allowOrigin: {
    group: 'access',
    ...types.origins,
    commands: SERVER_COMMANDS,
    description: 'Origins of other web pages that may call the service with an API key (CORS).',
  },
  compat: {
    group: 'access',
    ...types.choice(COMPATIBILITIES),
    commands: SERVER_COMMANDS,
    default: 'none',
    description:
      'Protocol compatibility: axelor behaves as clients of the Axelor Open Platform expect, for example with record errors as HTTP 200 and status -1.',
  },
  basicAuth: {
    group: 'access',
    ...types.toggle,
    commands: SERVER_COMMANDS,
    description:
      'Accept a user name and a password with every request (HTTP Basic). On with --compat axelor.',
  },
  compression: {
    group: 'access',
    ...types.choice(ON_OFF),
    commands: SERVER_COMMANDS,
    default: 'on',
    description:
      'Compress responses from 8 kB on for clients that accept it: on, or off behind a proxy that compresses.',
  },
  sessionIdleTimeout: {
    group: 'access',
    ...types.duration('1s', '400d'),
    commands: SERVER_COMMANDS,
    default: '60m',
    description: 'Sessions expire after this long without a request.',
  },
  sessionMaxAge: {
    group: 'access',
    ...types.duration('1s', '400d'),
    commands: SERVER_COMMANDS,
    default: '12h',
    description: 'Sessions expire this long after login, even if they are in use.',
  },
  poolSize: {
    group: 'data',
    ...types.boundedInteger(1, 1_000),
    commands: SERVER_COMMANDS,
    default: '10',
    description:
      'Maximum number of connections to PostgreSQL: one third each for reads, searches and writes, at least one connection each.',
  },
  webhookAllow: {
    group: 'access',
    ...types.hosts,
    commands: SERVER_COMMANDS,
    description:
      'Hosts, addresses and networks (10.0.0.0/8) that webhooks may call although they are not public.',
  },
  retention: {
    group: 'data',
    ...types.retention,
    commands: [...SERVER_COMMANDS, 'compact'],
    default: 'all',
    description:
      'How much history is kept: all, the changes of the last days (90d), or the newest versions of each record (100v).',
  },
  ...LIMIT_SETTINGS,
  ...OPERATION_SETTINGS,
  ...SECRET_SETTINGS,
  sample: {
    group: 'demo',
    ...types.boundedInteger(0, 10_000_000),
    commands: ['demo'],
    default: '12',
    description: 'Total number of sample contacts. Missing ones are created, none is deleted.',
  },
  unsafeOpenDemo: {
    group: 'demo',
    ...types.toggle,
    commands: ['demo'],
    default: 'false',
    description: 'Let the demo listen on addresses other than localhost, although its password is public.',
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS
type ParsedSetting<K extends SettingName> = Exclude<ReturnType<(typeof SETTINGS)[K]['parse']>, undefined>
type MissingSetting<K extends SettingName> = (typeof SETTINGS)[K] extends { readonly default: string }
  ? never
  : undefined

export type SettingValues = { readonly [K in SettingName]: ParsedSetting<K> | MissingSetting<K> }
