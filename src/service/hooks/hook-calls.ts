// Builds the argument of a hook: the record before and after, what changes, and who changes it.
import { deepFreeze } from '../../model/definition/define-model.js'
import type { UserSummary, PendingSaveCall, RemoveCall, SaveCall } from '../../model/definition/hooks.js'
import type { TransactionRecords } from '../../model/definition/typed-records.js'
import type { Model } from '../../model/definition/model.js'
import { toValues } from '../../model/definition/record-values.js'
import { isSameValue, type Values } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import type { FinishedSave, HookContext, PendingSave, Removal } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { computeVisibly } from '../write/write-rows.js'

/** The properties that all calls of one hook share. */
export interface CallContext {
  readonly context: HookContext
  readonly model: Model
  readonly records: TransactionRecords
}

export function buildPendingCall(call: CallContext, save: PendingSave): PendingSaveCall {
  const { draft, before } = save
  const old = before && toValues(draft.model, before)
  const after = readPendingState(call.context, save)
  return {
    ...buildCommonPart(call),
    id: draft.key?.id,
    before: old && deepFreeze(old),
    after,
    changed: listChanges(draft.model, old, after, save.values),
  }
}

/** The values of the record as it will be stored. */
export function readPendingState({ principal }: HookContext, { draft, values, before }: PendingSave): Values {
  const { model } = draft
  const old = before ? toValues(model, before) : {}
  const computed = computeVisibly(principal, draft, old, values)
  const lists = before ? {} : Object.fromEntries(model.ownedLists.map((name) => [name, []]))
  return deepFreeze(toValues(model, { ...lists, ...old, ...values, ...computed }))
}

export function buildSaveCall(
  call: CallContext,
  { draft, id, before, changed }: FinishedSave,
  record: WireRecord,
): SaveCall {
  const { model } = draft
  const old = before && toValues(model, before)
  const after = deepFreeze(toValues(model, record))
  return {
    ...buildCommonPart(call),
    id,
    before: old && deepFreeze(old),
    after,
    changed: listChanges(model, old, after, changed),
  }
}

export function buildRemoveCall(call: CallContext, { model, record }: Removal): RemoveCall {
  return { ...buildCommonPart(call), id: record.id, before: deepFreeze(toValues(model, record)) }
}

function buildCommonPart({ context, model, records }: CallContext) {
  const { principal, now, attempt } = context
  return { model: model.name, user: toUserSummary(principal), now, attempt: attempt.number, records }
}

export function toUserSummary({ user, permissions, roles }: Principal): UserSummary | null {
  if (!user) return null
  return { id: user.id, username: user.username, name: user.name, roles, isAdmin: permissions === undefined }
}

/** Lists the fields whose values differ. A secret or a file is in no state, so it counts if it is among the values to write. */
function listChanges(
  model: Model,
  old: Values | undefined,
  after: Values,
  written: Values,
): ReadonlySet<string> {
  const changed = new Set<string>()
  for (const { name, computed, isSystem } of model.shownFields)
    if (!computed && !isSystem && !isSameValue(old?.[name] ?? null, after[name] ?? null)) changed.add(name)
  for (const [name, value] of Object.entries(written)) {
    const { secret, type } = model.fields.get(name) ?? {}
    // A null in a new record stands for no value.
    if ((secret !== undefined || type === 'binary') && (old !== undefined || value !== null))
      changed.add(name)
  }
  return changed
}
