// Three-way merge of concurrent changes of a record, field by field.
import { isSameValue, type Value, type Values } from '../values/value.js'

/** Names the side that changed a field since the base version: only we, only they, both to the same value, or both to different ones. */
export type Verdict = 'ours' | 'theirs' | 'same' | 'clash'

export interface FieldMerge {
  /** Absent if the log no longer has the base version. */
  readonly base?: Value
  readonly ours: Value
  readonly theirs: Value
  readonly verdict: Verdict
}

export interface Merge {
  readonly baseKnown: boolean
  /** The fields that at least one side changed. */
  readonly fields: Readonly<Record<string, FieldMerge>>
  /** True if no field clashes. */
  readonly mergeable: boolean
}

/** Sets of fields that merge as one. */
export type MergeGroups = readonly (readonly string[])[]

/**
 * `base` is the record that our change is based on, or undefined if the log no longer has it. `ours` has only the values that we sent.
 * `theirs` is the current record. Without a base, a sent value that differs from the current one is a clash.
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

/** True if our values can be written over theirs: no field that we sent has changed to another value since. */
export function canApplyOurs({ fields, mergeable }: Merge, ours: Values): boolean {
  return mergeable && Object.keys(ours).every((name) => fields[name]?.verdict !== 'theirs')
}

/** If both sides changed fields of a group, all of them clash, unless the values that we sent equal the current ones. */
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
