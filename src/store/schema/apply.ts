// Creates and migrates the tables of a catalog at start. A migration that would delete data is rejected unless `drops` names the data.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { computeValues, toValues } from '../../model/definition/record-values.js'
import { LONG_TRANSACTION, type Database, type Dialect, type Transaction } from '../engine/database.js'
import { removeDroppedFiles, findFileColumns } from './dropped-files.js'
import { listFormerAdminColumns, saveFormerAdmins } from './former-admins.js'
import type { FormerFields } from '../sql/field-names.js'
import { saveFormerFields, readFormerFields } from './former-fields.js'
import { areInternalTablesCurrent, createInternalTables } from './internal-tables.js'
import { findDeferrableModels, type SchemaPlan, type SchemaStep } from './plan.js'
import type { Referrer } from '../records/references.js'
import { planSchema } from './plan-tables.js'
import { applyStep } from './steps.js'
import {
  buildSnapshotJson,
  findUndeclaredSnapshots,
  findUnchangedModels,
  listInverseRelations,
} from './catalog-snapshots.js'
import { listUndeclaredReferrers } from './snapshot.js'
import { areSequencesCurrent, createSequences } from '../records/sequences.js'
import { parseSnapshots, readSnapshotTexts, saveSnapshot } from './stored-snapshots.js'
import { encodeValue } from '../sql/column.js'
import { Tables, type Table } from '../sql/table.js'
import { quoteIdentifier } from '../engine/names.js'
import { readById } from '../records/records.js'

/** PostgreSQL holds a lock for each table, index and sequence until the transaction ends, and its lock table has a few thousand entries. */
const MODELS_PER_TRANSACTION = 50
const COMPUTE_BATCH_RECORDS = 500

