// Shared by the commands that open an App: accounts, history and verify. They act as the service itself and may run while
// a server uses the database.
import type { Command } from 'commander'
import { ConfigError } from '../errors.js'
import type { App } from '../service/context/app.js'
import { COMMAND_SETTINGS, type Settings } from '../service/context/settings.js'
import { loadModelsWithReport } from './models/models.js'
import { openApp, requireDatabaseFile, requireMatchingTables, useDatabase } from './open.js'
import { addSettingFlags, readSettings, type Flags } from './settings/read-settings.js'
import type { CommandName } from './settings/setting.js'

export function addSubcommand(
  command: Command,
  name: CommandName,
  usage: string,
  description: string,
): Command {
  return addSettingFlags(command.command(usage).description(description), name)
}

export interface AccountCommandOptions {
  /** Creates the database if it does not exist. */
  readonly mayCreate?: boolean
  /** Heading of the error if the tables do not match the models. */
  readonly heading?: string
  /** Settings that differ from the defaults of a server. */
  readonly settings?: Partial<Settings>
}

export const NOTHING_CHANGED = 'Nothing was changed'

/**
 * Opens an App for `work`. Without --models the tables of models are left alone; with --models the tables must match
 * already.
 */
export async function withCommandApp(
  name: CommandName,
  flags: Flags,
  work: (app: App) => Promise<void>,
  { mayCreate = false, heading = NOTHING_CHANGED, settings = {} }: AccountCommandOptions = {},
): Promise<void> {
  const { db, models: modelsPath } = readSettings(name, flags, process.env)
  if (!mayCreate) requireDatabaseFile(db)
  const loaded = modelsPath === undefined ? undefined : await loadModelsWithReport(modelsPath)
  if (loaded && loaded.sources.length > 0)
    await useDatabase(db, (database) => requireMatchingTables(database, loaded.catalog, { url: db, heading }))
  const app = await openApp({
    settings: { ...COMMAND_SETTINGS, ...settings, db },
    models: loaded?.catalog ?? [],
  })
  try {
    await work(app)
  } finally {
    await app.close()
  }
}

/**
 * Collects the values of an option that may be given several times. Unlike `<name...>`, it does not consume the
 * arguments after it.
 */
export function appendOption(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Parses a record id from the command line. */
export function parseIdArgument(text: string, heading = NOTHING_CHANGED): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text)
  throw new ConfigError(heading, [`"${text}" is not an id: an id is a whole number from 1`])
}
