// Creates and updates records: prepare the drafts, write them in a transaction, read the answer.
import { VersoError } from '../../../src/errors.js'
import { readSaveDrafts, readCreateDraft, readUpdateDraft } from '../../../src/model/write/draft-reader.js'
import type { Draft, VersionedId } from '../../../src/model/write/draft.js'
import { markPatchedFields } from '../../../src/model/write/merge-patch.js'
import type { Model } from '../../../src/model/definition/model.js'
import { parseRecordSelection } from '../../../src/model/query/selection.js'
import { isObject, type Values } from '../../../src/model/values/value.js'
import type { Transaction } from '../../../src/store/engine/database.js'
import type { NewChange } from '../../../src/store/log/log.js'
import * as store from '../../../src/store/records/records.js'
import { compileSelection } from '../../../src/store/sql/select.js'
import type { SaveOptions, UpdateOptions, WireRecord, WriteResult } from '../../../src/wire.js'
import type { App } from '../../../src/service/context/app.js'
import { createBare, isBare, updateBare } from './bare-saves.js'
import { isAlwaysInMemory } from '../../../src/service/context/answer-limits.js'
import { lockInOrder } from '../../../src/service/write/lock-order.js'
import { validateDrafts } from '../../../src/service/write/run-hooks.js'
import { plainOf } from './plain.js'
import {
  requireDirectCreate,
  requirePermission,
  requireId,
  throwNotFound,
} from '../../../src/service/access/permission-checks.js'
import { RecordWriter } from './record-writer.js'
import { hashSecrets } from '../../../src/service/input/secrets.js'
import {
  isRecordVisible,
  readIfFits,
  getSelect,
  addMemberNames,
} from '../../../src/service/access/visible-records.js'
import {
  parseVersion,
  parseUpdateVersion,
  type ExpectedVersion,
} from '../../../src/service/input/versions.js'
import { getVisibility, withDatabase, type Context } from '../../../src/service/context/context.js'
import {
  buildWriteRequest,
  writeInTransaction,
  type TransactionScope,
} from '../../../src/service/write/transaction.js'
import { toShortenedKey, AnswerCollector } from '../../../src/service/context/written-answers.js'
import { hasMembers } from './written-record.js'
import { refuseStaleInside } from '../../../src/service/write/conflict.js'

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
  const sent = { data, ...(options.patch ? { patch: true } : {}) }
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
    throw new VersoError('bad-request', 'A new record has no version yet: name the id of the record, too')
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
  return { draft: await prepareDraft(context, draft), expected: undefined }
}

async function prepareUpdate(
  context: Context,
  model: Model,
  { id, data }: UpdateInput,
  options: UpdateOptions,
): Promise<RecordSave> {
  const { app, principal, now } = context
  requireId(model, id)
  await requireUpdatable(context, model, id)
  const expected = parseUpdateVersion(data, id, options)
  const key = { id, version: expected.version }
  const draft = readUpdateDraft(getVisibility(app, principal), model, { data, key }, now)
  return { draft: await prepareDraft(context, options.patch ? markPatchedFields(draft) : draft), expected }
}

/** Validates the draft and hashes its passwords. */
export async function prepareDraft(context: Context, draft: Draft): Promise<Draft> {
  const [validated = draft] = await validateDrafts(context, draft.model, [draft])
  return hashSecrets(validated)
}

/** A principal without the permission to update gets `forbidden` for a visible record, and `not-found` for others. */
export async function requireUpdatable(context: Context, model: Model, id: number): Promise<void> {
  const { principal } = context
  if (!principal.permissions || principal.permissions.of(model).can('update')) return
  if (!(await isRecordVisible(withDatabase(context, context.app.db.reader), { model, id })))
    throwNotFound(model, id)
  requirePermission(principal, 'update', model)
}

async function writeRecord(
  context: Context,
  { draft: sent, expected, prepareValues }: RecordSave,
  sentBody: { readonly data: unknown; readonly file?: object; readonly patch?: boolean },
  options: SaveOptions,
): Promise<WriteResult<WireRecord>> {
  const { model, key } = sent
  const action = key ? 'update' : 'create'
  const request = await buildWriteRequest(context, model, { action, ...key, ...sentBody }, options)
  const plain = !context.app.hooks.hookedModels.has(model.name)
    ? plainOf(context.principal, sent, options, prepareValues !== undefined)
    : undefined
  if (plain && options.returning === undefined && isBare(context, sent)) {
    const saveOne = async ({ context: writing, changes }: TransactionScope) => {
      const saving = key && expected ? updateBare(writing, sent, key, expected) : createBare(writing, sent)
      const { record, change } = await saving
      changes.push(change)
      return hasMembers(model, record) ? addNamesOrShorten(writing, { model, record }) : record
    }
    return writeInTransaction(context, request, { groupable: plain }, saveOne)
  }
  const readResult = buildResultReader(context, model, options)
  const work = async ({ context: writing, changes }: TransactionScope) => {
    const draft = prepareValues
      ? { ...sent, values: { ...sent.values, ...(await prepareValues(writing.tx, changes)) } }
      : sent
    const merges = options.merge === 'fields'
    const writer = new RecordWriter(writing, [draft], { merges })
    await lockInOrder(writing, [draft], merges)
    if (!key) await refuseStaleInside(writing, draft)
    const id = key && expected ? await writer.update(draft, key, expected) : await writer.create(draft)
    changes.push(...(await writer.finish()))
    return readResult(writer, id)
  }
  const { idempotencyKey } = options
  return writeInTransaction(context, request, { idempotencyKey, groupable: plain }, work)
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
    await writer.refuseStale(drafts)
    const ids: number[] = []
    for (const draft of drafts) ids.push(await writer.save(draft))
    changes.push(...(await writer.finish()))
    const answers = new AnswerCollector<WireRecord>(app)
    for (const id of ids)
      answers.add(await (answers.isFull ? readRecordKey(app, writing.tx, model, id) : readResult(writer, id)))
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
    `${path} has an id: it must name the version that it was made from, too`,
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

export type ResultReader = (writer: RecordWriter, id: number) => Promise<WireRecord>

/** Returns a function that reads a written record for the answer. */
export function buildResultReader(context: Context, model: Model, { returning }: SaveOptions): ResultReader {
  const { app, principal } = context
  if (returning === undefined && (principal.permissions?.seesWhole(model) ?? true))
    return async (writer, id) => {
      const record = await writer.readRecord(model, id)
      return hasMembers(model, record) ? addNamesOrShorten(writer.context, { model, record }) : record
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
async function addNamesOrShorten(
  context: Context,
  written: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord> {
  return (await addMemberNames(context, written)) ?? toShortenedKey(written.record)
}

function refuseRecordKeys(data: unknown, path = ''): void {
  if (!isObject(data)) return
  const keys = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (keys.length > 0) {
    throw new VersoError(
      'bad-request',
      `${path}A new record has no ${keys.join(' and no ')} yet: leave it out, or update with POST`,
    )
  }
}
