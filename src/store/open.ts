// Opens a database by its URL. The only file that names both engines.
import { ConfigError } from '../errors.js'
import type { Database } from './engine/database.js'
import type { PostgresOptions } from './postgres/postgres.js'
import type { Diagnosis } from './diagnosis/diagnosis.js'
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
    if (/^[^/]+\/\/[^/?#]*,/.test(url.replace(/\/\/[^/?#]*@/, '//'))) {
      const advice =
        'Name one host: a proxy, a virtual IP or a DNS name that leads to the server that accepts writes'
      throw new ConfigError('The URL of the database names several hosts', [advice])
    }
    const { openPostgres } = await import('./postgres/postgres.js')
    return openPostgres(url, options)
  }
  throw new ConfigError('The database cannot be opened', [
    `"${url.split(':')[0] ?? ''}" is not a known database: use sqlite:path/to/file or postgres://user@host/database`,
  ])
}

export interface DiagnosedSettings {
  readonly poolSize: number
  /** Undefined if it is unknown. */
  readonly diskReserveBytes: number | undefined
}

/** Checks a database without changing it. Every error becomes a diagnosis. */
export async function* diagnoseDatabase(
  url: string,
  { poolSize, diskReserveBytes }: DiagnosedSettings,
): AsyncGenerator<Diagnosis> {
  if (url.startsWith('sqlite:')) {
    const { diagnoseSqlite } = await import('./diagnosis/sqlite-diagnosis.js')
    yield* diagnoseSqlite(url.slice('sqlite:'.length), diskReserveBytes)
  } else {
    const { diagnosePostgres } = await import('./diagnosis/postgres-diagnosis.js')
    yield* diagnosePostgres(url, poolSize)
  }
}
