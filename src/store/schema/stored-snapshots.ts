// Shapes as the database stores them, as text.
import { parseStored } from '../engine/database-condition.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { ACCESS_ENDS } from '../auth/permissions-version.js'
import type { Shape } from './snapshot.js'

export interface WriteState {
  /** Whether the tables are still as they were made for this node: another one may have newer models. */
  readonly isCurrent: boolean
  /** How many sessions, keys and accounts have ended. */
  readonly accessEnds: number
}

/** All that a write of these models must know of what other nodes have done, in one statement. */
export async function writeStateOf(
  db: Queryable & Pick<Transaction, 'once'>,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WriteState> {
  const ask = () => readWriteState(db, shapes, models)
  return db.once ? db.once(`state ${models.join()}`, ask) : ask()
}

export async function isCurrent(
  db: Queryable,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  return (await readWriteState(db, shapes, models)).isCurrent
}

async function readWriteState(
  db: Queryable,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<WriteState> {
  const marks = models.map(() => '?').join(', ')
  const sql = `select model, shape, ${ACCESS_ENDS} as "ends" from verso_schema where model in (${marks})`
  const rows = await db.all(sql, models)
  const current = new Map(rows.map((row) => [row['model'], row['shape']]))
  return {
    isCurrent: models.every((model) => current.get(model) === shapes.get(model)),
    accessEnds: Number(rows[0]?.['ends'] ?? 0),
  }
}

/** As they are stored; of all models, if none are named. */
export async function readShapes(db: Queryable, names?: readonly string[]): Promise<Map<string, string>> {
  const marks = names?.map(() => '?').join(', ') ?? ''
  const where = names ? ` where model in (${marks})` : ''
  const rows = await db.all(`select model, shape from verso_schema${where}`, names)
  return new Map(rows.map((row) => [String(row['model']), String(row['shape'])]))
}

export function parsed(texts: ReadonlyMap<string, string>): Map<string, Shape> {
  return new Map([...texts].map(([name, text]) => [name, parseStored(text) as Shape]))
}

export async function saveShape(tx: Transaction, model: string, text: string): Promise<void> {
  await tx.run('delete from verso_schema where model = ?', [model])
  await tx.run('insert into verso_schema (model, shape) values (?, ?)', [model, text])
}
