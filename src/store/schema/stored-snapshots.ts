// Snapshots as the database stores them: JSON texts by model.
import { parseStoredJson } from '../engine/write-health.js'
import type { Queryable, Transaction } from '../engine/database.js'
import type { SchemaSnapshot } from './snapshot.js'

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
