// Catalog → tables: made and grown at start. What would lose data is refused unless it is named.
import { StartFaults } from '../errors.js'
import type { Catalog } from '../model/catalog.js'
import type { Model } from '../model/model.js'
import { defaultOf } from '../model/values.js'
import type { Database, Dialect, Queryable, Transaction } from './database.js'
import { UniqueViolation } from './database.js'
import { fillComputed } from './fill-computed.js'
import { LOG_TABLE } from './log.js'
import { indexName, quote, tableName } from './names.js'
import { makeOwnTables } from './own-tables.js'
import type { Plan, Step } from './plan.js'
import { undeclaredReferrers, type Referrer } from './references.js'
import { planSchema } from './schema-plan.js'
import { printShape, shapeOf, type Shape } from './shape.js'
import { linkTable } from './relation-sql.js'
import { makeSequences } from './sequences.js'
import { columnOf, encode, Tables } from './table.js'

const LONG = { isLong: true }

/** What would be done, and what stands in the way. Changes nothing but makes sure that the service's own tables are there. */
export async function showPlan(db: Database, catalog: Catalog, drops: readonly string[]): Promise<Plan> {
  return db.transaction(async (tx) => {
    await makeOwnTables(tx, db.dialect)
    return planSchema(tx, catalog.stored, await readShapes(tx), drops)
  }, LONG)
}

export interface Applied extends Plan {
  /** What the tables of each model look like now, as text. */
  readonly shapes: ReadonlyMap<string, string>
  /** The relations of models that are kept and not declared. */
  readonly undeclared: readonly Referrer[]
}

/** Brings the tables to what the models declare, in one transaction, or refuses with every reason. */
export async function applySchema(
  db: Database,
  catalog: Catalog,
  drops: readonly string[] = [],
): Promise<Applied> {
  return db.transaction(async (tx) => {
    await makeOwnTables(tx, db.dialect)
    const shapes = await readShapes(tx)
    const plan = await planSchema(tx, catalog.stored, shapes, drops)
    if (plan.faults.length > 0)
      throw new StartFaults('The tables cannot follow the models without losing data', plan.faults)
    const isIndex = (step: Step) => step.kind === 'create-index'
    const tables = new Tables(db.dialect, catalog)
    for (const step of plan.steps.filter((step) => !isIndex(step))) await carryOut(tx, tables, step)
    for (const model of modelsToCompute(plan)) await fillComputed(tx, tables.of(model))
    await makeSequences(tx, catalog.served)
    // Last, because what was filled in may not be unique.
    for (const step of plan.steps.filter(isIndex)) await carryOut(tx, tables, step)
    const made = new Map<string, string>()
    const left = undeclaredShapes(catalog, shapes, plan)
    for (const model of catalog.stored) {
      const before = shapes.get(model.name)
      const neighbours = [...catalog.neighboursOf(model), ...keptNeighbours(before, [...left.keys()])]
      made.set(model.name, await saveShape(tx, model, plan, before, neighbours))
    }
    return { ...plan, shapes: made, undeclared: undeclaredReferrers(left) }
  }, LONG)
}

/** The shapes of models that stay although nobody declares them now. */
function undeclaredShapes(
  catalog: Catalog,
  shapes: ReadonlyMap<string, Shape>,
  { steps }: Plan,
): Map<string, Shape> {
  const declared = new Set(catalog.stored.map((model) => model.name))
  const dropped = new Set(steps.filter((step) => step.kind === 'drop-table').map((step) => step.model))
  return new Map([...shapes].filter(([name]) => !declared.has(name) && !dropped.has(name)))
}

/** What such a model said of this one still holds. */
function keptNeighbours(before: Shape | undefined, undeclared: readonly string[]): string[] {
  const isOf = (neighbour: string, model: string) => neighbour.includes(` by ${model}.`)
  return (before?.neighbours ?? []).filter((each) => undeclared.some((model) => isOf(each, model)))
}

/** Whether the tables of these models are still as they were made for this node: another one may have newer models. */
export async function isCurrent(
  db: Queryable,
  shapes: ReadonlyMap<string, string>,
  models: readonly string[],
): Promise<boolean> {
  const marks = models.map(() => '?').join(', ')
  const rows = await db.all(`select model, shape from verso_schema where model in (${marks})`, models)
  const current = new Map(rows.map((row) => [row['model'], row['shape']]))
  return models.every((model) => current.get(model) === shapes.get(model))
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
  neighbours: readonly string[],
): Promise<string> {
  const { columns, indexes, links } = shapeOf(model)
  const text = printShape({
    columns: { ...plan.unused.get(model.name), ...columns },
    indexes,
    links: { ...plan.unusedLinks.get(model.name), ...links },
    neighbours,
  })
  if (before && printShape(before) === text) return text
  await tx.run('delete from verso_schema where model = ?', [model.name])
  await tx.run('insert into verso_schema (model, shape) values (?, ?)', [model.name, text])
  return text
}

async function carryOut(tx: Transaction, tables: Tables, step: Step): Promise<void> {
  const { dialect } = tables
  const table = quote(tableName(step.model))
  switch (step.kind) {
    case 'create-table': {
      const { stored } = tables.of(step.declared)
      const columns = stored
        .map((field) => `, ${quote(field.name)} ${columnOf(dialect, field).type}`)
        .join('')
      const definition = `"id" ${dialect.identity}, "version" ${dialect.columns.integer.type} not null${columns}`
      await tx.run(`create table ${table} (${definition})${dialect.tableSuffix}`)
      return startIds(tx, dialect, step.model)
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
      return
    case 'create-link':
      return createLinks(tx, dialect, linkTable(step.model, step.field))
    case 'rename-link':
      return renameLinks(tx, linkTable(step.model, step.from), linkTable(step.model, step.to))
    case 'drop-link':
      await tx.run(`drop table ${quote(linkTable(step.model, step.field))}`)
  }
}

async function createLinks(tx: Transaction, dialect: Dialect, name: string): Promise<void> {
  const { type } = dialect.columns.integer
  const columns = `"owner" ${type} not null, "member" ${type} not null, primary key ("owner", "member")`
  await tx.run(`create table ${quote(name)} (${columns})${dialect.tableSuffix}`)
  await indexLinks(tx, name)
}

async function renameLinks(tx: Transaction, from: string, to: string): Promise<void> {
  await tx.run(`alter table ${quote(from)} rename to ${quote(to)}`)
  await tx.run(`drop index if exists ${quote(indexName(from, false, ['member']))}`)
  await indexLinks(tx, to)
}

/** To find the owners of a member. */
async function indexLinks(tx: Transaction, name: string): Promise<void> {
  const index = indexName(name, false, ['member'])
  await tx.run(`create index ${quote(index)} on ${quote(name)} ("member", "owner")`)
}

/** Records that were there before get the default of a new field. Their versions stay. */
async function fillDefault(
  tx: Transaction,
  dialect: Dialect,
  { model, field }: Step & { kind: 'add-column' },
): Promise<void> {
  const value = defaultOf(field, new Date().toISOString())
  if (value === null) return
  await tx.run(`update ${quote(tableName(model))} set ${quote(field.name)} = ?`, [
    encode(dialect, field, value),
  ])
}

/** A model that was dropped and comes back goes on after the ids that the Log knows: none is given twice. */
async function startIds(tx: Transaction, dialect: Dialect, model: string): Promise<void> {
  const [row] = await tx.all(`select max(record) as "last" from ${LOG_TABLE} where model = ?`, [model])
  const last = row?.['last'] ?? null
  if (last !== null) await tx.run(dialect.startIdsAfter(tableName(model), Number(last)))
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
