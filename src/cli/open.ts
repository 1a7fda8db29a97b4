// Opens the database for a command and turns connection errors into one readable line.
import { accessSync } from 'node:fs'
import { VersoError, ConfigError } from '../errors.js'
import type { Catalog } from '../model/catalog/catalog.js'
import type { App } from '../service/context/app.js'
import { createApp, type AppOptions } from '../service/create-app.js'
import { DEFAULT_SETTINGS, type Settings } from '../service/context/settings.js'
import type { Database } from '../store/engine/database.js'
import { openDatabase } from '../store/open.js'
import { previewSchema } from '../store/schema/apply.js'

export async function openApp(options: AppOptions): Promise<App> {
  return translateOpenErrors(options.settings?.db ?? DEFAULT_SETTINGS.db, () => createApp(options))
}

/** Rejects an SQLite file that does not exist, for commands that must not create one: the path is probably mistyped. */
export function requireDatabaseFile(url: string): void {
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined
  if (file === undefined) return
  try {
    accessSync(file)
  } catch (error) {
    const isHidden = error instanceof Error && 'code' in error && error.code === 'EACCES'
    const reason = isHidden
      ? 'permission denied; run this as the user of the service'
      : 'the file does not exist; check --db'
    throw new ConfigError('The database cannot be opened', [`${url}: ${reason}`])
  }
}

/** Opens the database without an App; the tables stay as they are. */
export async function useDatabase<T>(
  url: string,
  work: (db: Database) => Promise<T>,
  settings: Partial<Settings> = {},
): Promise<T> {
  const { poolSize, statementTimeoutMs } = { ...DEFAULT_SETTINGS, ...settings }
  return translateOpenErrors(url, async () => {
    const db = await openDatabase(url, { poolSize, statementTimeoutMs })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  })
}

/** Fails if the schema would change: a command must not migrate tables while a server uses them. */
export async function requireMatchingTables(
  database: Database,
  catalog: Catalog,
  { url, heading }: { readonly url: string; readonly heading: string },
): Promise<void> {
  const { steps } = await previewSchema(database, catalog, [])
  if (steps.length === 0) return
  throw new ConfigError(heading, [
    `the tables of ${redactDatabaseUrl(url)} do not match the models; to see the differences, run: verso schema`,
  ])
}

/** Returns the database URL without its user and password. */
export function redactDatabaseUrl(url: string): string {
  if (!URL.canParse(url) || url.startsWith('sqlite:')) return url
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

async function translateOpenErrors<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isBusy = error instanceof VersoError && error.kind === 'busy'
    const cause = isBusy ? (error.cause ?? error) : error
    if (!(cause instanceof Error) || (!isBusy && !isEnvironmentError(cause))) throw error
    const meaning = isBusy && cause !== error ? ` (${error.message})` : ''
    const message = `${redactDatabaseUrl(url)}: ${describeOpenError(cause)}${meaning}`
    throw new ConfigError('The database cannot be opened', [message])
  }
}

const PASSWORD_REQUIRED_TEXT =
  'the server requires a password: set VERSO_DB to postgres://user:password@host/database (a command line is visible to other users of this computer)'

// Error codes of the network, the file system and SQLite; and the PostgreSQL classes for connections, authorization,
// unknown database, resources and operator intervention.
const ENVIRONMENT_ERROR_CODE = /^(E[A-Z]+|ERR_SQLITE_ERROR|08...|28...|3D...|42501|53...|57...)$/

function isEnvironmentError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  if (error instanceof VersoError) return error.kind === 'busy'
  const code = 'code' in error ? String(error.code) : ''
  return ENVIRONMENT_ERROR_CODE.test(code) || /timeout|terminated/i.test(error.message)
}

function describeOpenError(error: Error): string {
  // Connecting to localhost tries two addresses; the AggregateError that holds both errors has no message of its own.
  const all = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  return all
    .map(({ message }) => (/password must be a string/.test(message) ? PASSWORD_REQUIRED_TEXT : message))
    .join('; ')
}
