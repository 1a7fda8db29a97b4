// The table of all settings. Flags, environment variables, the help and the documentation are derived from it.
import { Option, type Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { COMPATIBILITIES } from '../../http/compat/protocol.js'
import type { HttpSettings } from '../../http/settings.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import type { Settings } from '../../service/context/settings.js'
import * as kinds from './setting-types.js'
import type { OptionType } from './setting-types.js'

export type CommandName =
  | ('demo' | 'serve' | 'user' | 'role' | 'key' | 'schema' | 'models')
  | ('history' | 'compact' | 'verify')
  | ('export' | 'import' | 'prove')

interface Setting<T> extends OptionType<T> {
  /** Commands that take the setting. */
  readonly of: readonly CommandName[]
  readonly neededBy?: readonly CommandName[]
  /** Advice for a command that needs the setting and did not get it. */
  readonly ifMissing?: string
  /** Default value, spelled as on the command line. */
  readonly default?: string
  readonly demoDefault?: string
  /** Environment variable that is read if the setting's own variable is not set. */
  readonly also?: string
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
    ...{ ...kinds.host, of: SERVER_COMMANDS, default: 'localhost', also: 'HOST' },
    description: 'Where to listen: localhost is this computer only, 0.0.0.0 every IPv4 address.',
  },
  port: {
    ...{ ...kinds.boundedInteger(0, 65_535), of: SERVER_COMMANDS, default: '8080', also: 'PORT' },
    description: 'The port to listen on; 0 is any free one, which is printed.',
  },
  db: {
    ...{
      ...kinds.database,
      of: [
        ...SERVER_COMMANDS,
        'user',
        'role',
        'key',
        'schema',
        'verify',
        ...HISTORY_COMMANDS,
        ...TRANSFER_COMMANDS,
      ],
    },
    ...{ default: 'sqlite:data/verso.db', demoDefault: 'sqlite:data/demo.db' },
    description: 'The database: sqlite:path/to/file or postgres://user:password@host/database.',
  },
  models: {
    ...{
      ...kinds.fileOrFolder,
      of: [
        ...SERVER_COMMANDS,
        'role',
        'schema',
        'verify',
        'models',
        ...HISTORY_COMMANDS,
        ...TRANSFER_COMMANDS,
      ],
      neededBy: ['serve', 'schema', 'verify', 'models', ...TRANSFER_COMMANDS],
    },
    ifMissing: 'name a file or folder with models; to get a starter folder, run: verso init',
    description: 'The file or folder with the models; demo has a sample without it.',
  },
  basePath: {
    ...{ ...kinds.basePath, of: SERVER_COMMANDS, default: '/' },
    description: 'A path in front of every other, such as /verso.',
  },
  publicUrl: {
    ...{ ...kinds.origin, of: SERVER_COMMANDS },
    description: 'Where people reach the service, if not where it listens: https://records.example.org.',
  },
  trustProxy: {
    ...{ ...kinds.proxies, of: SERVER_COMMANDS },
    description: 'The proxies whose X-Forwarded headers are believed: addresses, networks, or loopback.',
  },
  allowOrigin: {
    ...{ ...kinds.origins, of: SERVER_COMMANDS },
    description: 'Origins of other web pages that may call the service, with a key.',
  },
  compat: {
    ...{ ...kinds.choice(COMPATIBILITIES), of: SERVER_COMMANDS, default: 'none' },
    description:
      'Whose habits are served besides the contract: axelor answers record errors as HTTP 200 with status -1, and more.',
  },
  basicAuth: {
    ...{ ...kinds.toggle, of: SERVER_COMMANDS },
    description: 'Lets a user name and a password come with every request; on with --compat axelor.',
  },
  bodyLimit: {
    ...{ ...kinds.byteSize('1kb', '1gb'), of: SERVER_COMMANDS, default: '2mb' },
    description: 'The longest request body that is read.',
  },
  uploadLimit: {
    ...{ ...kinds.byteSize('1kb', '1gb'), of: SERVER_COMMANDS, default: '25mb' },
    description: 'The largest file that is taken.',
  },
  rateLimit: {
    ...{
      ...kinds.boundedInteger(0, 1_000_000_000),
      of: SERVER_COMMANDS,
      default: '300000',
      demoDefault: '0',
    },
    description:
      'Requests a minute that each node takes from each account, and from each address without one; 0 is any number.',
  },
  maxInFlight: {
    ...{ ...kinds.boundedInteger(1, 1_000_000), of: SERVER_COMMANDS, default: '1024' },
    description: 'Requests that may be under way at once; what is more is answered with 503.',
  },
  maxLate: {
    ...{ ...kinds.duration('0s', '1h'), of: SERVER_COMMANDS, default: '1s', demoDefault: '0s' },
    description:
      'While the process is behind by more than this, requests are answered with 503; 0s is however late.',
  },
  maxConnections: {
    ...{ ...kinds.boundedInteger(1, 1_000_000), of: SERVER_COMMANDS, default: '10000' },
    description: 'Connections that may be open at once; what is more is closed.',
  },
  maxLimit: {
    ...{ ...kinds.boundedInteger(1, 100_000), of: SERVER_COMMANDS, default: '1000' },
    description: 'The most records that one find answers; a larger limit is lowered to it.',
  },
  answerLimit: {
    ...{ ...kinds.byteSize('1mb', '1gb'), of: SERVER_COMMANDS, default: '32mb' },
    description: 'The largest answer about records: what would be larger is refused with 413.',
  },
  sessionIdle: {
    ...{ ...kinds.duration('1s', '400d'), of: SERVER_COMMANDS, default: '60m' },
    description: 'A session that is not used for so long is over.',
  },
  sessionMax: {
    ...{ ...kinds.duration('1s', '400d'), of: SERVER_COMMANDS, default: '12h' },
    description: 'A session is over after so long, used or not.',
  },
  statementTimeout: {
    ...{ ...kinds.duration('10ms', '1h'), of: SERVER_COMMANDS, default: '10s' },
    description:
      'A search, and on PostgreSQL any statement, is given up after so long, and the request is answered with 503.',
  },
  poolSize: {
    ...{ ...kinds.boundedInteger(1, 1_000), of: SERVER_COMMANDS, default: '10' },
    description:
      'Connections to PostgreSQL, a third each for reading, searching and writing; three at least.',
  },
  webhookAllow: {
    ...{ ...kinds.hosts, of: SERVER_COMMANDS },
    description:
      'Hosts, addresses and networks such as 10.0.0.0/8 that webhooks may call although they are not public.',
  },
  history: {
    ...{ ...kinds.retention, of: [...SERVER_COMMANDS, 'compact'], default: 'all' },
    description:
      'How much of the past is kept: all, the Changes of so many days (90d), or the newest versions of each record (100v).',
  },
  logLevel: {
    ...{ ...kinds.choice(LOG_LEVELS), of: SERVER_COMMANDS, default: 'info', demoDefault: 'warn' },
    description:
      'How much is logged, as lines of JSON on stderr: fatal, error, warn, info, debug, trace or silent.',
  },
  adminPassword: {
    ...{ ...kinds.password, of: ['serve'], isVariableOnly: true },
    description:
      'The password of the first administrator, called admin, who is made if there is no administrator.',
  },
  fromPassword: {
    ...{ ...kinds.anyPassword, of: ['import'], isVariableOnly: true },
    description: 'The password for the service that `--from` names.',
  },
  provePassword: {
    ...{ ...kinds.anyPassword, of: ['prove'], isVariableOnly: true },
    description: 'The password of the user that `--user` names.',
  },
  proveKey: {
    ...{ ...kinds.anyPassword, of: ['prove'], isVariableOnly: true },
    description: 'An API key for the service that `--url` names.',
  },
  sample: {
    ...{ ...kinds.boundedInteger(0, 10_000_000), of: ['demo'], default: '12' },
    description: 'Sample contacts there are in all: what is missing is made, nothing is ever removed.',
  },
  unsafeOpenDemo: {
    ...{ ...kinds.toggle, of: ['demo'], default: 'false' },
    description: 'Lets the demo listen beyond this computer although everybody knows its password.',
  },
} as const satisfies Record<string, Setting<unknown>>

