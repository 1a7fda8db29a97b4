// Creates and migrates the tables of a catalog at start. A migration that would delete data is rejected unless `drops` names the data.
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
/** PostgreSQL holds a lock for each table, index and sequence until the transaction ends, and its lock table has a few thousand entries. */
const MODELS_PER_TRANSACTION = 50

/** Plans the migration without applying it. Only creates missing internal tables. */
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
  /** The snapshot of each model's tables, as JSON text. */
  readonly snapshots: ReadonlyMap<string, string>
  /** The relations of stored models that the catalog does not declare. */
  readonly undeclared: readonly Referrer[]
  readonly former: FormerFields
}

/**
 * Migrates the tables to the models of the catalog, or throws all reasons against it and changes nothing. The first transaction runs every
 * step that can fail. If there are many models, more transactions run the rest; each saves the snapshots of the tables that it changed.
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
  // Another node has changed some of the tables in between, so the rest is planned again.
  if (isOutdated) return { ...(await applySchema(db, catalog)), steps: applied.steps }
  return { ...applied, snapshots: snapshots, former: await readFormerFields(db.reader) }
}

/** Returns the stored schema if it matches the catalog. Takes no locks, so that a start does not block writers of other nodes. */
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
  /** The models whose steps later transactions apply. */
  readonly later: readonly Model[]
  /** The JSON texts of the snapshots before this transaction. */
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
  // Indexes come last, because the values that were filled in may violate a unique index.
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

/** Applies deferred steps, which cannot fail because of stored data. Skips models that another node has changed in between. Returns the new snapshots. */
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

/** Counting comes after every step that fills columns. */
function isCountStep(step: SchemaStep): boolean {
  return step.kind === 'count-records'
}

/** Finds the models whose tables match their declaration, with their stored snapshots. */
function findUnchangedModels(
  catalog: Catalog,
  storedSnapshots: ReadonlyMap<string, string>,
): Map<string, string> {
  const declared = new Set(catalog.storedModels.map(({ name }) => name))
  const undeclared = [...storedSnapshots.keys()].filter((name) => !declared.has(name))
  // Commands that load no models do not know the fields that models add to users.
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

/** Returns true if the stored snapshot contains everything that the declared one has. */
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

/** Finds the snapshots of stored models that the catalog does not declare and the plan does not drop. */
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

/** Lists the inverse relations that undeclared models contribute. They stay in the snapshot because their tables stay. */
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

/** Finds the models with new computed fields, which are filled after all columns exist. */
function findModelsToCompute(steps: readonly SchemaStep[]): Set<Model> {
  const added = steps.filter((step) => step.kind === 'add-column')
  return new Set(added.filter((step) => step.field.computed).map((step) => step.declared))
}
