// Snapshots as the database stores them: JSON texts by model.
import { parseStoredJson } from '../engine/write-health.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { REVOCATION_COUNT_SQL } from '../auth/permissions-version.js'
import type { SchemaSnapshot } from './snapshot.js'

export interface WritePreconditions {
  /** False if a node with newer models has changed the tables. */
  readonly isSchemaCurrent: boolean
  /** The number of sessions, keys and accounts that were revoked so far. */
  readonly revocationCount: number
}

/** Loads everything that a write of these models must know about the actions of other nodes, in one statement. */
export async function loadWritePreconditions(
  tx: Transaction,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WritePreconditions> {
  return tx.memoize(`state ${models.join()}`, () => readWritePreconditions(tx, snapshots, models))
}

export async function isSchemaCurrent(
  db: Queryable,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  return (await readWritePreconditions(db, snapshots, models)).isSchemaCurrent
}

async function readWritePreconditions(
  db: Queryable,
  snapshots: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WritePreconditions> {
  const marks = models.map(() => '?').join(', ')
  const sql = `select model, shape, ${REVOCATION_COUNT_SQL} as "ends" from verso_schema where model in (${marks})`
  const rows = await db.all(sql, models)
  const current = new Map(rows.map((row) => [row['model'], row['shape']]))
  return {
    isSchemaCurrent: models.every((model) => current.get(model) === snapshots.get(model)),
    revocationCount: Number(rows[0]?.['ends'] ?? 0),
  }
}

/** Reads the stored JSON texts, of all models if `names` is undefined. */
export async function readSnapshotTexts(
  db: Queryable,
  names?: readonly string[],
): Promise<Map<string, string>> {
  const marks = names?.map(() => '?').join(', ') ?? ''
  const where = names ? ` where model in (${marks})` : ''
  const rows = await db.all(`select model, shape from verso_schema${where}`, names)
  return new Map(rows.map((row) => [String(row['model']), String(row['shape'])]))
}

export function parseSnapshots(texts: ReadonlyMap<string, string>): Map<string, SchemaSnapshot> {
  return new Map([...texts].map(([name, text]) => [name, parseStoredJson(text) as SchemaSnapshot]))
}

export async function saveSnapshot(tx: Transaction, model: string, text: string): Promise<void> {
  await tx.run('delete from verso_schema where model = ?', [model])
  await tx.run('insert into verso_schema (model, shape) values (?, ?)', [model, text])
}
