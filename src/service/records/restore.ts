// Restores a deleted record with its id and the values of an earlier version.
import { VersoError } from '../../errors.js'
import { readCreateDraft } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { getReferenceId, listIds, type Value, type Values } from '../../model/values/value.js'
import { readVersions } from '../../store/records/bulk.js'
import { findLastVersion } from '../../store/log/change-pages.js'
import * as store from '../../store/records/records.js'
import { findRecordAt, type RecordAt } from '../../store/log/timeline.js'
import { isKnownIn } from '../../store/log/rewind.js'
import { refuseIfStale } from '../write/conflict.js'
import { toVisibleRecordAt, type VisibleRecordAt } from '../log/record-at.js'
import { removeUnseenRelated } from '../log/state-visibility.js'
import {
  requireDirectCreate,
  requirePermission,
  throwNotFound,
  type ExpectedVersion,
} from '../access/request-checks.js'
import { prepareDraft } from './save.js'
import type { RestoredRecord } from '../write/write-rows.js'
import { getVisibility, type Context, type WriteContext } from '../context/context.js'

export interface RevertRequest {
  readonly id: number
  readonly expected: ExpectedVersion
  /** The version whose values return. */
  readonly to: number
}

/** The write that a revert needs. `restored` is set if the record is deleted. */
export interface RevertPlan {
  readonly draft: Draft
  /** The version that the plan was made for. */
  readonly from: number
  readonly restored?: RestoredRecord
}

/** Reports every related record that no longer exists. */
export async function refuseMissingRelated(
  { app, db }: Context,
  model: Model,
  data: Values,
  self?: number,
): Promise<void> {
  const errors = new FieldErrors()
  for (const [name, value] of Object.entries(data)) {
    const { relation } = model.fields.get(name) ?? {}
    if (!relation || value === null) continue
    const target = app.catalog.getTarget(relation)
    const isList = Array.isArray(value)
    const ids = (isList ? (value as readonly Value[]) : [value]).map(getReferenceId)
    const there = await readVersions(db, app.tables.of(target), ids)
    ids.forEach((id, index) => {
      if (there.has(id) || (target === model && id === self)) return
      const path = isList ? `${name}[${index}]` : name
      errors.add(
        path,
        `refers to ${target.name} ${id}, which does not exist any more: revert that record first`,
      )
    })
  }
  errors.refuseIfAny(model)
}

/**
 * Plans the restore of a deleted record. The principal needs the permission to create it with all its values: it returns whole, or not at
 * all.
 */
export async function planRestore(
  context: Context,
  model: Model,
  request: RevertRequest,
  {
    recordAt,
    now: { latest = 0 },
  }: { readonly recordAt: VisibleRecordAt | undefined; readonly now: RecordAt },
): Promise<RevertPlan> {
  const { db, app, principal, now } = context
  const { id, expected } = request
  const last = await findRecordAt(db, app.tables.of(model), id, ({ version }) => version < latest)
  if (!(await toVisibleRecordAt(context, model, id, last))) throwNotFound(model, id)
  requirePermission(principal, 'create', model)
  requireDirectCreate(model)
  if (recordAt) requireFullAccess(context, model, recordAt)
  if (!recordAt || latest !== expected.version) throw createVersionChangedError(model, request, latest)
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = recordAt.values[field.name] ?? null
    if (!isReadByDefault(field) || !isWritable(field) || isOwnedMemberList(field)) continue
    if (!isKnownIn(recordAt.values, field.name)) continue
    data[field.name] = wasRemovedWithOwner(model, field, value, recordAt.values) ? null : value
  }
  await requireVisibleRelated(context, model, data, id)
  await refuseMissingRelated(context, model, data, id)
  const draft = await prepareDraft(context, readCreateDraft(getVisibility(app, principal), model, data, now))
  const { createdOn = null, createdBy = null } = recordAt.values
  const sequences = [...model.fields.values()].filter(({ sequence }) => sequence)
  const numbers = Object.fromEntries(sequences.map(({ name }) => [name, recordAt.values[name] ?? null]))
  return {
    draft,
    from: latest,
    restored: { id, version: latest + 1, creation: { createdOn, createdBy }, numbers },
  }
}

function requireFullAccess(context: Context, model: Model, { readableFields }: VisibleRecordAt): void {
  const { principal } = context
  if (!principal.permissions) return
  const fields = [...model.fields.values()].filter((field) => isReadByDefault(field) && isWritable(field))
  const isWhole = fields.every(
    (field) =>
      (!readableFields || readableFields.has(field.name)) &&
      getVisibility(context.app, principal).canWrite(model, field),
  )
  if (!isWhole) throw createPartialAccessError(model)
}

/** For a principal with restricted access, a deleted related record looks like a hidden one. Both are refused with the same error. */
async function requireVisibleRelated(
  context: Context,
  model: Model,
  data: Values,
  self: number,
): Promise<void> {
  const [pruned = data] = await removeUnseenRelated(context, model, [data])
  const isWhole = [...model.fields.values()].every(({ name, relation }) => {
    const ids = new Set(listIds([pruned[name] ?? []].flat()))
    if (relation?.target === model.name) ids.add(self)
    return !relation || listIds([data[name] ?? []].flat()).every((id) => ids.has(id))
  })
  if (!isWhole) throw createPartialAccessError(model)
}

function createPartialAccessError(model: Model): VersoError {
  return new VersoError(
    'forbidden',
    `You do not have permission to restore this ${model.name}: you need to read and write all of it; nothing was changed`,
  )
}

/** Members of an owned list were deleted with their owner. They are restored one by one. */
function isOwnedMemberList(field: Field): boolean {
  return isOwnedList(field) && field.relation?.mappedBy !== undefined
}

/** True for a reference to one of the record's own members. Neither of the two could be restored first. */
function wasRemovedWithOwner(model: Model, { relation }: Field, value: Value, values: Values): boolean {
  if (!relation || relation.isList || value === null) return false
  const lists = [...model.fields.values()].filter(
    (field) => isOwnedMemberList(field) && field.relation?.target === relation.target,
  )
  return lists.some(({ name }) => {
    const members = values[name] ?? []
    return (
      Array.isArray(members) &&
      members.some((member: Value) => getReferenceId(member) === getReferenceId(value))
    )
  })
}

/** Another transaction may have restored the record, and deleted it again. */
export async function refuseIfRestored(
  context: WriteContext,
  model: Model,
  request: RevertRequest,
  draft: Draft,
): Promise<void> {
  const { app, tx } = context
  const { id, expected } = request
  const table = app.tables.of(model)
  const isBack = async () => (await store.findVersion(tx, table, id)) !== undefined
  if (await isBack()) {
    await refuseIfStale(context, table, id, { expected, draft })
    // The record exists, but the principal cannot see it as it is now.
    if (await isBack()) throwNotFound(model, id)
  }
  const last = await findLastVersion(tx, model.name, id)
  if (last !== expected.version) throw createVersionChangedError(model, request, last)
}

export function createVersionChangedError(
  model: Model,
  { id, expected }: RevertRequest,
  current: number | undefined,
  cause?: unknown,
): VersoError {
  const message = `${model.name} ${id} is at version ${current ?? 'none'}, not ${expected.version}: read it again and retry; nothing was changed`
  return new VersoError(expected.source === 'if-match' ? 'stale-match' : 'conflict', message, {
    data: { entityName: model.name, entityId: id, expected: expected.version, current },
    ...(cause === undefined ? {} : { cause }),
  })
}