export type SettingName = keyof typeof SETTINGS
type ParsedSetting<K extends SettingName> = Exclude<ReturnType<(typeof SETTINGS)[K]['parse']>, undefined>
type MissingSetting<K extends SettingName> = (typeof SETTINGS)[K] extends { readonly default: string }
  ? never
  : undefined

export type SettingValues = { readonly [K in SettingName]: ParsedSetting<K> | MissingSetting<K> }

/** Option values as commander passes them: a text, or true for a switch. */
export type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>
export type Environment = Readonly<Record<string, string | undefined>>

const SETTING_ENTRIES = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]

export function toFlag(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Lists the environment variables of a setting; the first one that is set wins. */
export function listVariables(name: SettingName): string[] {
  const { also }: Setting<unknown> = SETTINGS[name]
  const own = `VERSO_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
  return also === undefined ? [own] : [own, also]
}

/** Adds the flags of all settings that the command takes. */
export function addSettingFlags(command: Command, commandName: CommandName): Command {
  for (const [name, setting] of SETTING_ENTRIES) {
    if (!setting.of.includes(commandName) || setting.isVariableOnly) continue
    const defaultText = (commandName === 'demo' ? setting.demoDefault : undefined) ?? setting.default
    const details = [
      ...(defaultText === undefined ? [] : [`default: ${defaultText}`]),
      `env: ${listVariables(name).join(', ')}`,
    ]
    const spelled =
      setting.placeholder === undefined ? toFlag(name) : `${toFlag(name)} ${setting.placeholder}`
    const option = new Option(spelled, `${setting.description} (${details.join('; ')})`)
    if (setting.isList) {
      option.argParser((text: string, before: string | undefined) =>
        before === undefined ? text : `${before},${text}`,
      )
    }
    command.addOption(option)
  }
  return command
}

/** Reads settings from flags, then from the environment, then from the defaults. Throws one error with all faults. */
export function readSettings(command: CommandName, flags: Flags, environment: Environment): SettingValues {
  const errors = findUnknownVariables(environment)
  const values = SETTING_ENTRIES.map(([name, setting]) => {
    const defaultText = (command === 'demo' ? setting.demoDefault : undefined) ?? setting.default
    const given = setting.of.includes(command) ? findSettingText(name, flags, environment) : undefined
    if (!given && setting.neededBy?.includes(command))
      errors.push(`${toFlag(name)} is missing: ${setting.ifMissing ?? setting.mustBe}`)
    const text = given?.text ?? defaultText
    const value = text === undefined ? undefined : setting.parse(text)
    if (given && value === undefined) {
      const instead = setting.isSecret ? '' : `, not "${given.text}"`
      errors.push(`${given.from} must be ${setting.mustBe}${instead}`)
    }
    return [name, value] as const
  })
  if (errors.length > 0) throw new ConfigError('The settings have faults', errors)
  return Object.fromEntries(values) as unknown as SettingValues
}

function findSettingText(name: SettingName, flags: Flags, environment: Environment) {
  const flag = flags[name]
  if (flag !== undefined) return { from: toFlag(name), text: String(flag) }
  // An empty variable counts as not set, because that is how container files unset one.
  const from = listVariables(name).find((variable) => (environment[variable] ?? '') !== '')
  return from === undefined ? undefined : { from, text: environment[from] ?? '' }
}

function findUnknownVariables(environment: Environment): string[] {
  const known = SETTING_ENTRIES.map(([name]) => listVariables(name)[0] ?? '')
  const unknown = Object.keys(environment).filter(
    (name) => name.startsWith('VERSO_') && !known.includes(name),
  )
  return unknown.sort().map((name) => `${name} is no setting${didYouMean(name, known)}`)
}

export function toServiceSettings(values: SettingValues, isDemo: boolean): Settings {
  return {
    db: values.db,
    isDemo,
    maxLimit: values.maxLimit,
    answerLimitBytes: values.answerLimit,
    uploadLimitBytes: values.uploadLimit,
    sessionIdleMs: values.sessionIdle,
    sessionMaxMs: values.sessionMax,
    statementTimeoutMs: values.statementTimeout,
    history: values.history,
    poolSize: values.poolSize,
    webhookAllow: values.webhookAllow ?? [],
  }
}

export function toHttpSettings(values: SettingValues): HttpSettings {
  return {
    host: values.host,
    port: values.port,
    basePath: values.basePath,
    publicUrl: values.publicUrl,
    trustProxy: values.trustProxy ?? false,
    allowOrigins: values.allowOrigin ?? [],
    bodyLimitBytes: values.bodyLimit,
    compat: values.compat,
    basicAuth: values.basicAuth ?? values.compat === 'axelor',
    rateLimitPerMinute: values.rateLimit,
    maxInFlight: values.maxInFlight,
    maxConnections: values.maxConnections,
    maxLateMs: values.maxLate,
  }
}
