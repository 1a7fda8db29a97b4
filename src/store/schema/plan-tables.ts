import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { describeCounters } from '../counters/counted-fields.js'
import type { Queryable } from '../engine/database.js'
import { planLinks } from './plan-links.js'
import {
  buildColumnSnapshot,
  canKeepValues,
  buildColumnSnapshots,
  buildIndexSnapshots,
  type ColumnSnapshot,
  type SchemaSnapshot,
} from './snapshot.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import {
  buildDropCommand,
  isSameStoredName,
  type PlanContext,
  type SchemaPlan,
  type SchemaPlanDraft,
  type SchemaStep,
} from './plan.js'

/** Plans the steps from the stored snapshots to the models. `drops` names the models and fields (`crm.Contact.phone`) whose data may be deleted. */
export async function planSchema(
  db: Queryable,
  models: readonly Model[],
  snapshots: ReadonlyMap<string, SchemaSnapshot>,
  drops: readonly string[],
): Promise<SchemaPlan> {
  const draft: SchemaPlanDraft = {
    steps: [],
    errors: [],
    notes: [],
    unusedColumns: new Map(),
    unusedLinks: new Map(),
  }
  const context = { db, allowedDrops: new Set(drops), draft }
  for (const model of models) {
    const snapshot = snapshots.get(model.name)
    const previousSteps = draft.steps.length
    if (snapshot) await planTable(context, model, snapshot)
    else planNewTable(draft, model, [...snapshots.keys()])
    await planLinks(context, model, snapshot)
    planIndexes(draft, model, snapshot, previousSteps)
    if (snapshot && !areCountersCurrent(model, snapshot, draft)) {
      const count: SchemaStep = { kind: 'count-records', model: model.name, declared: model }
      draft.steps.push(count)
    }
  }
  const declared = new Set(models.map((model) => model.name))
  for (const [name, snapshot] of snapshots) {
    if (!declared.has(name)) await planUndeclaredModel(context, name, snapshot)
  }
  for (const name of context.allowedDrops) draft.errors.push(`nothing to drop has the name "${name}"`)
  return draft
}

function planNewTable(draft: SchemaPlanDraft, model: Model, storedModels: readonly string[]): void {
  const storedName = storedModels.find((name) => isSameStoredName(name, model.name))
  if (storedName === undefined) draft.steps.push({ kind: 'create-table', model: model.name, declared: model })
  else
    draft.errors.push(
      `${model.name}: a model with the name "${storedName}" is already stored: use that name, or drop it first`,
    )
}

async function planTable(context: PlanContext, model: Model, snapshot: SchemaSnapshot): Promise<void> {
  const { db, draft } = context
  const storedColumns = new Map(Object.entries(snapshot.columns))
  const declared = new Set(Object.keys(buildColumnSnapshots(model)))
  for (const field of model.fields.values()) {
    if (!declared.has(field.name)) continue
    const { renamedFrom } = field
    const isTaken =
      renamedFrom !== undefined &&
      storedColumns.has(field.name) &&
      (await countStoredValues(db, model.name, field.name)) > 0
    const former = renamedFrom === undefined || isTaken ? undefined : storedColumns.get(renamedFrom)
    if (former && renamedFrom !== undefined) {
      // An empty column that has the new name already is dropped.
      if (storedColumns.has(field.name))
        draft.steps.push({ kind: 'drop-column', model: model.name, name: field.name })
      draft.steps.push({ kind: 'rename-column', model: model.name, from: renamedFrom, to: field.name })
      storedColumns.delete(renamedFrom)
      storedColumns.set(field.name, former)
    }
    const column = storedColumns.get(field.name)
    const storedName = former && renamedFrom !== undefined ? renamedFrom : field.name
    await planColumn(context, model, field, column && { column, name: storedName })
    storedColumns.delete(field.name)
  }
  for (const [name, column] of storedColumns) {
    const declaredName = [...declared].find((other) => isSameStoredName(other, name))
    if (declaredName === undefined) await planUnusedColumn(context, model, name, column)
    else
      draft.errors.push(
        `${model.name}.${declaredName}: a column with the name "${name}" already exists: use that name, or a third name with renamedFrom: "${name}"`,
      )
  }
}

interface StoredColumn {
  readonly column: ColumnSnapshot
  /** The current name of the column. The plan may rename it. */
  readonly name: string
}

