// Reverts a record to an earlier version by an ordinary update, or restores a deleted one.
import { VersoError } from '../../errors.js'
import { readCreateDraft, readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { getReferenceId, listIds, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { readVersions } from '../../store/records/bulk.js'
import { UniqueViolation } from '../../store/engine/database.js'
import { findLastVersion } from '../../store/log/history.js'
import * as store from '../../store/records/records.js'
import { isKnownIn, wasAfter, valueIn, type RecordState, type Was } from '../../store/log/past.js'
import type { UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import { refuseIfStale } from '../write/conflict.js'
import { requireId, throwNotFound } from '../context/ids.js'
import { lockInOrder } from '../write/lock-order.js'
import { readPastRecord, toVisiblePast, type PastRecord } from '../log/past-record.js'
import { removeUnseenRelated } from '../log/past-visibility.js'
import { getVisibility } from '../context/principal.js'
import { requireDirectCreate, requirePermission } from '../access/permission-checks.js'
import { prepareDraft, requireUpdatable, buildResultReader, type UpdateInput } from './save.js'
import { RecordWriter, type RestoredRecord } from '../write/record-writer.js'
import { parseRevertTarget, parseUpdateVersion, type ExpectedVersion } from '../write/versions.js'
import { withDatabase, type Context, type WriteContext } from '../context/context.js'
import { buildWriteRequest, writeInTransaction } from '../write/transaction.js'

interface RevertRequest {
  readonly id: number
  readonly expected: ExpectedVersion
  /** The version whose values return. */
  readonly to: number
}

/** The write that a revert needs. `restored` is set if the record is deleted. */
interface RevertPlan {
  readonly draft: Draft
  /** The version that the plan was made for. */
  readonly from: number
  readonly restored?: RestoredRecord
}

export async function revertRecord(
  context: Context,
  model: Model,
  { id, data }: UpdateInput,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  const { app } = context
  requireId(model, id)
  const expected = parseUpdateVersion(data, id, options)
  const revertRequest: RevertRequest = { id, expected, to: parseRevertTarget(data, expected) }
  // The error is thrown inside the transaction, after a repeat under the same idempotency key has got its stored answer.
  const prepared = await captureRefusal(planRevert(context, model, revertRequest))
  const shown = buildResultReader(context, model, options)
  const sent = { action: 'revert', id, version: expected.version, data } as const
  const request = await buildWriteRequest(context, model, sent, options)
  const written = writeInTransaction(context, request, options, async ({ context: writing, changes }) => {
    const { draft, from, restored } = prepared()
    const writer = new RecordWriter(writing, [draft])
    await lockInOrder(writing, [draft])
    if (restored) {
      await refuseIfRestored(writing, model, revertRequest, draft)
      await writer.create(draft, undefined, restored)
    } else {
      await writer.update(draft, { id, version: expected.version }, expected)
      // The record has reached the expected version only now, so the plan was made from another version.
      if (from !== expected.version) throw createVersionChangedError(model, revertRequest, from)
    }
    changes.push(...(await writer.finish()))
    return shown(writer, id)
  })
  return written.catch(async (error: unknown) => {
    if (!isIdTaken(error)) throw error
    throw createVersionChangedError(
      model,
      revertRequest,
      await findLastVersion(app.db.reader, model.name, id),
      error,
    )
  })
}

async function captureRefusal<T>(promise: Promise<T>): Promise<() => T> {
  try {
    const done = await promise
    return () => done
  } catch (error) {
    if (!(error instanceof VersoError)) throw error
    return () => {
      throw error
    }
  }
}

async function planRevert(context: Context, model: Model, request: RevertRequest): Promise<RevertPlan> {
  const { app } = context
  const { id, to } = request
  const db = app.db.queryPool
  const now = await wasAfter(db, app.tables.of(model), id, () => true)
  // A target version in the future is a conflict.
  const isAhead = now.latest !== undefined && to > now.latest
  const past = isAhead ? undefined : await readPastRecord(withDatabase(context, db), model, id, to)
  if (now.today === 'gone') return planRestore(withDatabase(context, db), model, request, { past, now })
  await requireUpdatable(context, model, id)
  const sent = past
    ? await removeUnseenValues(
        withDatabase(context, db),
        model,
        diffPastValues(context, model, past, now.today),
      )
    : {}
  // A conflict is reported before missing related records.
  if (now.latest === request.expected.version)
    await refuseMissingRelated(withDatabase(context, db), model, sent)
  const key = { id, version: request.expected.version }
  const draft = await prepareDraft(
    context,
    readUpdateDraft(getVisibility(app, context.principal), model, { data: sent, key }, context.now),
  )
  return { draft, from: now.latest ?? 0 }
}

function diffPastValues(context: Context, model: Model, past: PastRecord, today: RecordState): Values {
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (isRevertible(context, model, field, past) && !isSameValue(value, valueIn(today, field.name)))
      data[field.name] = value
  }
  return data
}

/** Files and secrets stay unchanged. So do fields that the principal cannot read or write, and values that the Log no longer knows. */
function isRevertible(
  context: Context,
  model: Model,
  field: Field,
  { readableFields, values }: PastRecord,
): boolean {
  if (!isReadByDefault(field) || !isWritable(field) || !isKnownIn(values, field.name)) return false
  return (
    (!readableFields || readableFields.has(field.name)) &&
    getVisibility(context.app, context.principal).canWrite(model, field)
  )
}

/** Removes references to records that the principal cannot see. */
async function removeUnseenValues(context: Context, model: Model, data: Values): Promise<Values> {
  const [seen = data] = await removeUnseenRelated(context, model, [data])
  return Object.fromEntries(
    Object.entries(seen).filter(([name, value]) => value !== null || data[name] === null),
  )
}

/** Reports every related record that no longer exists. */
async function refuseMissingRelated(
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
      errors.add(path, `there is no ${target.name} ${id} any more: revert that record first`)
    })
  }
  errors.refuseIfAny(model)
}

