import type { Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { countedFields, describeCounted } from '../counters/counted-fields.js'
import type { Queryable } from '../engine/database.js'
import { planLinks } from './plan-links.js'
import { columnShapeOf, keepsValues, shapeOf, type ColumnShape, type Shape } from './snapshot.js'
import { quote, tableName } from '../engine/names.js'
import type { Draft, Plan, Step } from './plan.js'

/** `drops` names the models and fields (`crm.Contact.phone`) that may be lost. */
export async function planSchema(
  db: Queryable,
  models: readonly Model[],
  shapes: ReadonlyMap<string, Shape>,
  drops: readonly string[],
): Promise<Plan> {
  const draft: Draft = { steps: [], faults: [], notes: [], unused: new Map(), unusedLinks: new Map() }
  const wanted = new Set(drops)
  const folded = new Map([...shapes.keys()].map((name) => [name.toLowerCase(), name]))
  for (const model of models) {
    const shape = shapes.get(model.name)
    const twin = folded.get(model.name.toLowerCase())
    const before = draft.steps.length
    if (shape) await planTable(db, model, shape, wanted, draft)
    else if (twin === undefined)
      draft.steps.push({ kind: 'create-table', model: model.name, declared: model })
    else
      draft.faults.push(
        `${model.name}: a model called "${twin}" is stored already: use that name, or drop it first`,
      )
    await planLinks(db, model, shape, wanted, draft)
    planIndexes(model, shape, draft, before)
    if (shape && !isCountedAlready(model, shape, draft)) {
      const count: Step = { kind: 'count-records', model: model.name, declared: model }
      draft.steps.push(count)
    }
  }
  const declared = new Set(models.map((model) => model.name))
  for (const [name, shape] of shapes) {
    if (!declared.has(name)) await planOrphan(db, name, shape, wanted, draft)
  }
  for (const name of wanted) draft.faults.push(`there is nothing called "${name}" that could be dropped`)
  return draft
}

async function planTable(
  db: Queryable,
  model: Model,
  shape: Shape,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  const there = new Map(Object.entries(shape.columns))
  const declared = new Set(Object.keys(shapeOf(model).columns))
  for (const field of model.fields.values()) {
    if (!declared.has(field.name)) continue
    const { was } = field
    const isTaken =
      was !== undefined && there.has(field.name) && (await countValues(db, model.name, field.name)) > 0
    const former = was === undefined || isTaken ? undefined : there.get(was)
    if (former && was !== undefined) {
      // An empty column that was kept under the new name makes room.
      if (there.has(field.name))
        draft.steps.push({ kind: 'drop-column', model: model.name, name: field.name })
      draft.steps.push({ kind: 'rename-column', model: model.name, from: was, to: field.name })
      there.delete(was)
      there.set(field.name, former)
    }
    await planColumn(db, model, field, there.get(field.name), former ? was : field.name, wanted, draft)
    there.delete(field.name)
  }
  for (const [name, column] of there) {
    // SQLite does not tell names apart that differ in case only.
    const twin = [...declared].find((other) => other.toLowerCase() === name.toLowerCase())
    if (twin === undefined) await planUnused(db, model, name, column, wanted, draft)
    else
      draft.faults.push(
        `${model.name}.${twin}: a column called "${name}" is there already: use that name, or write was: "${name}" under a third`,
      )
  }
}

async function planColumn(
  db: Queryable,
  model: Model,
  field: Field,
  column: ColumnShape | undefined,
  storedAs: string | undefined,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  const add: Step = { kind: 'add-column', model: model.name, declared: model, field }
  if (!column) {
    draft.steps.push(add)
    return
  }
  if (keepsValues(column, columnShapeOf(field))) return
  const name = `${model.name}.${field.name}`
  const isEmpty = (await countValues(db, model.name, storedAs ?? field.name)) === 0
  if (wanted.delete(name) || isEmpty) {
    draft.steps.push({ kind: 'drop-column', model: model.name, name: field.name }, add)
    return
  }
  const isNarrower = column.storage === columnShapeOf(field).storage && field.scale < column.scale
  const loss = isNarrower
    ? `cannot have ${field.scale} digits behind the point: the values that are stored have up to ${column.scale}`
    : `cannot become ${field.secret === 'password' ? 'a password' : field.type}: the values that are stored as ${column.storage} would be lost`
  draft.faults.push(`${name} ${loss}. Keep the old type, give the new field another name, or ${toDrop(name)}`)
}

/** The last way out, to be pasted. */
function toDrop(name: string): string {
  return `lose the values: verso schema --apply --drop ${name} (with the same --models and --db)`
}

async function planUnused(
  db: Queryable,
  model: Model,
  name: string,
  column: ColumnShape,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  const full = `${model.name}.${name}`
  if (wanted.delete(full)) {
    draft.steps.push({ kind: 'drop-column', model: model.name, name })
    return
  }
  const count = await countValues(db, model.name, name)
  if (count > 0) {
    const holders = count === 1 ? '1 record holds' : `${count} records hold`
    const renamed = `write was: "${name}" in the field that takes its place${strayFormerName(model, name)}`
    draft.faults.push(
      `${full} is no longer declared, and ${holders} a value in it. Declare it again; or ${renamed}; or ${toDrop(full)}`,
    )
    return
  }
  draft.unused.set(model.name, { ...draft.unused.get(model.name), [name]: column })
  draft.notes.push(`${full} is no longer declared; its column is empty and stays`)
}

/** A `was` that is spelled nearly like a column that is there. */
function strayFormerName(model: Model, column: string): string {
  const former = [...model.fields.values()].flatMap(({ was }) => was ?? [])
  return former.find((was) => didYouMean(was, [column]) !== '') === undefined ? '' : ` (one is misspelled)`
}

/** `before`: how many steps there were before those of this model. */
function planIndexes(model: Model, shape: Shape | undefined, draft: Draft, before: number): void {
  const wanted = shapeOf(model).indexes
  const there = Object.entries(shape?.indexes ?? {})
  const own = draft.steps.slice(before)
  const dropped = new Set(own.flatMap((step) => (step.kind === 'drop-column' ? step.name : [])))
  const stays = ([name, { fields }]: (typeof there)[number]) =>
    Object.hasOwn(wanted, name) && !fields.some((field) => dropped.has(field))
  const kept = new Set(there.filter(stays).map(([name]) => name))
  const gone = there.filter(([name]) => !kept.has(name))
  // An index goes before the columns it stands on, and comes after them.
  draft.steps.unshift(
    ...gone.map(([name, { fields }]): Step => ({ kind: 'drop-index', model: model.name, name, fields })),
  )
  for (const [name, index] of Object.entries(wanted)) {
    if (!kept.has(name)) draft.steps.push({ kind: 'create-index', model: model.name, name, ...index })
  }
}

/** Whether the counters stay right without being made anew; those of a new table are. */
function isCountedAlready(model: Model, shape: Shape, { steps }: Draft): boolean {
  const counted = describeCounted(model)
  if (JSON.stringify(shape.counted) !== JSON.stringify(counted)) return false
  const names = new Set([
    ...(model.archived ? ['archived'] : []),
    ...countedFields(model).map(({ name }) => name),
  ])
  const own = steps.filter((step) => step.model === model.name)
  return !own.some((step) => changedColumns(step).some((name) => names.has(name)))
}

function changedColumns(step: Step): string[] {
  if (step.kind === 'add-column') return [step.field.name]
  if (step.kind === 'drop-column') return [step.name]
  return step.kind === 'rename-column' ? [step.from, step.to] : []
}

async function planOrphan(
  db: Queryable,
  name: string,
  { links = {} }: Shape,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  if (wanted.delete(name)) {
    for (const field of Object.keys(links)) draft.steps.push({ kind: 'drop-link', model: name, field })
    draft.steps.push({ kind: 'drop-table', model: name })
    return
  }
  const [any] = await db.all(`select 1 as "one" from ${quote(tableName(name))} limit 1`)
  if (any) draft.notes.push(`${name} is not declared; its records are kept and not served`)
}

async function countValues(db: Queryable, model: string, column: string): Promise<number> {
  const [row] = await db.all(`select count(${quote(column)}) as "count" from ${quote(tableName(model))}`)
  return Number(row?.['count'])
}
