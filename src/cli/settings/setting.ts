// One entry of the table of settings.
import type { OptionType } from './setting-types.js'

export type CommandName =
  | 'demo'
  | 'dev'
  | 'serve'
  | 'user'
  | 'role'
  | 'key'
  | 'schema'
  | 'models'
  | 'hooks'
  | 'hook-failures'
  | 'types'
  | 'history'
  | 'compact'
  | 'verify'
  | 'doctor'
  | 'export'
  | 'import'
  | 'backup'
  | 'restore'
  | 'prove'

export const SERVER_COMMANDS = ['serve', 'dev', 'demo'] as const satisfies readonly CommandName[]

export function isServerCommand(command: CommandName): boolean {
  return (SERVER_COMMANDS as readonly CommandName[]).includes(command)
}

/** Headings of the help, in its order. */
export const SETTING_GROUPS = {
  data: 'Models and data:',
  address: 'Address and proxy:',
  access: 'Login and access:',
  limits: 'Limits:',
  logs: 'Logs and metrics:',
  demo: 'Demo:',
  other: 'Other services:',
} as const

export type SettingGroup = keyof typeof SETTING_GROUPS

export interface Setting<T> extends OptionType<T> {
  /** Commands that take the setting. */
  readonly commands: readonly CommandName[]
  readonly neededBy?: readonly CommandName[]
  /** Advice for a command that needs the setting and did not get it. */
  readonly ifMissing?: string
  /** Values that only some commands accept. Returns the reason for the others. */
  readonly findObjection?: (text: string, command: CommandName) => string | undefined
  /** Default value, spelled as on the command line. */
  readonly default?: string
  readonly demoDefault?: string
  readonly devDefault?: string
  /** Environment variable that is read if the setting's own variable is not set. */
  readonly fallbackVariable?: string
  /** Only read from the environment: every user of the machine can read a command line. */
  readonly isVariableOnly?: boolean
  /** Heading of the setting in the help of a server. */
  readonly group: SettingGroup
  readonly description: string
}
