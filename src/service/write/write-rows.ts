// Builds the values of a row, inserts or updates the row, and builds its Change.
import { VersoError } from '../../errors.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { buildRecord, computeValues, setShownValues, toValues } from '../../model/definition/record-values.js'
import type { Draft } from '../../model/write/draft.js'
import type { Field } from '../../model/values/field.js'
import { isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { insertWithIds } from '../../store/records/bulk.js'
import { insertRows, updateRowAgain, updateRows, type RecordUpdate } from '../../store/records/write.js'
import { takeNextNumber } from '../../store/records/sequences.js'
import type { NewChange } from '../../store/log/log.js'
import type { Change, WireRecord } from '../../wire.js'
import type { Context, WriteContext } from '../context/context.js'
import type { UserIdentity } from '../context/identity.js'
import type { Principal } from '../context/principal.js'

/** A deleted record that a revert creates again, with its old id and the next version. */
export interface RestoredRecord {
  readonly id: number
  readonly version: number
  /** The fields `createdOn` and `createdBy`. */
  readonly creation: Values
  /** The values of its sequence fields. */
  readonly numbers: Values
}

/** Takes the next number of each sequence field, unless the restored record has one. */
export async function assignNumbers(tx: Transaction, model: Model, restored: Values = {}): Promise<Values> {
  const numbers: Values = {}
  for (const field of model.sequenceFields)
    numbers[field.name] = restored[field.name] ?? (await takeNextNumber(tx, model, field))
  return numbers
}

/** The values of a new row, and empty lists: no record refers to a new one. */
export function buildNewValues({ principal, now }: WriteContext, draft: Draft, sent: Values): Values {
  const { model } = draft
  const values: Values = {}
  for (const name of model.ownedLists) values[name] = []
  Object.assign(values, sent, computeVisibly(principal, draft, sent))
  values['createdOn'] = now
  values['createdBy'] = toUserReference(principal.user)
  values['updatedOn'] = values['updatedBy'] = null
  return values
}

/** The values that an update sets besides the sent ones: computed fields and system fields. `old` are the stored values. */
export function buildUpdateValues(
  { principal, now }: WriteContext,
  draft: Draft,
  old: Values,
  sent: Values,
): Values {
  const values = computeVisibly(principal, draft, old, sent)
  values['updatedOn'] = now
  values['updatedBy'] = toUserReference(principal.user)
  return values
}

/** Computes fields. The error of a field that the principal may not see does not name it: its text may contain hidden values. */
export function computeVisibly(
  { permissions }: Principal,
  { model, path }: Draft,
  ...values: readonly [values: Values, changes?: Values]
): Values {
  try {
    return computeValues(model, values[0], path, values[1])
  } catch (error) {
    if (!permissions || !(error instanceof VersoError)) throw error
    const names = Object.keys(error.details.errors ?? {}).map((name) => name.slice(path.length))
    const fields = names.flatMap((name) => model.fields.get(name) ?? [])
    if (fields.every((field) => permissions.isVisible(model, field))) throw error
    throw new VersoError('invalid', `${model.name} was not written: it has no valid computed values`, {
      cause: error,
    })
  }
}

/** The user as a value of a reference field. */
export function toUserReference(user: UserIdentity | null): Value {
  return user && { id: user.id, $version: user.version, name: user.name }
}

/** Picks the sent values that differ from the stored ones. */
export function pickChangedValues(old: Values, sent: Values): Values {
  const changed: Values = {}
  for (const name of Object.keys(sent)) {
    const value = sent[name] ?? null
    if (!isSameValue(old[name] ?? null, value)) changed[name] = value
  }
  return changed
}

/** Builds an updated record. A reference that has not changed stays as it was read, with the name of the related record. */
export function buildUpdatedRecord(
  model: Model,
  before: WireRecord,
  changed: Values,
  generated: Values,
): WireRecord {
  const record = buildRecord(model, before.id, before.version + 1, before)
  setShownValues(record, changed)
  setShownValues(record, generated)
  return record
}

/** Lists the values of references. */
export function listReferences(model: Model, values: Values): Value[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const field = model.fields.get(name)
    return field && isReference(field) ? [value] : []
  })
}

export async function insertRow(
  { app, principal, tx }: WriteContext,
  draft: Draft,
  values: Values,
  restored?: RestoredRecord,
): Promise<number> {
  const table = app.tables.of(draft.model)
  try {
    if (!restored) return (await insertRows(tx, table, [values]))[0] ?? 0
    await insertWithIds(tx, table, [{ id: restored.id, version: restored.version, values }])
    return restored.id
  } catch (error) {
    throw nameUniquePath(principal, draft, error)
  }
}

/** Returns false if the record no longer has the version. The version guard is in the UPDATE. */
export async function updateRow(
  { app, principal, tx }: WriteContext,
  draft: Draft,
  update: RecordUpdate,
  /** True if this transaction has written the record before. */
  isAgain: boolean,
): Promise<boolean> {
  const table = app.tables.of(draft.model)
  try {
    if (isAgain) return await updateRowAgain(tx, table, update)
    const [isDone = false] = await updateRows(tx, table, [update])
    return isDone
  } catch (error) {
    throw nameUniquePath(principal, draft, error)
  }
}

/** Adds the path of the draft to the fields of a `not-unique` error. Hides fields that the principal may not see. */
export function nameUniquePath({ permissions }: Principal, { model, path }: Draft, error: unknown): unknown {
  if (!(error instanceof VersoError) || error.kind !== 'not-unique') return error
  const { errors = {}, ...details } = error.details
  const fields = Object.keys(errors).flatMap((name) => model.fields.get(name) ?? [])
  if (permissions && !fields.every((field) => permissions.isVisible(model, field)))
    return new VersoError(
      'not-unique',
      `A ${model.name} with these values already exists; nothing was changed`,
      { cause: error },
    )
  const named = Object.entries(errors).map(([name, message]) => [path + name, message] as const)
  return new VersoError(error.kind, error.message, { ...details, errors: Object.fromEntries(named) })
}

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
