import { isShown, type Model } from '../model/model.js'
import { sameValue, type Value, type Values } from '../model/value.js'
import { valuesOf } from '../model/values.js'
import type { NewChange } from '../store/log.js'
import type { Change, WireRecord } from '../wire.js'
import type { Work } from './work.js'

/** What the service writes beside the version of a record, or what follows from its Changes. */
const UNLOGGED = ['createdOn', 'createdBy', 'updatedOn', 'updatedBy', 'lastLoginOn', 'lastUsedOn']

/** The Change that a transaction made of a record: one of the two is missing where it was made, or is gone. */
export function changeOf(
  { actor, now }: Pick<Work, 'actor' | 'now'>,
  model: Model,
  before: WireRecord | undefined,
  after: WireRecord | undefined,
  /** What became of the files it holds: no record shows them. */
  files?: Change['changes'],
): NewChange {
  const action = !after ? 'delete' : before ? 'update' : 'create'
  const [old, held] = [before ? valuesOf(model, before) : {}, after ? valuesOf(model, after) : {}]
  return {
    ...{
      model: model.name,
      id: (after ?? before)?.id ?? 0,
      action,
      by: actor?.id ?? null,
      atMs: Date.parse(now),
    },
    version: after ? after.version : (before?.version ?? 0) + 1,
    changes: { ...differences(model, old, held), ...files },
    ...(action === 'update' ? { held } : {}),
  }
}

/** What came, what went, or before and after of what changed; never a secret, nor what follows from who made the Change and when. */
export function differences(
  model: Model,
  before: Readonly<Values>,
  after: Readonly<Values>,
): Change['changes'] {
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const field of model.fields.values()) {
    if ((field.kept && UNLOGGED.includes(field.name)) || !isShown(field)) continue
    const change = { before: before[field.name] ?? null, after: after[field.name] ?? null }
    if (!sameValue(change.before, change.after) && !isNothing(change.before, change.after))
      changes[field.name] = change
  }
  return changes
}

/** A list that is not there yet, or no longer, and one without members. */
function isNothing(before: Value, after: Value): boolean {
  const [left, right] = [before ?? [], after ?? []]
  return Array.isArray(left) && Array.isArray(right) && left.length === 0 && right.length === 0
}
