// Catalog → tables: made and grown at start. What would lose data is refused unless it is named.
import { StartFaults } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { parseStored } from '../engine/database-condition.js'
import type { Database, Dialect, Transaction } from '../engine/database.js'
import { dropFiles, fileColumns } from './dropped-files.js'
import { fillComputed } from './fill-computed.js'
import { formerColumns, keepFormerAdmins } from './former-admins.js'
import type { FormerFields } from '../sql/field-names.js'
import { keepFormerFields, readFormerFields } from './former-fields.js'
import { areOwnTablesCurrent, makeOwnTables } from './internal-tables.js'
import type { Plan, Step } from './plan.js'
import { laterModels } from './later-models.js'
import type { Referrer } from '../records/references.js'
import { planSchema } from './plan-tables.js'
import { carryOut } from './steps.js'
import { printShape, shapeOf, undeclaredReferrers, type Shape } from './snapshot.js'
import { areSequencesMade, makeSequences } from '../records/sequences.js'
import { parsed, readShapes, saveShape } from './stored-snapshots.js'
import { Tables } from '../sql/table.js'

const LONG = { isLong: true }
/** PostgreSQL keeps a lock for each table, index and sequence until the transaction ends, and has room for some thousands. */
const MODELS_AT_ONCE = 50

/** What would be done, and what stands in the way. Changes nothing but makes sure that the service's own tables are there. */
export async function showPlan(db: Database, catalog: Catalog, drops: readonly string[]): Promise<Plan> {
  const current = await findCurrent(db, catalog, drops)
  if (current) return current
  return db.transaction(async (tx) => {
    await makeOwnTables(tx, db.dialect)
    const shapes = parsed(await readShapes(tx))
    return planSchema(tx, catalog.stored, shapes, [...drops, ...formerColumns(shapes)])
  }, LONG)
}

export interface Applied extends Plan {
  /** What the tables of each model look like now, as text. */
  readonly shapes: ReadonlyMap<string, string>
  /** The relations of models that are kept and not declared. */
  readonly undeclared: readonly Referrer[]
  /** What fields were before. */
  readonly former: FormerFields
}

/**
 * Brings the tables to what the models declare, or refuses with every reason and changes nothing. Whatever can fail is done in the first
 * transaction; where there is much to do, the rest follows in several, each of which leaves tables together with their shapes.
 */
export async function applySchema(
  db: Database,
  catalog: Catalog,
  drops: readonly string[] = [],
): Promise<Applied> {
  const current = await findCurrent(db, catalog, drops)
  if (current) return { ...current, former: await readFormerFields(db.reader) }
  const { later, texts, ...applied } = await db.transaction(
    async (tx) => growFirst(tx, db, catalog, drops),
    LONG,
  )
  const made = new Map(applied.shapes)
  let isOvertaken = false
  for (let next = 0; next < later.length; next += MODELS_AT_ONCE) {
    const models = later.slice(next, next + MODELS_AT_ONCE)
    const shapes = await db.transaction(async (tx) => growLater(tx, db.dialect, models, applied, texts), LONG)
    for (const [name, text] of shapes) made.set(name, text)
    if (shapes.size < models.length) isOvertaken = true
  }
  // Another node was at the same tables in between: what is left to do is planned again.
  if (isOvertaken) return { ...(await applySchema(db, catalog)), steps: applied.steps }
  return { ...applied, shapes: made, former: await readFormerFields(db.reader) }
}

