// The last steps of a restore, after its data was compared with the backup: values that were purged since, and numbers that clients hold.
import { Catalog } from '../../model/catalog/catalog.js'
import type { RestoreClaim } from '../../store/backup/restore-tables.js'
import { parseBackupRows } from '../../store/backup/restored-rows.js'
import type { Database } from '../../store/engine/database.js'
import { PURGE_TABLE, type Purge } from '../../store/log/purges.js'
import { readFormerFields } from '../../store/schema/former-fields.js'
import { Tables } from '../../store/sql/table.js'
import { repeatPurges, type RepeatedPurges } from '../maintenance/repeated-purges.js'
import { readSteadyClock } from '../clock/clock-sync.js'
import { raiseRestoredNumbers } from '../maintenance/restored-numbers.js'
import type { BackupHeader } from './backup.js'
import { FRAME_TYPES, readFrames } from './backup-format.js'

export interface CompletionOptions {
  /** Purges of later times, from a journal or a newer backup. */
  readonly purges?: readonly Purge[]
  /** True if the source was stopped before the backup and never starts again. No client has seen a later state then, so all numbers stay. */
  readonly isMoved?: boolean
}

/** Needs no models: purges and numbers concern the stored tables, whether or not they are declared. */
export async function completeRestore(
  db: Database,
  claim: RestoreClaim,
  { takenAtMs, databaseId }: Pick<BackupHeader, 'takenAtMs' | 'databaseId'>,
  { purges = [], isMoved = false }: CompletionOptions,
): Promise<RepeatedPurges> {
  const catalog = Catalog.from([])
  const tables = new Tables(db.dialect, catalog, await readFormerFields(db.reader))
  const app = { db, catalog, tables, clock: await readSteadyClock(db) }
  // A folder may have backups of several databases, whose records have the same ids.
  const ownPurges = purges.filter(({ database = databaseId }) => database === (databaseId ?? database))
  const repeated = await repeatPurges(app, claim, ownPurges)
  if (!isMoved) await raiseRestoredNumbers(app, claim, `the backup of ${new Date(takenAtMs).toISOString()}`)
  return repeated
}

/** Reads the list of purges out of a backup. */
export async function readBackupPurges(source: AsyncIterable<Uint8Array>): Promise<Purge[]> {
  const purges: Purge[] = []
  let database: number | undefined
  let names: readonly string[] = []
  let isPurgeTable = false
  for await (const { type, payload } of readFrames(source)) {
    if (type === FRAME_TYPES.header) {
      const { tables, databaseId } = JSON.parse(payload.toString()) as BackupHeader
      database = databaseId
      names = tables.find(({ name }) => name === PURGE_TABLE)?.columns.map(({ name }) => name) ?? []
    } else if (type === FRAME_TYPES.table)
      isPurgeTable = (JSON.parse(payload.toString()) as { readonly name: string }).name === PURGE_TABLE
    else if (type === FRAME_TYPES.rows && isPurgeTable)
      purges.push(...parseBackupRows(payload.toString()).map((row) => ({ ...toPurge(names, row), database })))
  }
  return purges
}

function toPurge(names: readonly string[], values: readonly unknown[]): Purge {
  const row = Object.fromEntries(names.map((name, index) => [name, values[index]]))
  return {
    model: String(row['model']),
    id: Number(row['record']),
    seq: Number(row['seq']),
    atMs: Number(row['at_ms']),
    isDeleted: Number(row['deleted']) === 1,
    fields: JSON.parse(String(row['fields'])) as Purge['fields'],
  }
}
