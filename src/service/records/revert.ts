// Back to what a record held: an ordinary update under its version, or the return of one that was deleted.
import { VersoError } from '../../errors.js'
import { readCreateDraft, readUpdateDraft, type Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { getReferenceId, listIds, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { readVersions } from '../../store/records/bulk.js'
import { UniqueViolation, type Queryable, type Transaction } from '../../store/engine/database.js'
import { findLastVersion } from '../../store/log/history.js'
import * as store from '../../store/records/records.js'
import { isKnownIn, wasAfter, valueIn, type RecordState, type Was } from '../../store/log/past.js'
import type { UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import { refuseDirectKeyCreate } from '../auth/key-rules.js'
import type { App } from '../context/app.js'
import { refuseIfStale } from '../write/conflict.js'
import { requireId, throwNotFound } from '../context/ids.js'
import { lockInOrder } from '../write/lock-order.js'
import { readPastRecord, toVisiblePast, type PastRecord } from '../log/past-record.js'
import { removeUnseenRelated } from '../log/past-visibility.js'
import { getVisibility, type Principal } from '../context/principal.js'
import { requirePermission } from '../access/permission-checks.js'
import { prepareDraft, requireUpdatable, buildResultReader } from './save.js'
import { RecordWriter, type RestoredRecord } from '../write/record-writer.js'
import { parseRevertTarget, parseUpdateVersion, type ExpectedVersion } from '../write/versions.js'
import { getTimestamp } from '../context/context.js'
import { buildWriteRequest, writeInTransaction } from '../write/transaction.js'

interface RevertRequest {
  readonly id: number
  readonly expected: ExpectedVersion
  /** The version that is to be had again. */
  readonly to: number
  readonly now: string
}

/** What is to be written; `back` where the record is gone. */
interface RevertPlan {
  readonly draft: Draft
  /** The version that it is made for. */
  readonly from: number
  readonly restored?: RestoredRecord
}

export async function revertRecord(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  requireId(model, id)
  const expected = parseUpdateVersion(data, id, options)
  const revertRequest: RevertRequest = {
    id,
    expected,
    to: parseRevertTarget(data, expected),
    now: getTimestamp(app),
  }
  // What is wrong with it is said below: a repeat is answered as it was, whatever has become of the record since.
  const prepared = await captureRefusal(planRevert(app, principal, model, revertRequest))
  const shown = buildResultReader(app, principal, model, options)
  const request = await buildWriteRequest(
    app,
    model,
    'revert',
    { id, version: expected.version, data },
    options,
  )
  const written = writeInTransaction(
    app,
    principal,
    request,
    options.idempotencyKey,
    async ({ tx, changes }) => {
      const { draft, from, restored } = prepared()
      const writer = new RecordWriter({ app, ...principal, tx, now: revertRequest.now }, [draft])
      await lockInOrder({ app, tx }, [draft])
      if (restored) {
        await refuseIfRestored(app, principal, tx, model, revertRequest, draft)
        await writer.create(draft, undefined, restored)
      } else {
        await writer.update(draft, { id, version: expected.version }, expected)
        // It has only just come to the version that was named: what is written is the way back from another one.
        if (from !== expected.version) throw createVersionChangedError(model, revertRequest, from)
      }
      changes.push(...(await writer.finish()))
      return shown(writer, tx, id)
    },
  )
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

async function planRevert(
  app: App,
  principal: Principal,
  model: Model,
  request: RevertRequest,
): Promise<RevertPlan> {
  const { id, to } = request
  const db = app.db.queryPool
  const now = await wasAfter(db, app.tables.of(model), id, () => true)
  // A version that is yet to come is before one that is yet to come, too: it is a conflict.
  const isAhead = now.latest !== undefined && to > now.latest
  const past = isAhead ? undefined : await readPastRecord(app, principal, db, model, id, to)
  if (now.today === 'gone') return planRestore(app, principal, db, model, request, past, now)
  await requireUpdatable(app, principal, model, id)
  const sent = past
    ? await removeUnseenValues(
        app,
        principal,
        db,
        model,
        diffPastValues(app, principal, model, past, now.today),
      )
    : {}
  // A conflict is told before anything else.
  if (now.latest === request.expected.version) await refuseMissingRelated(app, db, model, sent, {})
  const key = { id, version: request.expected.version }
  const draft = await prepareDraft(
    app,
    principal,
    readUpdateDraft(getVisibility(app, principal), model, sent, key, request.now),
  )
  return { draft, from: now.latest ?? 0 }
}

function diffPastValues(
  app: App,
  principal: Principal,
  model: Model,
  past: PastRecord,
  today: RecordState,
): Values {
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (isRevertible(app, principal, model, field, past) && !isSameValue(value, valueIn(today, field.name)))
      data[field.name] = value
  }
  return data
}

/** Files and secrets stay as they are; so does what the caller may not see or write, and what nobody knows. */
function isRevertible(
  app: App,
  principal: Principal,
  model: Model,
  field: Field,
  { readableFields, values }: PastRecord,
): boolean {
  if (!isReadByDefault(field) || !isWritable(field) || !isKnownIn(values, field.name)) return false
  return (
    (!readableFields || readableFields.has(field.name)) &&
    getVisibility(app, principal).canWrite(model, field)
  )
}

/** Without what leads to records that the caller does not see. */
async function removeUnseenValues(
  app: App,
  principal: Principal,
  db: Queryable,
  model: Model,
  data: Values,
): Promise<Values> {
  const [seen = data] = await removeUnseenRelated(app, principal, db, model, [data])
  return Object.fromEntries(
    Object.entries(seen).filter(([name, value]) => value !== null || data[name] === null),
  )
}

/** Names every neighbour that is no longer there. */
async function refuseMissingRelated(
  app: App,
  db: Queryable,
  model: Model,
  data: Values,
  { self }: { readonly self?: number },
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

/** Of a record that was deleted. It needs the right to make it, with all that it held: it returns whole, or not at all. */
async function planRestore(
  app: App,
  principal: Principal,
  db: Queryable,
  model: Model,
  request: RevertRequest,
  past: PastRecord | undefined,
  { latest = 0 }: Was,
): Promise<RevertPlan> {
  const { id, expected, now } = request
  const last = await wasAfter(db, app.tables.of(model), id, ({ version }) => version < latest)
  if (!(await toVisiblePast(app, principal, db, model, id, last))) throwNotFound(model, id)
  requirePermission(principal, 'create', model)
  refuseDirectKeyCreate(model)
  if (past) requireFullAccess(app, principal, model, past)
  if (!past || latest !== expected.version) throw createVersionChangedError(model, request, latest)
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (!isReadByDefault(field) || !isWritable(field) || isOwnedMemberList(field)) continue
    if (!isKnownIn(past.values, field.name)) continue
    data[field.name] = wasRemovedWithOwner(model, field, value, past.values) ? null : value
  }
  await requireVisibleRelated(app, principal, db, model, data, id)
  await refuseMissingRelated(app, db, model, data, { self: id })
  const draft = await prepareDraft(
    app,
    principal,
    readCreateDraft(getVisibility(app, principal), model, data, now),
  )
  const { createdOn = null, createdBy = null } = past.values
  const sequences = [...model.fields.values()].filter(({ sequence }) => sequence)
  const numbers = Object.fromEntries(sequences.map(({ name }) => [name, past.values[name] ?? null]))
  return {
    draft,
    from: latest,
    restored: { id, version: latest + 1, creation: { createdOn, createdBy }, numbers },
  }
}

function requireFullAccess(
  app: App,
  principal: Principal,
  model: Model,
  { readableFields }: PastRecord,
): void {
  if (!principal.permissions) return
  const fields = [...model.fields.values()].filter((field) => isReadByDefault(field) && isWritable(field))
  const isWhole = fields.every(
    (field) =>
      (!readableFields || readableFields.has(field.name)) &&
      getVisibility(app, principal).canWrite(model, field),
  )
  if (!isWhole) throw createPartialAccessError(model)
}

/** To those who do not see everything, a neighbour that is gone is like one that is hidden: neither is named, and both are refused alike. */
async function requireVisibleRelated(
  app: App,
  principal: Principal,
  db: Queryable,
  model: Model,
  data: Values,
  self: number,
): Promise<void> {
  const [seen = data] = await removeUnseenRelated(app, principal, db, model, [data])
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

/** The members of an owned list went with their owner, and come back by their own revert. */
function isOwnedMemberList(field: Field): boolean {
  return isOwnedList(field) && field.relation?.mappedBy !== undefined
}

/** A reference to one of its own members: neither could be the first to return. */
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

/** Somebody may have brought it back meanwhile, and deleted it again. */
async function refuseIfRestored(
  app: App,
  principal: Principal,
  tx: Transaction,
  model: Model,
  request: RevertRequest,
  draft: Draft,
): Promise<void> {
  const { id, expected } = request
  const table = app.tables.of(model)
  const isBack = async () => (await store.findVersion(tx, table, id)) !== undefined
  if (await isBack()) {
    await refuseIfStale({ app, ...principal }, tx, table, id, expected, draft)
    // It is there, and may not be seen as it is now.
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

/** The id, or the version in the Log, was taken by another return of the same record. */
function isIdTaken(error: unknown): boolean {
  if (error instanceof UniqueViolation) return true
  if (!(error instanceof VersoError) || error.kind !== 'not-unique') return false
  const { fields } = error.details.data ?? {}
  return Array.isArray(fields) && fields.every((name) => name === 'id')
}
