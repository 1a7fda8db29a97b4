import type { Model } from '../../model/definition/model.js'
import type { Queryable } from '../engine/database.js'
import { quoteIdentifier } from '../engine/names.js'
import { toLinkTableName } from '../sql/relation.js'
import { buildDropCommand, isSameStoredName, type PlanContext } from './plan.js'
import { buildLinkSnapshots, type SchemaSnapshot } from './snapshot.js'

/** Plans the link tables of many-to-many relations. As with columns, stored links are dropped only if `drops` names them. */
export async function planLinks(
  context: PlanContext,
  model: Model,
  snapshot: SchemaSnapshot | undefined,
): Promise<void> {
  const { db, draft } = context
  const storedLinks = new Map(Object.entries(snapshot?.links ?? {}))
  const declared = buildLinkSnapshots(model)
  for (const [field, target] of Object.entries(declared)) {
    const storedName = [...storedLinks.keys()].find((name) => name !== field && isSameStoredName(name, field))
    if (storedName !== undefined) {
      storedLinks.delete(storedName)
      draft.errors.push(
        `${model.name}.${field}: links with the name "${storedName}" already exist: use that name, or a third name with renamedFrom: "${storedName}"`,
      )
      continue
    }
    const former = model.fields.get(field)?.renamedFrom
    const isRenamed = former !== undefined && storedLinks.get(former) === target
    const isTaken = isRenamed && storedLinks.has(field) && (await countLinks(db, model, field)) > 0
    if (isRenamed && !isTaken) {
      // An empty link table that has the new name already is dropped.
      if (storedLinks.delete(field)) draft.steps.push({ kind: 'drop-link', model: model.name, field })
      storedLinks.delete(former)
      draft.steps.push({ kind: 'rename-link', model: model.name, from: former, to: field })
    } else if (storedLinks.get(field) === target) storedLinks.delete(field)
    else if (storedLinks.has(field)) {
      if (!(await canDropLinks(context, model, field, `cannot refer to ${target}`))) continue
      storedLinks.delete(field)
      draft.steps.push({ kind: 'drop-link', model: model.name, field })
      draft.steps.push({ kind: 'create-link', model: model.name, field })
    } else draft.steps.push({ kind: 'create-link', model: model.name, field })
  }
  for (const [field, target] of storedLinks) await planUnusedLinks(context, model, field, target)
}

async function planUnusedLinks(
  context: PlanContext,
  model: Model,
  field: string,
  target: string,
): Promise<void> {
  const { allowedDrops, draft } = context
  const isNamed = allowedDrops.has(`${model.name}.${field}`)
  if (!(await canDropLinks(context, model, field, 'is no longer declared'))) return
  if (isNamed) draft.steps.push({ kind: 'drop-link', model: model.name, field })
  else {
    draft.unusedLinks.set(model.name, { ...draft.unusedLinks.get(model.name), [field]: target })
    draft.notes.push(`${model.name}.${field} is no longer declared; it has no links, and its table is kept`)
  }
}

/** Returns true if the link table is empty or if `drops` names it. Otherwise adds an error to the plan. */
async function canDropLinks(
  { db, allowedDrops, draft }: PlanContext,
  model: Model,
  field: string,
  reason: string,
): Promise<boolean> {
  const name = `${model.name}.${field}`
  if (allowedDrops.delete(name)) return true
  const count = await countLinks(db, model, field)
  if (count === 0) return true
  draft.errors.push(
    `${name} ${reason}, but it has ${count === 1 ? '1 link' : `${count} links`}. ` +
      `Declare it as it was; or write renamedFrom: "${field}" in the field that replaces it; or delete the links: ${buildDropCommand(name)}`,
  )
  return false
}

async function countLinks(db: Queryable, model: Model, field: string): Promise<number> {
  const [row] = await db.all(
    `select count(*) as "count" from ${quoteIdentifier(toLinkTableName(model.name, field))}`,
  )
  return Number(row?.['count'])
}
