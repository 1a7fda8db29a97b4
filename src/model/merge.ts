// Two people changed a record that was once the same: what became of each field.
import { sameValue, type Value, type Values } from './value.js'

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

/**
 * `base` is the record that our change was made from, or undefined if it is no longer known; `ours` is what we sent, and only
 * that; `theirs` is the record as it is now. Without a base nobody can tell who changed what: what we sent and what is there
 * is either the same or a clash.
 */
export function merge(base: Values | undefined, ours: Values, theirs: Values): Merge {
  const fields: Record<string, FieldMerge> = {}
  for (const [name, now] of Object.entries(theirs)) {
    const isSent = Object.hasOwn(ours, name)
    const field = base ? mergeField(base[name] ?? null, isSent ? ours[name] : undefined, now) : undefined
    if (field) fields[name] = field
    else if (!base && isSent) fields[name] = compareField(ours[name] ?? null, now)
  }
  const isClear = Object.values(fields).every((field) => field.verdict !== 'clash')
  return { baseKnown: base !== undefined, fields, mergeable: base !== undefined && isClear }
}

function mergeField(base: Value, sent: Value | undefined, theirs: Value): FieldMerge | undefined {
  const ours = sent === undefined ? base : sent
  const [weChanged, theyChanged] = [!sameValue(ours, base), !sameValue(theirs, base)]
  if (!weChanged && !theyChanged) return undefined
  const both = sameValue(ours, theirs) ? 'same' : 'clash'
  return { base, ours, theirs, verdict: weChanged && theyChanged ? both : weChanged ? 'ours' : 'theirs' }
}

function compareField(ours: Value, theirs: Value): FieldMerge {
  return { ours, theirs, verdict: sameValue(ours, theirs) ? 'same' : 'clash' }
}
