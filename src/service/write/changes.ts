import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import { isSameValue, type Value, type Values } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { NewChange } from '../../store/log/log.js'
import type { Change, WireRecord } from '../../wire.js'
import type { Context } from '../context/context.js'

export interface RecordTransition {
  /** Undefined if the transaction created the record. */
  readonly before: WireRecord | undefined
  /** Undefined if the transaction deleted the record. */
  readonly after: WireRecord | undefined
  /** The changes of its files, which no record shows. */
  readonly files?: Change['changes'] | undefined
}

/** Builds the Change that a transaction makes of a record. */
export function buildChange(
  { principal, now }: Pick<Context, 'principal' | 'now'>,
  model: Model,
  { before, after, files }: RecordTransition,
): NewChange {
  const action = !after ? 'delete' : before ? 'update' : 'create'
  const [old, current] = [before ? toValues(model, before) : {}, after ? toValues(model, after) : {}]
  const fieldChanges = diffValues(model, old, current)
  return {
    model: model.name,
    id: (after ?? before)?.id ?? 0,
    action,
    userId: principal.user?.id ?? null,
    atMs: Date.parse(now),
    version: after ? after.version : (before?.version ?? 0) + 1,
    changes: files ? { ...fieldChanges, ...files } : fieldChanges,
    currentValues: action === 'update' ? current : undefined,
  }
}

/**
 * Returns the created, deleted or changed values with before and after. Leaves out secrets and the fields that the Change itself implies.
 */
export function diffValues(
  model: Model,
  before: Readonly<Values>,
  after: Readonly<Values>,
): Change['changes'] {
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const name of model.loggedFields) {
    const change = { before: before[name] ?? null, after: after[name] ?? null }
    if (!isSameValue(change.before, change.after) && !isEmptyListChange(model.fields.get(name), change))
      changes[name] = change
  }
  return changes
}

/** True for a relation without members. An empty JSON array is an ordinary value. */
function isEmptyListChange(field: Field | undefined, { before, after }: Change['changes'][string]): boolean {
  return field?.relation?.isList === true && isEmptyList(before) && isEmptyList(after)
}

function isEmptyList(value: Value): boolean {
  return value === null || (Array.isArray(value) && value.length === 0)
}
