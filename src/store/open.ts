// Opens a database by its URL. The only file that names both engines.
import { ConfigError } from '../errors.js'
import type { Database } from './engine/database.js'
import type { PostgresOptions } from './postgres/postgres.js'
import type { SqliteOptions } from './sqlite/sqlite.js'

/** A database for tests, which is removed when it closes. */
export const MEMORY_URL = 'sqlite::memory:'

export type DatabaseOptions = PostgresOptions & SqliteOptions

export async function openDatabase(url: string, options: DatabaseOptions): Promise<Database> {
  // Dynamic imports: only the modules of the used engine are loaded.
  if (url.startsWith('sqlite:')) {
    if (url === MEMORY_URL) return (await import('./sqlite/memory.js')).openMemory(options)
    const { openSqlite } = await import('./sqlite/sqlite.js')
    return openSqlite(url.slice('sqlite:'.length), options)
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres/postgres.js')
    return openPostgres(url, options)
  }
  throw new ConfigError('The database cannot be opened', [
    `"${url.split(':')[0] ?? ''}" is not a known database: use sqlite:path/to/file or postgres://user@host/database`,
  ])
}
