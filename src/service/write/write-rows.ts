// Builds the values of a row, and inserts or updates the row.
import { VersoError } from '../../errors.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { buildRecord, computeValues, setShownValues } from '../../model/definition/record-values.js'
import type { Draft } from '../../model/write/draft.js'
import { isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { insertWithIds } from '../../store/records/bulk.js'
import { insertRows, updateRows, type RecordUpdate } from '../../store/records/write.js'
import { takeNextNumber } from '../../store/records/sequences.js'
import type { WireRecord } from '../../wire.js'
import type { WriteContext } from '../context/context.js'
import { toUserReference } from '../context/identity.js'
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
export function buildNewValues(
  { principal, now }: WriteContext,
  { model, path }: Draft,
  sent: Values,
): Values {
  const values: Values = {}
  for (const name of model.ownedLists) values[name] = []
  Object.assign(values, sent, computeValues(model, sent, path))
  values['createdOn'] = now
  values['createdBy'] = toUserReference(principal.user)
  values['updatedOn'] = values['updatedBy'] = null
  return values
}

/** The values that an update sets besides the sent ones: computed fields and system fields. `old` are the stored values. */
export function buildUpdateValues(
  { principal, now }: WriteContext,
  { model, path }: Draft,
  old: Values,
  sent: Values,
): Values {
  const values = computeValues(model, old, path, sent)
  values['updatedOn'] = now
  values['updatedBy'] = toUserReference(principal.user)
  return values
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
): Promise<boolean> {
  try {
    const [isDone = false] = await updateRows(tx, app.tables.of(draft.model), [update])
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
    return new VersoError('not-unique', `There is a ${model.name} like this already`, { cause: error })
  const named = Object.entries(errors).map(([name, message]) => [path + name, message] as const)
  return new VersoError(error.kind, error.message, { ...details, errors: Object.fromEntries(named) })
}
