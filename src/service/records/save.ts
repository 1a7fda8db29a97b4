// Creates and updates records: prepare the drafts, write them in a transaction, read the answer.
import { VersoError } from '../../errors.js'
import { readSaveDrafts, readCreateDraft, readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Draft, VersionedId } from '../../model/write/draft.js'
import { markPatchedFields } from '../../model/write/merge-patch.js'
import type { Model } from '../../model/definition/model.js'
import { hasMembers } from '../../model/definition/record-values.js'
import { parseRecordSelection } from '../../model/query/selection.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { compileSelection } from '../../store/sql/select.js'
import type { Action, SaveOptions, UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { isAlwaysInMemory } from '../context/answer-limits.js'
import { lockInOrder } from '../write/lock-order.js'
import { validateDrafts } from '../write/run-hooks.js'
import {
  requireDirectCreate,
  requirePermission,
  requireId,
  throwNotFound,
  parseVersion,
  parseUpdateVersion,
  type ExpectedVersion,
} from '../access/request-checks.js'
import { RecordWriter } from '../write/record-writer.js'
import { hashSecrets } from '../input/secrets.js'
import { isRecordVisible, readIfFits, getSelect, addMemberNames } from '../access/visible-records.js'
import { getVisibility, withDatabase, type Context } from '../context/context.js'
import { buildWriteRequest, writeInTransaction, type TransactionScope } from '../write/transaction.js'
import { toShortenedKey, AnswerCollector } from '../context/written-answers.js'
import { readKnownVersions, refuseStaleInside } from '../write/conflict.js'
import type { WriteState } from '../write/write-plan.js'

export async function createRecord(
  context: Context,
  model: Model,
  data: unknown,
  options: SaveOptions = {},
): Promise<WriteResult<WireRecord>> {
  requirePermission(context.principal, 'create', model)
  requireDirectCreate(model)
  return writeRecord(context, await prepareCreate(context, model, data), { data }, options)
}

/** The data that was sent for a stored record. */
export interface UpdateInput {
  readonly id: number
  readonly data: unknown
}

export async function updateRecord(
  context: Context,
  model: Model,
  { id, data }: UpdateInput,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  const sent = options.patch ? { data, patch: true } : { data }
  return writeRecord(context, await prepareUpdate(context, model, { id, data }, options), sent, options)
}

/** A write that adds values to the data that was sent: an uploaded file, or values that only the service sets. */
export interface WriteWithAddition {
  readonly data: unknown
  /** The file as a repeat under the same idempotency key must send it. */
  readonly file?: object
  /** Runs in the transaction. Changes that it adds go into the Log with the record's own. */
  readonly prepareValues: (tx: Transaction, changes: NewChange[]) => Promise<Values>
}

/** Creates a record, or updates the one whose id the data names. */
export async function saveWithAddition(
  context: Context,
  model: Model,
  { data, file, prepareValues }: WriteWithAddition,
  options: UpdateOptions,
): Promise<WriteResult<WireRecord>> {
  const id = isObject(data) ? (data['id'] ?? null) : null
  if (id !== null && typeof id !== 'number')
    throw new VersoError('bad-request', 'data.id must be a whole number from 1')
  if (id === null && options.ifMatch !== undefined)
    throw new VersoError(
      'bad-request',
      'A new record has no version yet: omit If-Match, or send data.id to update a record',
    )
  const save =
    id === null
      ? await prepareCreate(context, model, data)
      : await prepareUpdate(context, model, { id, data }, options)
  return writeRecord(context, { ...save, prepareValues }, { data, ...(file ? { file } : {}) }, options)
}

/** A checked write of one record. A new record has no expected version. */
interface RecordSave {
  readonly draft: Draft
  readonly expected: ExpectedVersion | undefined
  readonly prepareValues?: WriteWithAddition['prepareValues']
}

async function prepareCreate(context: Context, model: Model, data: unknown): Promise<RecordSave> {
  const { principal, app } = context
  requirePermission(principal, 'create', model)
  refuseRecordKeys(data)
  const draft = readCreateDraft(getVisibility(app, principal), model, data, context.now)
  return {
    draft: needsPreparation(app, draft) ? await prepareDraft(context, draft) : draft,
    expected: undefined,
  }
}

async function prepareUpdate(
  context: Context,
  model: Model,
  { id, data }: UpdateInput,
  options: UpdateOptions,
): Promise<RecordSave> {
  const { app, principal, now } = context
  requireId(model, id)
  if (!mayUpdate(principal, model)) await requireUpdatable(context, model, id)
  const expected = parseUpdateVersion(data, id, options)
  const key = { id, version: expected.version }
  const read = readUpdateDraft(getVisibility(app, principal), model, { data, key }, now)
  const draft = options.patch ? markPatchedFields(read) : read
  return { draft: needsPreparation(app, draft) ? await prepareDraft(context, draft) : draft, expected }
}

/** True if the draft may have passwords, or a model whose hooks validate drafts. */
function needsPreparation({ hooks }: App, { model, related, lists }: Draft): boolean {
  return (
    model.hasPassword ||
    related.size > 0 ||
    lists.size > 0 ||
    hooks.models.get(model.name)?.validate !== undefined
  )
}

/** Validates the draft and hashes its passwords. */
export async function prepareDraft(context: Context, draft: Draft): Promise<Draft> {
  const [validated = draft] = await validateDrafts(context, draft.model, [draft])
  return hashSecrets(validated)
}

/** A principal without the permission to update gets `forbidden` for a visible record, and `not-found` for others. */
export async function requireUpdatable(context: Context, model: Model, id: number): Promise<void> {
  const { principal } = context
  if (mayUpdate(principal, model)) return
  if (!(await isRecordVisible(withDatabase(context, context.app.db.reader), { model, id })))
    throwNotFound(model, id)
  requirePermission(principal, 'update', model)
}

function mayUpdate({ permissions }: Principal, model: Model): boolean {
  return !permissions || permissions.of(model).can('update')
}

async function writeRecord(
  context: Context,
  { draft: sent, expected, prepareValues }: RecordSave,
  sentBody: { readonly data: unknown; readonly file?: object; readonly patch?: boolean },
  options: SaveOptions,
): Promise<WriteResult<WireRecord>> {
  const { model, key } = sent
  const action: Action = key ? 'update' : 'create'
  const { idempotencyKey } = options
  const request =
    idempotencyKey === undefined
      ? { action, model: model.name }
      : await buildWriteRequest(context, model, { action, ...key, ...sentBody }, options)
  const planned = context.app.planWrite(context, sent, options, prepareValues !== undefined)
  const merges = options.merge === 'fields'
  const readResult = buildResultReader(context, model, options)
  const work = async ({ context: writing, changes }: TransactionScope) => {
    const draft = prepareValues
      ? { ...sent, values: { ...sent.values, ...(await prepareValues(writing.tx, changes)) } }
      : sent
    const plan = prepareValues ? context.app.planWrite(writing, draft, options) : planned
    const writer = new RecordWriter(writing, [draft], { merges, plan })
    if (plan.locks) await lockInOrder(writing, [draft], merges)
    if (!key && (plan.related || plan.lists)) await refuseStaleInside(writing, draft)
    const id = key && expected ? await writer.update(draft, key, expected) : await writer.create(draft)
    changes.push(...(await writer.state.finish()))
    return readResult(writer.state, id)
  }
  return writeInTransaction(context, request, { idempotencyKey, groupable: planned.groupable }, work)
}

/** Creates the records without an id and updates the others, in one transaction. */
export async function saveRecords(
  context: Context,
  model: Model,
  records: readonly unknown[],
  options: SaveOptions = {},
): Promise<WriteResult<readonly WireRecord[]>> {
  const { app, principal } = context
  const sent = records.map((data, index) => ({ data, key: parseRecordKey(model, data, `records[${index}]`) }))
  if (sent.some(({ key }) => !key)) requireDirectCreate(model)
  const drafts: Draft[] = []
  const read = readSaveDrafts(getVisibility(app, principal), model, sent, context.now)
  for (const draft of await validateDrafts(context, model, read)) drafts.push(await hashSecrets(draft))
  const readResult = buildResultReader(context, model, options)
  const request = await buildWriteRequest(context, model, { action: 'save', data: records }, options)
  return writeInTransaction(context, request, options, async ({ context: writing, changes }) => {
    const merges = options.merge === 'fields'
    const writer = new RecordWriter(writing, drafts, { merges })
    await lockInOrder(writing, drafts, merges)
    await writer.refuseStale(drafts, await readKnownVersions(writing, drafts))
    const ids = await writer.saveAll(drafts)
    changes.push(...(await writer.state.finish()))
    const answers = new AnswerCollector<WireRecord>(app)
    for (const id of ids)
      answers.add(
        await (answers.isFull ? readRecordKey(app, writing.tx, model, id) : readResult(writer.state, id)),
      )
    return answers.all()
  })
}

/** Returns the id and the version of the record to update; undefined for a create. */
function parseRecordKey(model: Model, data: unknown, path: string): VersionedId | undefined {
  if (!isObject(data) || (data['id'] ?? null) === null) {
    refuseRecordKeys(data, `${path}: `)
    return undefined
  }
  const { id } = data
  if (typeof id !== 'number') throw new VersoError('bad-request', `${path}.id must be a whole number from 1`)
  const version = parseVersion(data, path)
  if (version !== undefined) return { id: requireId(model, id), version }
  throw new VersoError(
    'bad-request',
    `${path} has an id but no version: send the version that the update is based on`,
  )
}

/** Returns the id and the version, for an answer that has no room for the whole record. */
export async function readRecordKey(
  app: App,
  tx: Transaction,
  model: Model,
  id: number,
): Promise<WireRecord> {
  return { id, version: (await store.findVersion(tx, app.tables.of(model), id)) ?? throwNotFound(model, id) }
}

export type ResultReader = (state: WriteState, id: number) => Promise<WireRecord>

/** Returns a function that reads a written record for the answer. */
export function buildResultReader(context: Context, model: Model, { returning }: SaveOptions): ResultReader {
  const { app, principal } = context
  if (returning === undefined && (principal.permissions?.seesWhole(model) ?? true))
    return async (state, id) => {
      const record = state.findKnown(model, id) ?? (await state.readRecord(model, id))
      return hasMembers(model, record) ? addNamesOrShorten(state.context, model, record) : record
    }
  const select = returning
    ? compileSelection(app.db.dialect, parseRecordSelection(getVisibility(app, principal), model, returning))
    : getSelect(context, model, 'full')
  return async ({ context: writing }, id) => {
    const key = await readRecordKey(app, writing.tx, model, id)
    const record = await readIfFits(writing, { model, id, select })
    if (record) return record
    const isLarge = !isAlwaysInMemory(app, select) && (await isRecordVisible(writing, { model, id }))
    // A principal who may write a record but not read it gets its id and version.
    return isLarge ? toShortenedKey(key) : key
  }
}

/** Adds the names of list members. Returns only id and version if the record is larger than an answer may be. */
async function addNamesOrShorten(context: Context, model: Model, record: WireRecord): Promise<WireRecord> {
  return (await addMemberNames(context, { model, record })) ?? toShortenedKey(record)
}

function refuseRecordKeys(data: unknown, path = ''): void {
  if (!isObject(data)) return
  const keys = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (keys.length > 0) {
    throw new VersoError(
      'bad-request',
      `${path}A new record has no ${keys.join(' and no ')} yet: omit it, or update with POST`,
    )
  }
}
