import type { Model } from '../../model/definition/model.js'
import type { Queryable } from '../engine/database.js'
import { quote } from '../engine/names.js'
import { linkTable } from '../sql/relation.js'
import type { Draft } from './plan.js'
import { shapeOf, type Shape } from './snapshot.js'

/** What is to be done with the tables of many-to-many relations; as with columns, nothing that is held is lost unless it is named. */
export async function planLinks(
  db: Queryable,
  model: Model,
  shape: Shape | undefined,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  const there = new Map(Object.entries(shape?.links ?? {}))
  const declared = shapeOf(model).links ?? {}
  for (const [field, target] of Object.entries(declared)) {
    // SQLite does not tell names apart that differ in case only.
    const twin = [...there.keys()].find((name) => name !== field && isSameName(name, field))
    if (twin !== undefined) {
      there.delete(twin)
      draft.faults.push(
        `${model.name}.${field}: links called "${twin}" are there already: use that name, or write was: "${twin}" under a third`,
      )
      continue
    }
    const former = model.fields.get(field)?.was
    const isRenamed = former !== undefined && there.get(former) === target
    const isTaken = isRenamed && there.has(field) && (await countLinks(db, model, field)) > 0
    if (isRenamed && !isTaken) {
      // An empty table that was kept under the new name makes room.
      if (there.delete(field)) draft.steps.push({ kind: 'drop-link', model: model.name, field })
      there.delete(former)
      draft.steps.push({ kind: 'rename-link', model: model.name, from: former, to: field })
    } else if (there.get(field) === target) there.delete(field)
    else if (there.has(field)) {
      if (!(await mayDrop(db, model, field, wanted, draft, `cannot lead to ${target}`))) continue
      there.delete(field)
      draft.steps.push({ kind: 'drop-link', model: model.name, field })
      draft.steps.push({ kind: 'create-link', model: model.name, field })
    } else draft.steps.push({ kind: 'create-link', model: model.name, field })
  }
  for (const [field, target] of there) await planUnused(db, model, field, target, wanted, draft)
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

async function planUnused(
  db: Queryable,
  model: Model,
  field: string,
  target: string,
  wanted: Set<string>,
  draft: Draft,
): Promise<void> {
  const isNamed = wanted.has(`${model.name}.${field}`)
  if (!(await mayDrop(db, model, field, wanted, draft, 'is no longer declared'))) return
  if (isNamed) draft.steps.push({ kind: 'drop-link', model: model.name, field })
  else {
    draft.unusedLinks.set(model.name, { ...draft.unusedLinks.get(model.name), [field]: target })
    draft.notes.push(`${model.name}.${field} is no longer declared; it holds no links, and its table stays`)
  }
}

/** Whether nothing would be lost, or what would be was named; else a fault. */
async function mayDrop(
  db: Queryable,
  model: Model,
  field: string,
  wanted: Set<string>,
  draft: Draft,
  why: string,
): Promise<boolean> {
  const name = `${model.name}.${field}`
  if (wanted.delete(name)) return true
  const count = await countLinks(db, model, field)
  if (count === 0) return true
  const drop = `verso schema --apply --drop ${name} (with the same --models and --db)`
  draft.faults.push(
    `${name} ${why}, and it holds ${count === 1 ? '1 link' : `${count} links`}. ` +
      `Declare it as it was; or write was: "${field}" in the field that takes its place; or lose the links: ${drop}`,
  )
  return false
}

async function countLinks(db: Queryable, model: Model, field: string): Promise<number> {
  const [row] = await db.all(`select count(*) as "count" from ${quote(linkTable(model.name, field))}`)
  return Number(row?.['count'])
}
