// Catalog → tables: made and grown at start. What would lose data is refused unless it is named.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { parseStoredJson } from '../engine/database-condition.js'
import type { Database, Dialect, Transaction } from '../engine/database.js'
import { removeDroppedFiles, findFileColumns } from './dropped-files.js'
import { fillComputedFields } from './fill-computed.js'
import { listFormerAdminColumns, saveFormerAdmins } from './former-admins.js'
import type { FormerFields } from '../sql/field-names.js'
import { saveFormerFields, readFormerFields } from './former-fields.js'
import { areInternalTablesCurrent, createInternalTables } from './internal-tables.js'
import type { SchemaPlan, SchemaStep } from './plan.js'
import { findDeferrableModels } from './later-models.js'
import type { Referrer } from '../records/references.js'
import { planSchema } from './plan-tables.js'
import { applyStep } from './steps.js'
import { toSnapshotJson, getSnapshot, listUndeclaredReferrers, type SchemaSnapshot } from './snapshot.js'
import { areSequencesCurrent, createSequences } from '../records/sequences.js'
import { parseSnapshots, readSnapshotTexts, saveSnapshot } from './stored-snapshots.js'
import { Tables } from '../sql/table.js'

const LONG_TRANSACTION = { isLong: true }
/** PostgreSQL keeps a lock for each table, index and sequence until the transaction ends, and has room for some thousands. */
const MODELS_PER_TRANSACTION = 50

