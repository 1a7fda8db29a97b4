// Url → Database. The only file that knows there are two.
import { StartFaults } from '../errors.js'
import type { Database } from './database.js'
import { openPostgres, type PostgresOptions } from './postgres.js'
import { openSqlite, type SqliteOptions } from './sqlite.js'

export type OpenOptions = PostgresOptions & SqliteOptions

export async function openDatabase(url: string, options: OpenOptions): Promise<Database> {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length), options)
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url, options)
  throw new StartFaults('The database cannot be opened', [
    `"${url.split(':')[0] ?? ''}" is not known: use sqlite:path/to/file or postgres://user@host/database`,
  ])
}
