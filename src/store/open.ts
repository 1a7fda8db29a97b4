// Url → Database. The only file that knows there are two.
import { ConfigError } from '../errors.js'
import type { Database } from './engine/database.js'
import type { PostgresOptions } from './postgres/postgres.js'
import type { SqliteOptions } from './sqlite/sqlite.js'

export type DatabaseOptions = PostgresOptions & SqliteOptions

export async function openDatabase(url: string, options: DatabaseOptions): Promise<Database> {
  // Whoever uses the one need not load the other.
  if (url.startsWith('sqlite:')) {
    const { openSqlite } = await import('./sqlite/sqlite.js')
    return openSqlite(url.slice('sqlite:'.length), options)
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres/postgres.js')
    return openPostgres(url, options)
  }
  throw new ConfigError('The database cannot be opened', [
    `"${url.split(':')[0] ?? ''}" is not known: use sqlite:path/to/file or postgres://user@host/database`,
  ])
}