/** What is there, if all tables are as they are declared. Reads without any lock, so that nobody who writes waits for a start. */
async function findCurrent(
  { reader, dialect }: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<Omit<Applied, 'former'> | undefined> {
  if (!(await areOwnTablesCurrent(reader, dialect)) || drops.length > 0) return undefined
  const texts = await readShapes(reader)
  const unchanged = unchangedModels(catalog, texts)
  if (unchanged.size < catalog.stored.length) return undefined
  if (!(await areSequencesMade(reader, catalog.stored))) return undefined
  const undeclared = parsed(new Map([...texts].filter(([name]) => !unchanged.has(name))))
  const plan = await planSchema(reader, [], undeclared, [])
  return { ...plan, shapes: unchanged, undeclared: undeclaredReferrers(undeclared) }
}

interface Grown extends Omit<Applied, 'former'> {
  /** Those whose steps are still to be carried out. */
  readonly later: readonly Model[]
  /** The shapes as they were stored before. */
  readonly texts: ReadonlyMap<string, string>
}

async function growFirst(
  tx: Transaction,
  { dialect, contents }: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<Grown> {
  await makeOwnTables(tx, dialect)
  const texts = await readShapes(tx)
  const unchanged = unchangedModels(catalog, texts)
  const shapes = parsed(new Map([...texts].filter(([name]) => !unchanged.has(name))))
  const changed = catalog.stored.filter(({ name }) => !unchanged.has(name))
  const former = formerColumns(shapes)
  const plan = await planSchema(tx, changed, shapes, [...drops, ...former])
  if (plan.faults.length > 0)
    throw new StartFaults('The tables cannot follow the models without losing data', plan.faults)
  const later = laterModels(plan, changed, MODELS_AT_ONCE)
  const isLater = new Set(later.map(({ name }) => name))
  const steps = plan.steps.filter((step) => !isLater.has(step.model))
  if (former.length > 0) await keepFormerAdmins(tx)
  const tables = new Tables(dialect, catalog)
  const files = fileColumns(shapes)
  for (const step of steps.filter((step) => !isIndex(step) && !isCount(step))) {
    await dropFiles(tx, contents, files, step)
    await carryOut(tx, dialect, step)
    await keepFormerFields(tx, plan, step)
  }
  for (const model of modelsToCompute(steps)) await fillComputed(tx, tables.of(model))
  await makeSequences(
    tx,
    catalog.stored.filter(({ name }) => !isLater.has(name)),
  )
  // Last, because what was filled in may not be unique.
  for (const step of steps.filter(isIndex)) await carryOut(tx, dialect, step)
  for (const step of steps.filter(isCount)) await carryOut(tx, dialect, step)
  const left = undeclaredShapes(catalog, shapes, plan)
  const made = new Map(unchanged)
  for (const model of changed) {
    const neighbours = neighboursOf(catalog, model, shapes.get(model.name), [...left.keys()])
    const text = printed(model, plan, neighbours)
    made.set(model.name, text)
    if (!isLater.has(model.name) && text !== texts.get(model.name)) await saveShape(tx, model.name, text)
  }
  return { ...plan, shapes: made, undeclared: undeclaredReferrers(left), later, texts }
}

/** Nothing of this can fail on what is stored. Answers the shapes of those that nobody else has changed in between. */
async function growLater(
  tx: Transaction,
  dialect: Dialect,
  models: readonly Model[],
  applied: Omit<Applied, 'former'>,
  before: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  const { steps, shapes } = applied
  for (const lock of dialect.lockSchema) await tx.run(lock)
  const now = await readShapes(
    tx,
    models.map(({ name }) => name),
  )
  const own = models.filter(({ name }) => now.get(name) === before.get(name))
  const names = new Set(own.map(({ name }) => name))
  const ownSteps = steps.filter((step) => names.has(step.model))
  for (const step of ownSteps.filter((step) => !isIndex(step) && !isCount(step))) {
    await carryOut(tx, dialect, step)
    await keepFormerFields(tx, applied, step)
  }
  await makeSequences(tx, own)
  for (const step of ownSteps.filter(isIndex)) await carryOut(tx, dialect, step)
  for (const step of ownSteps.filter(isCount)) await carryOut(tx, dialect, step)
  for (const name of names) await saveShape(tx, name, shapes.get(name) ?? '')
  return new Map([...names].map((name) => [name, shapes.get(name) ?? '']))
}

function isIndex(step: Step): boolean {
  return step.kind === 'create-index'
}

/** Comes after all that fills columns. */
function isCount(step: Step): boolean {
  return step.kind === 'count-records'
}

/** The shapes of those whose tables are as they are declared: there is nothing to plan. */
function unchangedModels(catalog: Catalog, texts: ReadonlyMap<string, string>): Map<string, string> {
  const declared = new Set(catalog.stored.map(({ name }) => name))
  const undeclared = [...texts.keys()].filter((name) => !declared.has(name))
  // A command that needs no models knows nothing of what they add to the users.
  const isBare = catalog.models.length === 0
  const unchanged = catalog.stored.flatMap((model): [string, string][] => {
    const text = texts.get(model.name)
    if (text === undefined) return []
    const before = isBare || undeclared.length > 0 ? (parseStored(text) as Shape) : undefined
    const neighbours = neighboursOf(catalog, model, before, undeclared)
    const isAsDeclared = text === printShape({ ...shapeOf(model), neighbours })
    return isAsDeclared || (isBare && before && holds(before, shapeOf(model))) ? [[model.name, text]] : []
  })
  return new Map(unchanged)
}

/** Whether tables of the one shape have all that the other declares. */
function holds(there: Shape, declared: Shape): boolean {
  const has = (all: object | undefined, some: object | undefined) =>
    Object.entries(some ?? {}).every(
      ([name, value]) =>
        JSON.stringify((all as Record<string, unknown> | undefined)?.[name]) === JSON.stringify(value),
    )
  return (
    has(there.columns, declared.columns) &&
    has(there.indexes, declared.indexes) &&
    has(there.links, declared.links) &&
    JSON.stringify(there.counted) === JSON.stringify(declared.counted)
  )
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

function neighboursOf(
  catalog: Catalog,
  model: Model,
  before: Shape | undefined,
  undeclared: readonly string[],
): string[] {
  return [...catalog.neighboursOf(model), ...keptNeighbours(before, undeclared)]
}

/** What such a model said of this one still holds. */
function keptNeighbours(before: Shape | undefined, undeclared: readonly string[]): string[] {
  const isOf = (neighbour: string, model: string) => neighbour.includes(` by ${model}.`)
  return (before?.neighbours ?? []).filter((each) => undeclared.some((model) => isOf(each, model)))
}

function printed(model: Model, plan: Plan, neighbours: readonly string[]): string {
  const { columns, indexes, links, counted = [] } = shapeOf(model)
  return printShape({
    columns: { ...plan.unused.get(model.name), ...columns },
    indexes,
    counted,
    links: { ...plan.unusedLinks.get(model.name), ...links },
    neighbours,
  })
}

/** Once all columns are there: the models with new computed fields. */
function modelsToCompute(steps: readonly Step[]): Set<Model> {
  const added = steps.filter((step) => step.kind === 'add-column')
  return new Set(added.filter((step) => step.field.computed).map((step) => step.declared))
}
