// The tables of a backup, with their columns and keys. Derived from the internal tables of this release and the schema snapshots in the
// database, so a backup needs no models.
import type { Storage } from '../../model/values/field.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import { RESET_LINK_TABLE } from '../auth/reset-links.js'
import type { JsonColumn } from '../engine/columns.js'
import type { Dialect, Queryable } from '../engine/database.js'
import { toTableName } from '../engine/names.js'
import { FILE_TABLE } from '../records/files.js'
import { toLinkTableName } from '../sql/relation.js'
import { DATABASE_ROWS, defineInternalTables } from '../schema/internal-tables.js'
import type { SchemaSnapshot } from '../schema/snapshot.js'

export interface BackupColumn extends JsonColumn {
  /** The digits after the point, of a decimal. */
  readonly scale?: number
}

export interface BackupTable {
  /** Not quoted. */
  readonly name: string
  readonly columns: readonly BackupColumn[]
  /** The columns of the primary key, which is the order of the rows. */
  readonly key: readonly string[]
  /** The column whose values the engine generates. */
  readonly identity?: string
}

/** A restore ends all sessions, and starts without failed logins. The schema is in the header of a backup. */
const OMITTED_TABLES = new Set(['verso_session', RESET_LINK_TABLE, 'verso_login_failure', 'verso_schema'])

/** Leases belong to running nodes, and no node of the backup runs on the restored database. */
const OMITTED_COLUMNS = new Set(['lease', 'leased_until_ms'])

/** A restore stores contents anew, under other keys. */
const OMITTED_FILE_COLUMN = 'key'

/** Rows that belong to a database and not to its data. */
export const OMITTED_ROWS: Readonly<Record<string, string>> = {
  [VERSIONS_TABLE]: `name not in (${DATABASE_ROWS.map((name) => `'${name}'`).join(', ')})`,
}

/** Lists the tables that exist. A database that an earlier release has used may lack some. */
export async function listBackupTables(
  db: Queryable,
  dialect: Dialect,
  snapshots: ReadonlyMap<string, SchemaSnapshot>,
): Promise<BackupTable[]> {
  const tables = [...listInternalTables(dialect), ...[...snapshots].flatMap(listModelTables)]
  const stored: BackupTable[] = []
  for (const table of tables) {
    const rows = await db.all(dialect.listColumns, [table.name])
    // In the order of the table, so that a restored one is equal.
    const columns = rows.flatMap(
      (row) => table.columns.find(({ name }) => name === String(row['name'])) ?? [],
    )
    if (columns.length > 0) stored.push({ ...table, columns })
  }
  return stored
}

function listModelTables([model, { columns, links = {} }]: readonly [string, SchemaSnapshot]): BackupTable[] {
  const own = Object.entries(columns).map(([name, { storage, scale }]) => ({
    name,
    storage: requireStored(storage),
    ...(storage === 'decimal' ? { scale } : {}),
  }))
  return [
    {
      name: toTableName(model),
      columns: [ID_COLUMN, { name: 'version', storage: 'integer' }, ...own],
      key: [ID_COLUMN.name],
      identity: ID_COLUMN.name,
    },
    ...Object.keys(links).map((field) => ({
      name: toLinkTableName(model, field),
      columns: LINK_KEY.map((name) => ({ name, storage: 'integer' as const })),
      key: LINK_KEY,
    })),
  ]
}

const ID_COLUMN = { name: 'id', storage: 'integer' } as const satisfies BackupColumn
const LINK_KEY = ['owner', 'member']

function requireStored(storage: Storage): JsonColumn['storage'] {
  if (storage === 'none') throw new Error('a schema snapshot has a column without a type')
  return storage
}

function listInternalTables(dialect: Dialect): BackupTable[] {
  return Object.entries(defineInternalTables(dialect))
    .filter(([name]) => !OMITTED_TABLES.has(name))
    .map(([name, definitions]) => parseInternalTable(dialect, name, definitions))
}

/** Reads the columns and the key from the definitions that create the table. */
function parseInternalTable(
  { columns: { text }, identity }: Dialect,
  table: string,
  definitions: readonly string[],
): BackupTable {
  const columns: BackupColumn[] = []
  let key: readonly string[] = []
  let identityColumn: string | undefined
  for (const definition of definitions) {
    const [, list] = /^(?:primary key|unique) \((.*)\)$/.exec(definition) ?? []
    if (list !== undefined) {
      if (definition.startsWith('primary')) key = list.split(', ')
      continue
    }
    const space = definition.indexOf(' ')
    const [name, type] = [definition.slice(0, space), definition.slice(space + 1)]
    if (type.includes('primary key')) key = [name]
    if (type === identity) identityColumn = name
    if (OMITTED_COLUMNS.has(name) || (table === FILE_TABLE && name === OMITTED_FILE_COLUMN)) continue
    columns.push({ name, storage: type.startsWith(text.type) ? 'text' : 'integer' })
  }
  return { name: table, columns, key, ...(identityColumn === undefined ? {} : { identity: identityColumn }) }
}
