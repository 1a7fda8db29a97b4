// Shared by the commands that open an App: accounts, history and verify. They act as the service and may run beside a
// server.
import type { Command } from 'commander'
import { ConfigError } from '../errors.js'
import type { Catalog } from '../model/catalog/catalog.js'
import type { App } from '../service/context/app.js'
import type { Settings } from '../service/context/settings.js'
import { previewSchema } from '../store/schema/schema.js'
import { loadModelsWithReport } from './models/models.js'
import { openApp, requireDatabaseFile, redactDatabaseUrl, withDatabase } from './open.js'
import { addSettingFlags, readSettings, type Flags } from './settings/read-settings.js'
import type { CommandName } from './settings/settings.js'

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

const NOTHING_CHANGED = 'Nothing was changed'

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
  if (loaded && loaded.sources.length > 0) await requireMatchingTables(db, loaded.catalog, heading)
  const app = await openApp({ settings: { ...settings, db }, models: loaded?.catalog ?? [] })
  try {
    await work(app)
  } finally {
    await app.close()
  }
}

/** Fails if the schema would change: a command must not migrate tables while a server uses them. */
async function requireMatchingTables(db: string, catalog: Catalog, heading: string): Promise<void> {
  const { steps } = await withDatabase(db, (database) => previewSchema(database, catalog, []))
  if (steps.length === 0) return
  throw new ConfigError(heading, [
    `the tables of ${redactDatabaseUrl(db)} are not those of the models; to see why, run: verso schema`,
  ])
}

/** Collects the values of an option that may be given several times. */
export function appendOption(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Parses a record id from the command line. */
export function parseIdArgument(text: string, heading = NOTHING_CHANGED): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text)
  throw new ConfigError(heading, [`"${text}" is no id: ids are whole numbers from 1`])
}

export function writeLine(text: string): void {
  process.stdout.write(`${text}\n`)
}
