// Creates and updates records: prepare the drafts, write them in a transaction, read the answer.
import { VersoError } from '../../errors.js'
import { readSaveDrafts } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import { hasMembers } from '../../model/definition/record-values.js'
import { parseRecordSelection } from '../../model/query/selection.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { compileSelection } from '../../store/sql/select.js'
import type { Action, SaveOptions, UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import type { App, WritePlan } from '../context/app.js'
import { isAlwaysInMemory } from '../context/answer-limits.js'
import { lockInOrder } from '../write/lock-order.js'
import { addRuleErrors, withRuleErrors } from './rule-errors.js'
import { prepareDrafts } from '../write/run-hooks.js'
import {
  parseCreate,
  parseRecordKey,
  parseUpdate,
  requireDirectCreate,
  requirePermission,
  throwNotFound,
  type ParsedSave,
  type UpdateInput,
} from '../access/request-checks.js'
import { RecordWriter } from '../write/record-writer.js'
import { hashSecrets } from '../input/secrets.js'
import { addMemberNames, getSelect, isRecordVisible, readIfFits } from '../access/visible-records.js'
import { getVisibility, type Context } from '../context/context.js'
import { buildWriteRequest, writeInTransaction, type TransactionScope } from '../write/transaction.js'
import { AnswerCollector, toShortenedKey } from '../context/written-answers.js'
import { readKnownVersions, refuseStaleInside } from '../write/conflict.js'
import type { WriteState } from '../write/write-state.js'

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

/** A checked write of one record. */
interface RecordSave extends ParsedSave {
  readonly prepareValues?: WriteWithAddition['prepareValues']
}

async function prepareCreate(context: Context, model: Model, data: unknown): Promise<ParsedSave> {
  try {
    return await prepareSave(context, parseCreate(context, model, data))
  } catch (error) {
    throw await addRuleErrors(context, error)
  }
}

async function prepareUpdate(
  context: Context,
  model: Model,
  input: UpdateInput,
  options: UpdateOptions,
): Promise<ParsedSave> {
  try {
    return await prepareSave(context, await parseUpdate(context, model, input, options))
  } catch (error) {
    throw await addRuleErrors(context, error)
  }
}

async function prepareSave(context: Context, save: ParsedSave): Promise<ParsedSave> {
  const { draft } = save
  return needsPreparation(context.app, draft) ? { ...save, draft: await prepareDraft(context, draft) } : save
}

/** True if the draft may have passwords, or a model whose hooks check drafts beforehand. */
function needsPreparation({ hooks }: App, { model, related, lists }: Draft): boolean {
  return (
    model.hasPassword ||
    related.size > 0 ||
    lists.size > 0 ||
    hooks.models.get(model.name)?.prepare !== undefined
  )
}

/** Validates the draft and hashes its passwords. */
export async function prepareDraft(context: Context, draft: Draft): Promise<Draft> {
  const [prepared = draft] = await prepareDrafts(context, draft.model, [draft])
  return hashSecrets(prepared)
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
    const id = await saveInTransaction(writer, { draft, expected }, { merges, plan })
    changes.push(...(await writer.state.finish()))
    return readResult(writer.state, id)
  }
  const write = () =>
    writeInTransaction(context, request, { idempotencyKey, groupable: planned.groupable }, work)
  return planned.isPlain ? write() : withRuleErrors(context, write, [sent])
}

/** Writes one record with the locks that its plan needs. Returns its id. */
export async function saveInTransaction(
  writer: RecordWriter,
  { draft, expected }: ParsedSave,
  { merges, plan }: { readonly merges: boolean; readonly plan: WritePlan },
): Promise<number> {
  const { context } = writer
  if (plan.locks) await lockInOrder(context, [draft], merges)
  if (!draft.key && (plan.related || plan.lists)) await refuseStaleInside(context, draft)
  return draft.key && expected ? writer.update(draft, draft.key, expected) : writer.create(draft)
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
  const visibility = getVisibility(app, principal)
  const read = await withRuleErrors(context, async () => readSaveDrafts(visibility, model, sent, context.now))
  for (const draft of await prepareDrafts(context, model, read)) drafts.push(await hashSecrets(draft))
  const readResult = buildResultReader(context, model, options)
  const request = await buildWriteRequest(context, model, { action: 'save', data: records }, options)
  const work = async ({ context: writing, changes }: TransactionScope) => {
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
  }
  return withRuleErrors(context, () => writeInTransaction(context, request, options, work), drafts)
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
