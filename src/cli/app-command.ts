// What the commands about users, roles and keys share: they act as nobody, and work while a server runs.
import type { Command } from 'commander'
import { ConfigError } from '../errors.js'
import { Catalog, type ModelSource } from '../model/catalog/catalog.js'
import type { App } from '../service/context/app.js'
import type { Settings } from '../service/context/settings.js'
import { previewSchema } from '../store/schema/schema.js'
import { loadModels } from './models/models.js'
import { openApp, requireDatabaseFile, redactDatabaseUrl, withDatabase } from './open.js'
import { addSettingFlags, readSettings, type CommandName, type Flags } from './settings/settings.js'

export function addSubcommand(
  command: Command,
  name: CommandName,
  usage: string,
  description: string,
): Command {
  return addSettingFlags(command.command(usage).description(description), name)
}

export interface AccountCommandOptions {
  /** Makes a database that is not there. */
  readonly mayCreate?: boolean
  /** What faults stand under. */
  readonly heading?: string
  /** Where a command needs others than a server has. */
  readonly settings?: Partial<Settings>
}

const NOTHING_CHANGED = 'Nothing was changed'

/** Accounts need no models: without them, tables of models stay as they are. With them, they must be as they are already. */
export async function withCommandApp(
  name: CommandName,
  flags: Flags,
  work: (app: App) => Promise<void>,
  { mayCreate = false, heading = NOTHING_CHANGED, settings = {} }: AccountCommandOptions = {},
): Promise<void> {
  const { db, models: modelsPath } = readSettings(name, flags, process.env)
  if (!mayCreate) requireDatabaseFile(db)
  const models = modelsPath === undefined ? [] : await loadModels(modelsPath)
  if (models.length > 0) await requireMatchingTables(db, models, heading)
  const app = await openApp({ settings: { ...settings, db }, models })
  try {
    await work(app)
  } finally {
    await app.close()
  }
}

/** A command about accounts changes no table under a server that runs. */
async function requireMatchingTables(
  db: string,
  models: readonly ModelSource[],
  heading: string,
): Promise<void> {
  const { steps } = await withDatabase(db, (database) => previewSchema(database, Catalog.from(models), []))
  if (steps.length === 0) return
  throw new ConfigError(heading, [
    `the tables of ${redactDatabaseUrl(db)} are not those of the models; to see why, run: verso schema`,
  ])
}

/** For a flag that may be given several times. */
export function appendOption(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** An id as it stands on the command line. */
export function parseIdArgument(text: string, heading = NOTHING_CHANGED): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text)
  throw new ConfigError(heading, [`"${text}" is no id: ids are whole numbers from 1`])
}

export function writeLine(text: string): void {
  process.stdout.write(`${text}\n`)
}