async function planColumn(
  { db, allowedDrops, draft }: PlanContext,
  model: Model,
  field: Field,
  stored: StoredColumn | undefined,
): Promise<void> {
  const add: SchemaStep = { kind: 'add-column', model: model.name, declared: model, field }
  if (!stored) {
    draft.steps.push(add)
    return
  }
  const { column } = stored
  if (canKeepValues(column, buildColumnSnapshot(field))) return
  const name = `${model.name}.${field.name}`
  const isEmpty = (await countStoredValues(db, model.name, stored.name)) === 0
  if (allowedDrops.delete(name) || isEmpty) {
    draft.steps.push({ kind: 'drop-column', model: model.name, name: field.name }, add)
    return
  }
  const isNarrower = column.storage === buildColumnSnapshot(field).storage && field.scale < column.scale
  const loss = isNarrower
    ? `cannot have ${field.scale} decimal places: the stored values have up to ${column.scale}`
    : `cannot become ${field.secret === 'password' ? 'a password' : field.type}: the values stored as ${column.storage} would be lost`
  draft.errors.push(
    `${name} ${loss}. Keep the old type, give the new field another name, or delete the values: ${buildDropCommand(name)}`,
  )
}

async function planUnusedColumn(
  { db, allowedDrops, draft }: PlanContext,
  model: Model,
  name: string,
  column: ColumnSnapshot,
): Promise<void> {
  const full = `${model.name}.${name}`
  if (allowedDrops.delete(full)) {
    draft.steps.push({ kind: 'drop-column', model: model.name, name })
    return
  }
  const count = await countStoredValues(db, model.name, name)
  if (count > 0) {
    const holders = count === 1 ? '1 record has' : `${count} records have`
    const renamed = `write renamedFrom: "${name}" in the field that replaces it${explainMisspelledRename(model, name)}`
    draft.errors.push(
      `${full} is no longer declared, but ${holders} a value in it. Declare it again; or ${renamed}; or delete the values: ${buildDropCommand(full)}`,
    )
    return
  }
  draft.unusedColumns.set(model.name, { ...draft.unusedColumns.get(model.name), [name]: column })
  draft.notes.push(`${full} is no longer declared; its column is empty and is kept`)
}

/** A hint if some field has a `renamedFrom` that is similar to the name of the column. */
function explainMisspelledRename(model: Model, column: string): string {
  const former = [...model.fields.values()].flatMap(({ renamedFrom }) => renamedFrom ?? [])
  return former.find((name) => didYouMean(name, [column]) !== '') === undefined ? '' : ` (one is misspelled)`
}

/** `previousSteps` is the number of steps that precede those of this model. */
function planIndexes(
  draft: SchemaPlanDraft,
  model: Model,
  snapshot: SchemaSnapshot | undefined,
  previousSteps: number,
): void {
  const declared = buildIndexSnapshots(model)
  const stored = Object.entries(snapshot?.indexes ?? {})
  const own = draft.steps.slice(previousSteps)
  const dropped = new Set(own.flatMap((step) => (step.kind === 'drop-column' ? step.name : [])))
  const canStay = ([name, { fields }]: (typeof stored)[number]) =>
    Object.hasOwn(declared, name) && !fields.some((field) => dropped.has(field))
  const remaining = new Set(stored.filter(canStay).map(([name]) => name))
  const removed = stored.filter(([name]) => !remaining.has(name))
  // An index is dropped before its columns, and created after them.
  draft.steps.unshift(
    ...removed.map(([name, { fields }]): SchemaStep => ({
      kind: 'drop-index',
      model: model.name,
      name,
      fields,
    })),
  )
  for (const [name, index] of Object.entries(declared)) {
    if (!remaining.has(name)) draft.steps.push({ kind: 'create-index', model: model.name, name, ...index })
  }
}

/** Returns true if the counters of a stored table stay correct without a rebuild. */
function areCountersCurrent(model: Model, snapshot: SchemaSnapshot, { steps }: SchemaPlanDraft): boolean {
  const counted = describeCounters(model)
  if (JSON.stringify(snapshot.counted) !== JSON.stringify(counted)) return false
  const names = new Set([
    ...(model.archived ? ['archived'] : []),
    ...model.countedFields.map(({ name }) => name),
  ])
  const own = steps.filter((step) => step.model === model.name)
  return !own.some((step) => listChangedColumns(step).some((name) => names.has(name)))
}

function listChangedColumns(step: SchemaStep): string[] {
  if (step.kind === 'add-column') return [step.field.name]
  if (step.kind === 'drop-column') return [step.name]
  return step.kind === 'rename-column' ? [step.from, step.to] : []
}

async function planUndeclaredModel(
  { db, allowedDrops, draft }: PlanContext,
  name: string,
  { links = {} }: SchemaSnapshot,
): Promise<void> {
  if (allowedDrops.delete(name)) {
    for (const field of Object.keys(links)) draft.steps.push({ kind: 'drop-link', model: name, field })
    draft.steps.push({ kind: 'drop-table', model: name })
    return
  }
  const [any] = await db.all(`select 1 as "one" from ${quoteIdentifier(toTableName(name))} limit 1`)
  if (any) draft.notes.push(`${name} is not declared; its records are kept but not served`)
}

async function countStoredValues(db: Queryable, model: string, column: string): Promise<number> {
  const [row] = await db.all(
    `select count(${quoteIdentifier(column)}) as "count" from ${quoteIdentifier(toTableName(model))}`,
  )
  return Number(row?.['count'])
}
