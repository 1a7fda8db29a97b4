// Catalog → tables: made and grown at start. What would lose data is refused unless it is named.
import { StartFaults } from '../errors.js'
import type { Catalog } from '../model/catalog.js'
import type { Model } from '../model/model.js'
import type { Database, Dialect, Queryable, Transaction } from './database.js'
import { UniqueViolation } from './database.js'
import { fillComputed } from './fill-computed.js'
import { planSchema, type Plan, type Step } from './schema-plan.js'
import { shapeOf, type Shape } from './shape.js'
import { columnOf, encode, quote, tableName, tableOf } from './table.js'

const PATIENCE_MS = 60_000

/** What would be done, and what stands in the way. Changes nothing but makes sure that the service's own tables are there. */
export async function showPlan(db: Database, catalog: Catalog, drops: readonly string[]): Promise<Plan> {
  return db.transaction(
    async (tx) => {
      await prepare(tx, db.dialect)
      return planSchema(tx, catalog.stored, await readShapes(tx), drops)
    },
    { patienceMs: PATIENCE_MS },
  )
}

/** Brings the tables to what the models declare, in one transaction, or refuses with every reason. */
export async function applySchema(
  db: Database,
  catalog: Catalog,
  drops: readonly string[] = [],
): Promise<Plan> {
  return db.transaction(
    async (tx) => {
      await prepare(tx, db.dialect)
      const shapes = await readShapes(tx)
      const plan = await planSchema(tx, catalog.stored, shapes, drops)
      if (plan.faults.length > 0)
        throw new StartFaults('The tables cannot follow the models without losing data', plan.faults)
      for (const step of plan.steps) await carryOut(tx, db.dialect, step)
      for (const model of modelsToCompute(plan)) await fillComputed(tx, tableOf(db.dialect, model))
      for (const model of catalog.stored) await saveShape(tx, model, plan, shapes.get(model.name))
      return plan
    },
    { patienceMs: PATIENCE_MS },
  )
}

async function prepare(tx: Transaction, dialect: Dialect): Promise<void> {
  for (const lock of dialect.lockSchema) await tx.run(lock)
  const { columns, identity, tableSuffix } = dialect
  const [text, integer] = [columns.text.type, columns.integer.type]
  const seq = identity
  const own = {
    verso_schema: `model ${text} primary key, shape ${text} not null`,
    verso_log:
      `seq ${seq}, model ${text} not null, record ${integer} not null, version ${integer} not null, ` +
      `action ${text} not null, by_user ${integer}, at_ms ${integer} not null, changes ${text} not null, ` +
      `unique (model, record, version)`,
    verso_session: `hash ${text} primary key, user_id ${integer} not null, created_ms ${integer} not null, seen_ms ${integer} not null`,
    verso_idempotency:
      `user_id ${integer} not null, key ${text} not null, digest ${text} not null, answer ${text}, ` +
      `created_ms ${integer} not null, primary key (user_id, key)`,
    verso_login_failure: `key ${text} primary key, since_ms ${integer} not null, failures ${integer} not null`,
  }
  for (const [name, definition] of Object.entries(own)) {
    await tx.run(`create table if not exists ${name} (${definition})${tableSuffix}`)
  }
}

async function readShapes(db: Queryable): Promise<Map<string, Shape>> {
  const rows = await db.all('select model, shape from verso_schema')
  return new Map(rows.map((row) => [String(row['model']), JSON.parse(String(row['shape'])) as Shape]))
}

async function saveShape(
  tx: Transaction,
  model: Model,
  plan: Plan,
  before: Shape | undefined,
): Promise<void> {
  const declared = shapeOf(model)
  const shape: Shape = {
    columns: { ...plan.unused.get(model.name), ...declared.columns },
    indexes: declared.indexes,
  }
  const text = JSON.stringify(shape)
  if (before && JSON.stringify(before) === text) return
  await tx.run('delete from verso_schema where model = ?', [model.name])
  await tx.run('insert into verso_schema (model, shape) values (?, ?)', [model.name, text])
}

async function carryOut(tx: Transaction, dialect: Dialect, step: Step): Promise<void> {
  const table = quote(tableName(step.model))
  switch (step.kind) {
    case 'create-table': {
      const { stored } = tableOf(dialect, step.declared)
      const columns = stored
        .map((field) => `, ${quote(field.name)} ${columnOf(dialect, field).type}`)
        .join('')
      const definition = `"id" ${dialect.identity}, "version" ${dialect.columns.integer.type} not null${columns}`
      await tx.run(`create table ${table} (${definition})${dialect.tableSuffix}`)
      return
    }
    case 'add-column':
      await tx.run(
        `alter table ${table} add column ${quote(step.field.name)} ${columnOf(dialect, step.field).type}`,
      )
      await fillDefault(tx, dialect, step)
      return
    case 'rename-column':
      await tx.run(`alter table ${table} rename column ${quote(step.from)} to ${quote(step.to)}`)
      return
    case 'drop-column':
      await tx.run(`alter table ${table} drop column ${quote(step.name)}`)
      return
    case 'drop-table':
      await tx.run(`drop table ${table}`)
      await tx.run('delete from verso_schema where model = ?', [step.model])
      return
    case 'create-index':
      return createIndex(tx, table, step)
    case 'drop-index':
      await tx.run(`drop index if exists ${quote(step.name)}`)
  }
}

/** Records that were there before get the default of a new field. Their versions stay. */
async function fillDefault(
  tx: Transaction,
  dialect: Dialect,
  step: Step & { kind: 'add-column' },
): Promise<void> {
  const { field, model } = step
  if (field.default === undefined || field.default === 'now') return
  const value = encode(dialect, field, field.default)
  await tx.run(`update ${quote(tableName(model))} set ${quote(field.name)} = ?`, [value])
}

/** Once all columns are there: the models with new computed fields. */
function modelsToCompute(plan: Plan): Set<Model> {
  const added = plan.steps.filter((step) => step.kind === 'add-column')
  return new Set(added.filter((step) => step.field.computed).map((step) => step.declared))
}

async function createIndex(
  tx: Transaction,
  table: string,
  step: Step & { kind: 'create-index' },
): Promise<void> {
  const columns = step.fields.map(quote).join(', ')
  try {
    await tx.run(`create ${step.unique ? 'unique ' : ''}index ${quote(step.name)} on ${table} (${columns})`)
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error
    const fault = `${step.model}: ${step.fields.join(' and ')} cannot be unique: several records have the same`
    throw new StartFaults('The tables cannot follow the models', [fault])
  }
}
