// Reverts a record to an earlier version by an ordinary update, or restores a deleted one.
import { VersoError } from '../../errors.js'
import { readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Field } from '../../model/values/field.js'
import { isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { didYouMean, shortenForMessage } from '../../model/values/did-you-mean.js'
import { isObject, isSameValue, isVersion, type Values } from '../../model/values/value.js'
import { UniqueViolation } from '../../store/engine/unique-violation.js'
import { findLastVersion } from '../../store/log/change-pages.js'
import { findRecordAt } from '../../store/log/timeline.js'
import { isKnownIn, getStateValue, type RecordState } from '../../store/log/rewind.js'
import type { UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import {
  requireId,
  parseUpdateVersion,
  type ExpectedVersion,
  requireUpdatable,
  type UpdateInput,
} from '../access/request-checks.js'
import { lockInOrder } from '../write/lock-order.js'
import { readVisibleRecordAt, type VisibleRecordAt } from '../log/record-at.js'
import { removeUnseenRelated } from '../log/state-visibility.js'
import { buildResultReader, prepareDraft } from './save.js'
import { RecordWriter } from '../write/record-writer.js'
import { getVisibility, withDatabase, type Context } from '../context/context.js'
import { buildWriteRequest, writeInTransaction } from '../write/transaction.js'
import {
  createVersionChangedError,
  planRestore,
  refuseIfRestored,
  refuseMissingRelated,
  type RevertPlan,
  type RevertRequest,
} from './restore.js'

const REVERT_KEYS: readonly string[] = ['id', 'version', 'to']

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
  const readResult = buildResultReader(context, model, options)
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
    changes.push(...(await writer.state.finish()))
    return readResult(writer.state, id)
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

/** Parses the version to revert to. Unknown keys and values are refused, because the client would believe that they were used. */
function parseRevertTarget(data: unknown, { version, source }: ExpectedVersion): number {
  const { to = null, ...others } = isObject(data) ? data : {}
  const errors = Object.keys(others)
    .filter((name) => !REVERT_KEYS.includes(name))
    .map(
      (name) =>
        `unknown key "${shortenForMessage(name)}" in the data of a revert${didYouMean(name, REVERT_KEYS)}`,
    )
  if (isVersion(to) && to < version && errors.length === 0) return to
  if (to === null) errors.push('data.to is required: the version to revert to')
  else if (!isVersion(to) || to >= version) {
    const naming = source === 'if-match' ? 'If-Match' : 'data.version'
    errors.push(`data.to must be lower than ${version}, the version in ${naming}`)
  }
  throw new VersoError('bad-request', errors.join('; '))
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
  const now = await findRecordAt(db, app.tables.of(model), id, () => true)
  // A target version in the future is a conflict.
  const isAhead = now.latest !== undefined && to > now.latest
  const recordAt = isAhead ? undefined : await readVisibleRecordAt(withDatabase(context, db), model, id, to)
  if (now.today === 'gone') return planRestore(withDatabase(context, db), model, request, { recordAt, now })
  await requireUpdatable(context, model, id)
  const sent = recordAt
    ? await removeUnseenValues(
        withDatabase(context, db),
        model,
        diffValuesAt(context, model, recordAt, now.today),
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

function diffValuesAt(context: Context, model: Model, recordAt: VisibleRecordAt, today: RecordState): Values {
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = recordAt.values[field.name] ?? null
    if (
      isRevertible(context, model, field, recordAt) &&
      !isSameValue(value, getStateValue(today, field.name))
    )
      data[field.name] = value
  }
  return data
}

/** Files and secrets stay unchanged. So do fields that the principal cannot read or write, and values that the Log no longer contains. */
function isRevertible(
  context: Context,
  model: Model,
  field: Field,
  { readableFields, values }: VisibleRecordAt,
): boolean {
  if (!isReadByDefault(field) || !isWritable(field) || !isKnownIn(values, field.name)) return false
  return (
    (!readableFields || readableFields.has(field.name)) &&
    getVisibility(context.app, context.principal).canWrite(model, field)
  )
}

/** Removes references to records that the principal cannot see. */
async function removeUnseenValues(context: Context, model: Model, data: Values): Promise<Values> {
  const [pruned = data] = await removeUnseenRelated(context, model, [data])
  return Object.fromEntries(
    Object.entries(pruned).filter(([name, value]) => value !== null || data[name] === null),
  )
}

/** True if another restore of the same record has taken the id, or the version in the Log. */
function isIdTaken(error: unknown): boolean {
  if (error instanceof UniqueViolation) return true
  if (!(error instanceof VersoError) || error.kind !== 'not-unique') return false
  const { fields } = error.details.data ?? {}
  return Array.isArray(fields) && fields.every((name) => name === 'id')
}
