// Reads settings from flags and environment variables, and passes them on to the service and the HTTP server.
import { Option, type Command } from 'commander'
import { ConfigError } from '../../errors.js'
import type { HttpSettings } from '../../http/settings.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import type { Settings } from '../../service/context/settings.js'
import { SETTINGS, type SettingName, type SettingValues } from './settings.js'
import { isServerCommand, SETTING_GROUPS, type CommandName, type Setting } from './setting.js'

/** Option values as commander passes them: a text, or true for a switch. */
export type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>
export type Environment = Readonly<Record<string, string | undefined>>

const SETTING_ENTRIES = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][]

export function toFlag(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** Lists the environment variables of a setting; the first one that is set wins. */
export function listVariables(name: SettingName): string[] {
  const { fallbackVariable }: Setting<unknown> = SETTINGS[name]
  const own = `VERSO_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
  return fallbackVariable === undefined ? [own] : [own, fallbackVariable]
}

/** Adds the flags of all settings that the command takes. */
export function addSettingFlags(command: Command, commandName: CommandName): Command {
  // A server has too many settings for one list.
  const isGrouped = isServerCommand(commandName)
  for (const [name, setting] of isGrouped ? sortByGroup(SETTING_ENTRIES) : SETTING_ENTRIES) {
    if (!setting.commands.includes(commandName) || setting.isVariableOnly) continue
    const defaultText = findDefault(commandName, setting)
    const details = [
      ...(defaultText === undefined ? [] : [`default: ${defaultText}`]),
      `env: ${listVariables(name).join(', ')}`,
    ]
    const usage = setting.placeholder === undefined ? toFlag(name) : `${toFlag(name)} ${setting.placeholder}`
    const option = new Option(usage, `${setting.description} (${details.join('; ')})`)
    if (isGrouped) option.helpGroup(SETTING_GROUPS[setting.group])
    if (setting.isList) {
      option.argParser((text: string, before: string | undefined) =>
        before === undefined ? text : `${before},${text}`,
      )
    }
    command.addOption(option)
  }
  return command
}

function sortByGroup(entries: readonly [SettingName, Setting<unknown>][]): [SettingName, Setting<unknown>][] {
  const order = Object.keys(SETTING_GROUPS)
  return entries.toSorted(([, a], [, b]) => order.indexOf(a.group) - order.indexOf(b.group))
}

/** Reads settings from flags, then from the environment, then from the defaults. Throws one error with all faults. */
export function readSettings(command: CommandName, flags: Flags, environment: Environment): SettingValues {
  const errors = findUnknownVariables(environment)
  const values = SETTING_ENTRIES.map(([name, setting]) => {
    const found = setting.commands.includes(command) ? findSettingText(name, flags, environment) : undefined
    if (!found && setting.neededBy?.includes(command))
      errors.push(`${toFlag(name)} is missing: ${setting.ifMissing ?? setting.mustBe}`)
    const text = found?.text ?? findDefault(command, setting)
    const value = text === undefined ? undefined : setting.parse(text)
    const objection = found && setting.findObjection?.(found.text, command)
    if (found && value === undefined) {
      const instead = setting.isSecret ? '' : `, not "${found.text}"`
      errors.push(`${found.source} must be ${setting.mustBe}${instead}`)
    } else if (objection) errors.push(`${found.source}: ${objection}`)
    return [name, value] as const
  })
  if (errors.length > 0) throw new ConfigError('Some settings are wrong', errors)
  return Object.fromEntries(values) as unknown as SettingValues
}

function findDefault(command: CommandName, setting: Setting<unknown>): string | undefined {
  const own = { demo: setting.demoDefault, dev: setting.devDefault }
  return (command === 'demo' || command === 'dev' ? own[command] : undefined) ?? setting.default
}

function findSettingText(name: SettingName, flags: Flags, environment: Environment) {
  const flag = flags[name]
  if (flag !== undefined) return { source: toFlag(name), text: String(flag) }
  // An empty variable counts as not set, because that is how container files unset one.
  const source = listVariables(name).find((variable) => (environment[variable] ?? '') !== '')
  return source === undefined ? undefined : { source, text: environment[source] ?? '' }
}

function findUnknownVariables(environment: Environment): string[] {
  const variables = SETTING_ENTRIES.map(([name]) => listVariables(name)[0] ?? '')
  const unknown = Object.keys(environment).filter(
    (name) => name.startsWith('VERSO_') && !variables.includes(name),
  )
  return unknown.sort().map((name) => `${name} is not a setting${didYouMean(name, variables)}`)
}

export function toServiceSettings(values: SettingValues, isDemo: boolean): Settings {
  return {
    db: values.db,
    isDemo,
    maxPageSize: values.maxPageSize,
    responseLimitBytes: values.responseLimit,
    uploadLimitBytes: values.uploadLimit,
    sessionIdleTimeoutMs: values.sessionIdleTimeout,
    sessionMaxAgeMs: values.sessionMaxAge,
    statementTimeoutMs: values.statementTimeout,
    maxQueueDelayMs: values.maxEventLoopDelay,
    retention: values.retention,
    poolSize: values.poolSize,
    diskReserveBytes: values.diskReserve,
    quickCheck: { sizeBytes: values.quickCheckSize, timeMs: values.quickCheckTime },
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
    compression: values.compression === 'on',
    compat: values.compat,
    basicAuth: values.basicAuth ?? values.compat === 'axelor',
    rateLimitPerMinute: values.rateLimit,
    maxConcurrentRequests: values.maxConcurrentRequests,
    maxConnections: values.maxConnections,
    maxEventLoopDelayMs: values.maxEventLoopDelay,
    drainMs: values.drain,
  }
}