/** Plans the migration without applying it. Only creates missing internal tables. */
export async function previewSchema(
  db: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<SchemaPlan> {
  const current = await findUnchangedSchema(db, catalog, drops)
  if (current) return current
  const preview = db.transaction<never>(async (tx) => {
    await createInternalTables(tx, db.dialect)
    const snapshots = parseSnapshots(await readSnapshotTexts(tx))
    const allDrops = [...drops, ...listFormerAdminColumns(snapshots)]
    throw new Preview(await planSchema(tx, catalog.storedModels, snapshots, allDrops))
  }, LONG_TRANSACTION)
  return preview.catch((error: unknown) => {
    if (error instanceof Preview) return error.plan
    throw error
  })
}

/** Rolls back the transaction of a preview: its internal tables are only for the plan. */
class Preview extends Error {
  constructor(readonly plan: SchemaPlan) {
    super('the transaction of a preview ends')
  }
}

export interface AppliedSchema extends SchemaPlan {
  /** The snapshot of each model's tables, as JSON text. */
  readonly snapshots: ReadonlyMap<string, string>
  /** The relations of stored models that the catalog does not declare. */
  readonly undeclaredReferrers: readonly Referrer[]
  readonly formerFields: FormerFields
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
  if (current) return { ...current, formerFields: await readFormerFields(db.reader) }
  const firstPass = await db.transaction(async (tx) => applyNow(tx, db, catalog, drops), LONG_TRANSACTION)
  const { applied, later } = firstPass
  const snapshots = new Map(applied.snapshots)
  let isOutdated = false
  for (let next = 0; next < later.length; next += MODELS_PER_TRANSACTION) {
    const models = later.slice(next, next + MODELS_PER_TRANSACTION)
    const saved = await db.transaction(
      async (tx) => applyLater(tx, db.dialect, models, firstPass),
      LONG_TRANSACTION,
    )
    for (const [name, text] of saved) snapshots.set(name, text)
    if (saved.size < models.length) isOutdated = true
  }
  // Another node has changed some of the tables in between, so the rest is planned again.
  if (isOutdated) return { ...(await applySchema(db, catalog)), steps: applied.steps }
  return { ...applied, snapshots, formerFields: await readFormerFields(db.reader) }
}

/** Returns the stored schema if it matches the catalog. Takes no locks, so that a start does not block writers of other nodes. */
async function findUnchangedSchema(
  { reader, dialect }: Database,
  catalog: Catalog,
  drops: readonly string[],
): Promise<Omit<AppliedSchema, 'formerFields'> | undefined> {
  if (!(await areInternalTablesCurrent(reader, dialect)) || drops.length > 0) return undefined
  const texts = await readSnapshotTexts(reader)
  const unchanged = findUnchangedModels(catalog, texts)
  if (unchanged.size < catalog.storedModels.length) return undefined
  if (!(await areSequencesCurrent(reader, catalog.storedModels))) return undefined
  const undeclared = parseSnapshots(new Map([...texts].filter(([name]) => !unchanged.has(name))))
  const plan = await planSchema(reader, [], undeclared, [])
  return { ...plan, snapshots: unchanged, undeclaredReferrers: listUndeclaredReferrers(undeclared) }
}

interface FirstPassResult {
  readonly applied: Omit<AppliedSchema, 'formerFields'>
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
  const formerColumns = listFormerAdminColumns(snapshots)
  const plan = await planSchema(tx, changed, snapshots, [...drops, ...formerColumns])
  if (plan.errors.length > 0)
    throw new ConfigError(
      'The database schema cannot be changed to these models without losing data',
      plan.errors,
    )
  const later = findDeferrableModels(plan, changed, MODELS_PER_TRANSACTION)
  const isLater = new Set(later.map(({ name }) => name))
  const steps = plan.steps.filter((step) => !isLater.has(step.model))
  if (formerColumns.length > 0) await saveFormerAdmins(tx)
  const tables = new Tables(dialect, catalog)
  const files = findFileColumns(snapshots)
  await applySteps(tx, dialect, steps, {
    applyTableStep: async (step) => {
      await removeDroppedFiles(tx, blobs, files, step)
      await applyStep(tx, dialect, step)
      await saveFormerFields(tx, plan, step)
    },
    fillColumns: async () => {
      for (const model of findModelsToCompute(steps)) await fillComputedFields(tx, tables.of(model))
      const models = catalog.storedModels.filter(({ name }) => !isLater.has(name))
      await createSequences(tx, models)
    },
  })
  const undeclared = findUndeclaredSnapshots(catalog, snapshots, plan)
  const current = new Map(unchanged)
  for (const model of changed) {
    const inverseRelations = listInverseRelations(catalog, model, snapshots.get(model.name), [
      ...undeclared.keys(),
    ])
    const text = buildSnapshotJson(model, plan, inverseRelations)
    current.set(model.name, text)
    if (!isLater.has(model.name) && text !== storedSnapshots.get(model.name))
      await saveSnapshot(tx, model.name, text)
  }
  const applied = { ...plan, snapshots: current, undeclaredReferrers: listUndeclaredReferrers(undeclared) }
  return { applied, later, storedSnapshots }
}

/** Applies deferred steps, which cannot fail because of stored data. Skips models that another node has changed in between. Returns the new snapshots. */
async function applyLater(
  tx: Transaction,
  dialect: Dialect,
  models: readonly Model[],
  { applied, storedSnapshots }: FirstPassResult,
): Promise<Map<string, string>> {
  const { steps, snapshots } = applied
  for (const lock of dialect.lockSchema) await tx.run(lock)
  const now = await readSnapshotTexts(
    tx,
    models.map(({ name }) => name),
  )
  const own = models.filter(({ name }) => now.get(name) === storedSnapshots.get(name))
  const names = new Set(own.map(({ name }) => name))
  const ownSteps = steps.filter((step) => names.has(step.model))
  await applySteps(tx, dialect, ownSteps, {
    applyTableStep: async (step) => {
      await applyStep(tx, dialect, step)
      await saveFormerFields(tx, applied, step)
    },
    fillColumns: () => createSequences(tx, own),
  })
  for (const name of names) await saveSnapshot(tx, name, snapshots.get(name) ?? '')
  return new Map([...names].map((name) => [name, snapshots.get(name) ?? '']))
}

interface StepPhases {
  /** Applies a step that neither creates an index nor rebuilds counters. */
  readonly applyTableStep: (step: SchemaStep) => Promise<void>
  /** Runs after all table steps. */
  readonly fillColumns: () => Promise<void>
}

/** Applies the steps. Indexes and counters come last: they depend on the values that the migration fills in, which can violate a unique index. */
async function applySteps(
  tx: Transaction,
  dialect: Dialect,
  steps: readonly SchemaStep[],
  { applyTableStep, fillColumns }: StepPhases,
): Promise<void> {
  const isIndexStep = ({ kind }: SchemaStep) => kind === 'create-index'
  const isCountStep = ({ kind }: SchemaStep) => kind === 'count-records'
  for (const step of steps) if (!isIndexStep(step) && !isCountStep(step)) await applyTableStep(step)
  await fillColumns()
  for (const step of steps.filter(isIndexStep)) await applyStep(tx, dialect, step)
  for (const step of steps.filter(isCountStep)) await applyStep(tx, dialect, step)
}

/** Finds the models with new computed fields, which are filled after all columns exist. */
function findModelsToCompute(steps: readonly SchemaStep[]): Set<Model> {
  const added = steps.filter((step) => step.kind === 'add-column')
  return new Set(added.filter((step) => step.field.computed).map((step) => step.declared))
}

/** Computes the computed fields of every record. The versions of the records do not change. */
async function fillComputedFields(tx: Transaction, table: Table): Promise<void> {
  const computed = table.storedFields.filter((field) => field.computed)
  const sets = computed.map((field) => `${quoteIdentifier(field.name)} = ?`).join(', ')
  for (let last = 0; ;) {
    const rows = await tx.all(`select "id" from ${table.name} where "id" > ? order by "id" limit ?`, [
      last,
      COMPUTE_BATCH_RECORDS,
    ])
    for (const row of rows) {
      last = Number(row['id'])
      const record = (await readById(tx, table, last)) ?? {}
      const values = computeValues(table.model, toValues(table.model, record))
      const params = computed.map((field) => encodeValue(table.dialect, field, values[field.name] ?? null))
      await tx.run(`update ${table.name} set ${sets} where "id" = ?`, [...params, last])
    }
    if (rows.length < COMPUTE_BATCH_RECORDS) return
  }
}
