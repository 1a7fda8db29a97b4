// What the commands about users, roles and keys share: they act as nobody, and work while a server runs.
import type { Command } from 'commander'
import { ConfigError } from '../errors.js'
import { Catalog, type ModelSource } from '../model/catalog/catalog.js'
import type { App } from '../service/context/app.js'
import type { Settings } from '../service/context/settings.js'
import { previewSchema } from '../store/schema/schema.js'
import { loadModels } from './models/models.js'
import { openApp, requireDatabase, shownDatabase, withDatabase } from './open.js'
import { addSettings, readSettings, type CommandName, type Flags } from './settings/settings.js'

export function subcommand(command: Command, name: CommandName, usage: string, description: string): Command {
  return addSettings(command.command(usage).description(description), name)
}

export interface Opening {
  /** Makes a database that is not there. */
  readonly mayCreate?: boolean
  /** What faults stand under. */
  readonly heading?: string
  /** Where a command needs others than a server has. */
  readonly settings?: Partial<Settings>
}

const UNCHANGED = 'Nothing was changed'

/** Accounts need no models: without them, tables of models stay as they are. With them, they must be as they are already. */
export async function withAccounts(
  name: CommandName,
  flags: Flags,
  work: (app: App) => Promise<void>,
  { mayCreate = false, heading = UNCHANGED, settings = {} }: Opening = {},
): Promise<void> {
  const { db, models: place } = readSettings(name, flags, process.env)
  if (!mayCreate) requireDatabase(db)
  const models = place === undefined ? [] : await loadModels(place)
  if (models.length > 0) await requireTables(db, models, heading)
  const app = await openApp({ settings: { ...settings, db }, models })
  try {
    await work(app)
  } finally {
    await app.close()
  }
}

/** A command about accounts changes no table under a server that runs. */
async function requireTables(db: string, models: readonly ModelSource[], heading: string): Promise<void> {
  const { steps } = await withDatabase(db, (database) => previewSchema(database, Catalog.from(models), []))
  if (steps.length === 0) return
  throw new ConfigError(heading, [
    `the tables of ${shownDatabase(db)} are not those of the models; to see why, run: verso schema`,
  ])
}

/** For a flag that may be given several times. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** An id as it stands on the command line. */
export function idFrom(text: string, heading = UNCHANGED): number {
  if (/^[1-9][0-9]{0,14}$/.test(text)) return Number(text)
  throw new ConfigError(heading, [`"${text}" is no id: ids are whole numbers from 1`])
}

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