/**
 * Plans the restore of a deleted record. The principal needs the permission to create it with all its values: it returns whole, or not at
 * all.
 */
async function planRestore(
  context: Context,
  model: Model,
  request: RevertRequest,
  { past, now: { latest = 0 } }: { readonly past: PastRecord | undefined; readonly now: Was },
): Promise<RevertPlan> {
  const { db, app, principal, now } = context
  const { id, expected } = request
  const last = await wasAfter(db, app.tables.of(model), id, ({ version }) => version < latest)
  if (!(await toVisiblePast(context, model, id, last))) throwNotFound(model, id)
  requirePermission(principal, 'create', model)
  requireDirectCreate(model)
  if (past) requireFullAccess(context, model, past)
  if (!past || latest !== expected.version) throw createVersionChangedError(model, request, latest)
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (!isReadByDefault(field) || !isWritable(field) || isOwnedMemberList(field)) continue
    if (!isKnownIn(past.values, field.name)) continue
    data[field.name] = wasRemovedWithOwner(model, field, value, past.values) ? null : value
  }
  await requireVisibleRelated(context, model, data, id)
  await refuseMissingRelated(context, model, data, id)
  const draft = await prepareDraft(context, readCreateDraft(getVisibility(app, principal), model, data, now))
  const { createdOn = null, createdBy = null } = past.values
  const sequences = [...model.fields.values()].filter(({ sequence }) => sequence)
  const numbers = Object.fromEntries(sequences.map(({ name }) => [name, past.values[name] ?? null]))
  return {
    draft,
    from: latest,
    restored: { id, version: latest + 1, creation: { createdOn, createdBy }, numbers },
  }
}

function requireFullAccess(context: Context, model: Model, { readableFields }: PastRecord): void {
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
  const [seen = data] = await removeUnseenRelated(context, model, [data])
  const isWhole = [...model.fields.values()].every(({ name, relation }) => {
    const ids = new Set(listIds([seen[name] ?? []].flat()))
    if (relation?.target === model.name) ids.add(self)
    return !relation || listIds([data[name] ?? []].flat()).every((id) => ids.has(id))
  })
  if (!isWhole) throw createPartialAccessError(model)
}

function createPartialAccessError(model: Model): VersoError {
  return new VersoError(
    'forbidden',
    `You may not bring back a ${model.name}: you do not see and write all of it`,
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
async function refuseIfRestored(
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

function createVersionChangedError(
  model: Model,
  { id, expected }: RevertRequest,
  current: number | undefined,
  cause?: unknown,
): VersoError {
  const message = `${model.name} ${id} is at version ${current ?? 'none'}, not ${expected.version}: nothing was written`
  return new VersoError(expected.source === 'if-match' ? 'stale-match' : 'conflict', message, {
    data: { entityName: model.name, entityId: id, expected: expected.version, current },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** True if another restore of the same record has taken the id, or the version in the Log. */
function isIdTaken(error: unknown): boolean {
  if (error instanceof UniqueViolation) return true
  if (!(error instanceof VersoError) || error.kind !== 'not-unique') return false
  const { fields } = error.details.data ?? {}
  return Array.isArray(fields) && fields.every((name) => name === 'id')
}
