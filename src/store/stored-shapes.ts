// Shapes as the database stores them, as text.
import type { Queryable, Transaction } from './database.js'
import type { Shape } from './shape.js'

/** Whether the tables of these models are still as they were made for this node: another one may have newer models. */
export async function isCurrent(
  db: Queryable & Pick<Transaction, 'once'>,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  const ask = () => areCurrent(db, shapes, models)
  return db.once ? db.once(`current ${models.join()}`, ask) : ask()
}

async function areCurrent(
  db: Queryable,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  const marks = models.map(() => '?').join(', ')
  const rows = await db.all(`select model, shape from verso_schema where model in (${marks})`, models)
  const current = new Map(rows.map((row) => [row['model'], row['shape']]))
  return models.every((model) => current.get(model) === shapes.get(model))
}

/** As they are stored; of all models, if none are named. */
export async function readShapes(db: Queryable, names?: readonly string[]): Promise<Map<string, string>> {
  const marks = names?.map(() => '?').join(', ') ?? ''
  const where = names ? ` where model in (${marks})` : ''
  const rows = await db.all(`select model, shape from verso_schema${where}`, names)
  return new Map(rows.map((row) => [String(row['model']), String(row['shape'])]))
}

export function parsed(texts: ReadonlyMap<string, string>): Map<string, Shape> {
  return new Map([...texts].map(([name, text]) => [name, JSON.parse(text) as Shape]))
}

export async function saveShape(tx: Transaction, model: string, text: string): Promise<void> {
  await tx.run('delete from verso_schema where model = ?', [model])
  await tx.run('insert into verso_schema (model, shape) values (?, ?)', [model, text])
}