/** What would be done, and what stands in the way. Changes nothing but makes sure that the service's own tables are there. */
export async function previewSchema(
  db: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<SchemaPlan> {
  const current = await findUnchangedSchema(db, catalog, drops)
  if (current) return current
  return db.transaction(async (tx) => {
    await createInternalTables(tx, db.dialect)
    const snapshots = parseSnapshots(await readSnapshotTexts(tx))
    return planSchema(tx, catalog.storedModels, snapshots, [...drops, ...listFormerAdminColumns(snapshots)])
  }, LONG_TRANSACTION)
}

export interface AppliedSchema extends SchemaPlan {
  /** What the tables of each model look like now, as text. */
  readonly snapshots: ReadonlyMap<string, string>
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
): Promise<AppliedSchema> {
  const current = await findUnchangedSchema(db, catalog, drops)
  if (current) return { ...current, former: await readFormerFields(db.reader) }
  const { later, storedSnapshots, ...applied } = await db.transaction(
    async (tx) => applyNow(tx, db, catalog, drops),
    LONG_TRANSACTION,
  )
  const snapshots = new Map(applied.snapshots)
  let isOutdated = false
  for (let next = 0; next < later.length; next += MODELS_PER_TRANSACTION) {
    const models = later.slice(next, next + MODELS_PER_TRANSACTION)
    const shapes = await db.transaction(
      async (tx) => applyLater(tx, db.dialect, models, applied, storedSnapshots),
      LONG_TRANSACTION,
    )
    for (const [name, text] of shapes) snapshots.set(name, text)
    if (shapes.size < models.length) isOutdated = true
  }
  // Another node was at the same tables in between: what is left to do is planned again.
  if (isOutdated) return { ...(await applySchema(db, catalog)), steps: applied.steps }
  return { ...applied, snapshots: snapshots, former: await readFormerFields(db.reader) }
}

/** What is there, if all tables are as they are declared. Reads without any lock, so that nobody who writes waits for a start. */
async function findUnchangedSchema(
  { reader, dialect }: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<Omit<AppliedSchema, 'former'> | undefined> {
  if (!(await areInternalTablesCurrent(reader, dialect)) || drops.length > 0) return undefined
  const texts = await readSnapshotTexts(reader)
  const unchanged = findUnchangedModels(catalog, texts)
  if (unchanged.size < catalog.storedModels.length) return undefined
  if (!(await areSequencesCurrent(reader, catalog.storedModels))) return undefined
  const undeclared = parseSnapshots(new Map([...texts].filter(([name]) => !unchanged.has(name))))
  const plan = await planSchema(reader, [], undeclared, [])
  return { ...plan, snapshots: unchanged, undeclared: listUndeclaredReferrers(undeclared) }
}

interface FirstPassResult extends Omit<AppliedSchema, 'former'> {
  /** Those whose steps are still to be carried out. */
  readonly later: readonly Model[]
  /** The shapes as they were stored before. */
  readonly storedSnapshots: ReadonlyMap<string, string>
}

async function applyNow(
  tx: Transaction,
  { dialect, blobs }: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<FirstPassResult> {
  await createInternalTables(tx, dialect)
  const storedSnapshots = await readSnapshotTexts(tx)
  const unchanged = findUnchangedModels(catalog, storedSnapshots)
  const snapshots = parseSnapshots(new Map([...storedSnapshots].filter(([name]) => !unchanged.has(name))))
  const changed = catalog.storedModels.filter(({ name }) => !unchanged.has(name))
  const former = listFormerAdminColumns(snapshots)
  const plan = await planSchema(tx, changed, snapshots, [...drops, ...former])
  if (plan.errors.length > 0)
    throw new ConfigError('The tables cannot follow the models without losing data', plan.errors)
  const later = findDeferrableModels(plan, changed, MODELS_PER_TRANSACTION)
  const isLater = new Set(later.map(({ name }) => name))
  const steps = plan.steps.filter((step) => !isLater.has(step.model))
  if (former.length > 0) await saveFormerAdmins(tx)
  const tables = new Tables(dialect, catalog)
  const files = findFileColumns(snapshots)
  for (const step of steps.filter((step) => !isIndexStep(step) && !isCountStep(step))) {
    await removeDroppedFiles(tx, blobs, files, step)
    await applyStep(tx, dialect, step)
    await saveFormerFields(tx, plan, step)
  }
  for (const model of findModelsToCompute(steps)) await fillComputedFields(tx, tables.of(model))
  await createSequences(
    tx,
    catalog.storedModels.filter(({ name }) => !isLater.has(name)),
  )
  // Last, because what was filled in may not be unique.
  for (const step of steps.filter(isIndexStep)) await applyStep(tx, dialect, step)
  for (const step of steps.filter(isCountStep)) await applyStep(tx, dialect, step)
  const left = findUndeclaredSnapshots(catalog, snapshots, plan)
  const made = new Map(unchanged)
  for (const model of changed) {
    const inverseRelations = listInverseRelations(catalog, model, snapshots.get(model.name), [...left.keys()])
    const text = buildSnapshotJson(model, plan, inverseRelations)
    made.set(model.name, text)
    if (!isLater.has(model.name) && text !== storedSnapshots.get(model.name))
      await saveSnapshot(tx, model.name, text)
  }
  return { ...plan, snapshots: made, undeclared: listUndeclaredReferrers(left), later, storedSnapshots }
}

/** Nothing of this can fail on what is stored. Answers the shapes of those that nobody else has changed in between. */
async function applyLater(
  tx: Transaction,
  dialect: Dialect,
  models: readonly Model[],
  applied: Omit<AppliedSchema, 'former'>,
  before: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  const { steps, snapshots } = applied
  for (const lock of dialect.lockSchema) await tx.run(lock)
  const now = await readSnapshotTexts(
    tx,
    models.map(({ name }) => name),
  )
  const own = models.filter(({ name }) => now.get(name) === before.get(name))
  const names = new Set(own.map(({ name }) => name))
  const ownSteps = steps.filter((step) => names.has(step.model))
  for (const step of ownSteps.filter((step) => !isIndexStep(step) && !isCountStep(step))) {
    await applyStep(tx, dialect, step)
    await saveFormerFields(tx, applied, step)
  }
  await createSequences(tx, own)
  for (const step of ownSteps.filter(isIndexStep)) await applyStep(tx, dialect, step)
  for (const step of ownSteps.filter(isCountStep)) await applyStep(tx, dialect, step)
  for (const name of names) await saveSnapshot(tx, name, snapshots.get(name) ?? '')
  return new Map([...names].map((name) => [name, snapshots.get(name) ?? '']))
}

function isIndexStep(step: SchemaStep): boolean {
  return step.kind === 'create-index'
}

/** Comes after all that fills columns. */
function isCountStep(step: SchemaStep): boolean {
  return step.kind === 'count-records'
}

/** The shapes of those whose tables are as they are declared: there is nothing to plan. */
function findUnchangedModels(
  catalog: Catalog,
  storedSnapshots: ReadonlyMap<string, string>,
): Map<string, string> {
  const declared = new Set(catalog.storedModels.map(({ name }) => name))
  const undeclared = [...storedSnapshots.keys()].filter((name) => !declared.has(name))
  // A command that needs no models knows nothing of what they add to the users.
  const hasNoModels = catalog.models.length === 0
  const unchanged = catalog.storedModels.flatMap((model): [string, string][] => {
    const text = storedSnapshots.get(model.name)
    if (text === undefined) return []
    const before =
      hasNoModels || undeclared.length > 0 ? (parseStoredJson(text) as SchemaSnapshot) : undefined
    const neighbours = listInverseRelations(catalog, model, before, undeclared)
    const isAsDeclared = text === toSnapshotJson({ ...getSnapshot(model), neighbours })
    return isAsDeclared || (hasNoModels && before && includesSnapshot(before, getSnapshot(model)))
      ? [[model.name, text]]
      : []
  })
  return new Map(unchanged)
}

/** Whether tables of the one shape have all that the other declares. */
function includesSnapshot(stored: SchemaSnapshot, declared: SchemaSnapshot): boolean {
  const has = (all: object | undefined, some: object | undefined) =>
    Object.entries(some ?? {}).every(
      ([name, value]) =>
        JSON.stringify((all as Record<string, unknown> | undefined)?.[name]) === JSON.stringify(value),
    )
  return (
    has(stored.columns, declared.columns) &&
    has(stored.indexes, declared.indexes) &&
    has(stored.links, declared.links) &&
    JSON.stringify(stored.counted) === JSON.stringify(declared.counted)
  )
}

/** The shapes of models that stay although nobody declares them now. */
function findUndeclaredSnapshots(
  catalog: Catalog,
  snapshots: ReadonlyMap<string, SchemaSnapshot>,
  { steps }: SchemaPlan,
): Map<string, SchemaSnapshot> {
  const declared = new Set(catalog.storedModels.map((model) => model.name))
  const dropped = new Set(steps.filter((step) => step.kind === 'drop-table').map((step) => step.model))
  return new Map([...snapshots].filter(([name]) => !declared.has(name) && !dropped.has(name)))
}

function listInverseRelations(
  catalog: Catalog,
  model: Model,
  before: SchemaSnapshot | undefined,
  undeclared: readonly string[],
): string[] {
  return [...catalog.listDependents(model), ...listUndeclaredInverseRelations(before, undeclared)]
}

/** What such a model said of this one still holds. */
function listUndeclaredInverseRelations(
  before: SchemaSnapshot | undefined,
  undeclared: readonly string[],
): string[] {
  const isOf = (neighbour: string, model: string) => neighbour.includes(` by ${model}.`)
  return (before?.neighbours ?? []).filter((each) => undeclared.some((model) => isOf(each, model)))
}

function buildSnapshotJson(model: Model, plan: SchemaPlan, inverseRelations: readonly string[]): string {
  const { columns, indexes, links, counted = [] } = getSnapshot(model)
  return toSnapshotJson({
    columns: { ...plan.unusedColumns.get(model.name), ...columns },
    indexes,
    counted,
    links: { ...plan.unusedLinks.get(model.name), ...links },
    neighbours: inverseRelations,
  })
}

/** Once all columns are there: the models with new computed fields. */
function findModelsToCompute(steps: readonly SchemaStep[]): Set<Model> {
  const added = steps.filter((step) => step.kind === 'add-column')
  return new Set(added.filter((step) => step.field.computed).map((step) => step.declared))
}
