// Two people changed a record that was once the same: what became of each field.
import { isSameValue, type Value, type Values } from '../values/value.js'

/** Who changed a field since the base: only we, only they, both alike, or both differently. */
export type Verdict = 'ours' | 'theirs' | 'same' | 'clash'

export interface FieldMerge {
  /** Absent where the past is gone. */
  readonly base?: Value
  readonly ours: Value
  readonly theirs: Value
  readonly verdict: Verdict
}

export interface Merge {
  readonly baseKnown: boolean
  /** Every field that either side changed. */
  readonly fields: Readonly<Record<string, FieldMerge>>
  /** Whether both sides' changes can stand together. */
  readonly mergeable: boolean
}

/** Sets of fields that change only together. */
export type MergeGroups = readonly (readonly string[])[]

/**
 * `base` is the record that our change was made from, or undefined if it is no longer known; `ours` is what we sent, and only
 * that; `theirs` is the record as it is now. Without a base nobody can tell who changed what: what we sent and what is there
 * is either the same or a clash.
 */
export function mergeRecords(
  base: Values | undefined,
  ours: Values,
  theirs: Values,
  groups: MergeGroups = [],
): Merge {
  const fields: Record<string, FieldMerge> = {}
  for (const [name, current] of Object.entries(theirs)) {
    const isSent = Object.hasOwn(ours, name)
    const field = base ? mergeField(base[name] ?? null, isSent ? ours[name] : undefined, current) : undefined
    if (field) fields[name] = field
    else if (!base && isSent) fields[name] = compareField(ours[name] ?? null, current)
  }
  if (base) for (const group of groups) mergeGroup(fields, group, ours)
  const isClear = Object.values(fields).every((field) => field.verdict !== 'clash')
  return { baseKnown: base !== undefined, fields, mergeable: base !== undefined && isClear }
}

/** Whether what we sent can be written on top of what they wrote: nothing of it, left as it was or not, has another value by now. */
export function canApplyOurs({ fields, mergeable }: Merge, ours: Values): boolean {
  return mergeable && Object.keys(ours).every((name) => fields[name]?.verdict !== 'theirs')
}

/** Where both sides changed something of a group, no part of it stands alone; unless what we sent of it is what they wrote. */
function mergeGroup(fields: Record<string, FieldMerge>, group: readonly string[], ours: Values): void {
  const changed = group.flatMap((name) => {
    const field = fields[name]
    return field ? [[name, field] as const] : []
  })
  const weChanged = changed.some(([, { verdict }]) => verdict !== 'theirs')
  const theyChanged = changed.some(([, { verdict }]) => verdict !== 'ours')
  const isTheirs = changed.every(([name, field]) => !Object.hasOwn(ours, name) || isSameMerge(field))
  if (!weChanged || !theyChanged || isTheirs) return
  for (const [name, field] of changed) fields[name] = { ...field, verdict: 'clash' }
}

function isSameMerge({ ours, theirs }: FieldMerge): boolean {
  return isSameValue(ours, theirs)
}

function mergeField(base: Value, sent: Value | undefined, theirs: Value): FieldMerge | undefined {
  const ours = sent === undefined ? base : sent
  const [weChanged, theyChanged] = [!isSameValue(ours, base), !isSameValue(theirs, base)]
  if (!weChanged && !theyChanged) return undefined
  const both = isSameValue(ours, theirs) ? 'same' : 'clash'
  return { base, ours, theirs, verdict: weChanged && theyChanged ? both : weChanged ? 'ours' : 'theirs' }
}

function compareField(ours: Value, theirs: Value): FieldMerge {
  return { ours, theirs, verdict: isSameValue(ours, theirs) ? 'same' : 'clash' }
}
