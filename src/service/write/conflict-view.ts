// Selects the part of a conflict that the principal may see: the readable fields, with their current and earlier values.
import { mergeRecords, type Merge } from '../../model/write/merge.js'
import { applyPatchToValues } from '../../model/write/merge-patch.js'
import { isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { buildStep } from '../../model/query/path.js'
import type { Grant } from '../../model/access/permissions.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { evaluateOptionalCriteria } from '../access/record-access.js'
import { readVisible, filterVisibleIds, getSelect } from '../access/visible-records.js'
import type { Context } from '../context/context.js'

export interface VisibleFields {
  readonly model: Model
  /** The current record without hidden fields and without the names of list members. */
  readonly theirs: WireRecord
  /** The fields that can be merged and read. */
  readonly names: ReadonlySet<string>
  /** The read grants that hold for the current record; undefined if everything is readable. */
  readonly grants: readonly Grant[] | undefined
}

export async function readVisibleFields(
  context: Context,
  table: Table,
  record: WireRecord,
): Promise<VisibleFields> {
  const { model } = table
  const merged = [...model.fields.values()].filter(
    (field) => (field.type === 'binary' || isReadByDefault(field)) && isWritable(field),
  )
  const permissions = context.principal.permissions?.of(model)
  if (!permissions)
    return { model, theirs: record, names: new Set(merged.map(({ name }) => name)), grants: undefined }
  const reading = permissions.grantsFor('read')
  const conditions = reading.map(({ where }) => where)
  const holds = await evaluateOptionalCriteria(context.db, table, record.id, conditions)
  const grants = reading.filter((_, index) => holds[index])
  const select = getSelect(context, model, 'own')
  const theirs = (await readVisible(context, model, record.id, select)) ?? {
    id: record.id,
    version: record.version,
  }
  const isVisible = ({ name, type }: { readonly name: string; readonly type: string }) =>
    type === 'binary' ? grants.some((grant) => isReadableByGrant(grant, name)) : Object.hasOwn(theirs, name)
  return { model, theirs, names: new Set(merged.filter(isVisible).map(({ name }) => name)), grants }
}

export interface MergeSides {
  readonly base: Values | undefined
  readonly sent: Values
  /** The fields that a merge patch changes. */
  readonly patched: ReadonlySet<string> | undefined
  /** The readable current values. */
  readonly current: Values
  /** All current values. */
  readonly full: Values
}

/**
 * Merges the fields that the principal can see. The earlier value of a field is visible if a grant shows the field now and no field in the
 * grant's condition has changed since: then the grant held at that time, too. Otherwise the answer does not say who changed it. Related
 * records are taken as they are today.
 */
export async function mergeVisibleFields(
  context: Context,
  { model, names, grants }: VisibleFields,
  { base, sent, patched, current, full }: MergeSides,
): Promise<Merge> {
  const { mergeGroups } = model
  const ours = pickPresentFields(names, sent)
  if (!base || !grants)
    return mergeRecords(
      base && pickFields(names, base),
      applyPatchToValues(ours, patched, base ?? {}),
      current,
      mergeGroups,
    )
  const isSame = (name: string) => isSameValue(base[name] ?? null, full[name] ?? null)
  const showing = grants.filter(
    ({ conditionFields }) => conditionFields && [...conditionFields].every(isSame),
  )
  const isShown = (name: string) => showing.some((grant) => isReadableByGrant(grant, name))
  const visibleBase: Values = {}
  for (const name of [...names].filter(isShown)) {
    const [was, is] = [
      await splitByVisibility(context, model, name, base),
      await splitByVisibility(context, model, name, full),
    ]
    // Other users may have changed members that this principal cannot see. Then the sent list was not made from the current one.
    if (isSameValue(was.hidden, is.hidden)) visibleBase[name] = was.visible
  }
  const known = new Set(Object.keys(visibleBase))
  const unknown = new Set([...names].filter((name) => !known.has(name)))
  const ourKnown = applyPatchToValues(pickPresentFields(known, ours), patched, visibleBase)
  const mergedKnown = mergeRecords(visibleBase, ourKnown, pickFields(known, current), mergeGroups)
  const mergedUnknown = mergeRecords(
    undefined,
    pickPresentFields(unknown, ours),
    pickFields(unknown, current),
  )
  const isWhole = Object.keys(mergedUnknown.fields).length === 0
  // A merge must not reveal whether the hidden fields of a group have changed, neither by its success nor by its refusal.
  const isOpen = (group: readonly string[]) =>
    group.every((name) => known.has(name)) || !group.some((name) => Object.hasOwn(sent, name))
  return {
    baseKnown: isWhole,
    fields: { ...mergedKnown.fields, ...mergedUnknown.fields },
    mergeable: mergedKnown.mergeable && isWhole && mergeGroups.every(isOpen),
  }
}

/** Splits a value into the related records that the principal can see and the others. */
async function splitByVisibility(
  context: Context,
  model: Model,
  name: string,
  values: Values,
): Promise<{ readonly visible: Value; readonly hidden: readonly Value[] }> {
  const { permissions } = context.principal
  const field = model.fields.get(name)
  const value = values[name] ?? null
  if (!permissions || !field?.relation || value === null) return { visible: value, hidden: [] }
  const related = (Array.isArray(value) ? value : [value]) as readonly Value[]
  const step = buildStep(permissions, model, field)
  const visibleIds = await filterVisibleIds(context, step.target, related.map(getReferenceId), step.visible)
  const visible = related.filter((relatedRecord) => visibleIds.has(getReferenceId(relatedRecord)))
  const hidden = related.filter((relatedRecord) => !visibleIds.has(getReferenceId(relatedRecord)))
  return { visible: Array.isArray(value) ? visible : (visible[0] ?? null), hidden }
}

function isReadableByGrant({ readable }: Grant, name: string): boolean {
  return !readable || readable.has(name)
}

export function pickFields(names: Iterable<string>, values: Values): Values {
  const picked: Values = {}
  for (const name of names) picked[name] = values[name] ?? null
  return picked
}

function pickPresentFields(names: ReadonlySet<string>, values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)))
}
