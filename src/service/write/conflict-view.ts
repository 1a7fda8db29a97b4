// What of a conflict may be told to whoever is refused: the fields that they may read, as they are and as they were.
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
  /** The record as it is, without what is hidden, and without the names of list members. */
  readonly theirs: WireRecord
  /** What can be merged, and may be read. */
  readonly names: ReadonlySet<string>
  /** The grants to read that hold for the record as it is; undefined where everything may be read. */
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
  /** Which of it changes what was there. */
  readonly patched: ReadonlySet<string> | undefined
  /** What is there, as far as it may be read. */
  readonly current: Values
  /** All of it. */
  readonly full: Values
}

/**
 * The past of a field is told where a grant shows it now and where nothing that the grant looks at has changed since: then it
 * showed it in the past, too. Otherwise nobody is told who changed it. What a neighbour was in the past is not looked up.
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
  const past: Values = {}
  for (const name of [...names].filter(isShown)) {
    const [was, is] = [
      await splitByVisibility(context, model, name, base),
      await splitByVisibility(context, model, name, full),
    ]
    // What they do not see may have been changed by others: then their own change is not made from what is there.
    if (isSameValue(was.hidden, is.hidden)) past[name] = was.visible
  }
  const known = new Set(Object.keys(past))
  const unknown = new Set([...names].filter((name) => !known.has(name)))
  const ourKnown = applyPatchToValues(pickPresentFields(known, ours), patched, past)
  const mergedKnown = mergeRecords(past, ourKnown, pickFields(known, current), mergeGroups)
  const mergedUnknown = mergeRecords(
    undefined,
    pickPresentFields(unknown, ours),
    pickFields(unknown, current),
  )
  const isWhole = Object.keys(mergedUnknown.fields).length === 0
  // Whether they changed the rest of a group is not told, not even by a merge that is done or refused.
  const isOpen = (group: readonly string[]) =>
    group.every((name) => known.has(name)) || !group.some((name) => Object.hasOwn(sent, name))
  return {
    baseKnown: isWhole,
    fields: { ...mergedKnown.fields, ...mergedUnknown.fields },
    mergeable: mergedKnown.mergeable && isWhole && mergeGroups.every(isOpen),
  }
}

/** What the viewer sees of a value, and the neighbours in it that they do not see, or that are gone. */
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
  const seen = await filterVisibleIds(context, step.target, related.map(getReferenceId), step.seen)
  const told = related.filter((relatedRecord) => seen.has(getReferenceId(relatedRecord)))
  const hidden = related.filter((relatedRecord) => !seen.has(getReferenceId(relatedRecord)))
  return { visible: Array.isArray(value) ? told : (told[0] ?? null), hidden }
}

function isReadableByGrant({ readable }: Grant, name: string): boolean {
  return !readable || readable.has(name)
}

export function pickFields(names: ReadonlySet<string>, values: Values): Values {
  const picked: Values = {}
  for (const name of names) picked[name] = values[name] ?? null
  return picked
}

function pickPresentFields(names: ReadonlySet<string>, values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)))
}
