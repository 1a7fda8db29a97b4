// Making and changing records: check → transaction → Changes.
import { VersoError } from '../../errors.js'
import {
  readSaveDrafts,
  readCreateDraft,
  readUpdateDraft,
  type Draft,
  type VersionedId,
} from '../../model/write/draft.js'
import { markPatchedFields } from '../../model/write/merge-patch.js'
import type { Model } from '../../model/definition/model.js'
import { parseRecordSelection } from '../../model/query/selection.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { compileSelection } from '../../store/sql/select.js'
import type { SaveOptions, UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import { createBare, isBare, updateBare } from '../write/bare-saves.js'
import { getVisibility, type Principal } from '../context/principal.js'
import { requireId, throwNotFound } from '../context/ids.js'
import { refuseDirectKeyCreate } from '../auth/key-rules.js'
import { isAlwaysInMemory } from '../context/answer-limits.js'
import { lockInOrder } from '../write/lock-order.js'
import { validateSystemDrafts } from '../auth/auth-rules.js'
import { plainOf } from '../write/plain.js'
import { requirePermission } from '../access/permission-checks.js'
import { RecordWriter } from '../write/record-writer.js'
import { hashSecrets } from '../write/secrets.js'
import {
  isRecordVisible,
  readIfFits,
  seesWholeRecords,
  getSelect,
  addMemberNames,
} from '../access/visible-records.js'
import { parseVersion, parseUpdateVersion, type ExpectedVersion } from '../write/versions.js'
import { getTimestamp } from '../context/context.js'
import { buildWriteRequest, writeInTransaction, type TransactionScope } from '../write/transaction.js'
import { toShortenedKey, AnswerCollector } from '../write/written-answers.js'
import { hasMembers } from '../access/written-record.js'

export async function createRecord(
  app: App,
  principal: Principal,
  model: Model,
  data: unknown,
  options: SaveOptions = {},
): Promise<WriteResult<WireRecord>> {
  requirePermission(principal, 'create', model)
  refuseDirectKeyCreate(model)
  return writeRecord(app, principal, await prepareCreate(app, principal, model, data), { data }, options)
}

export async function updateRecord(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  const sent = { data, ...(options.patch ? { patch: true } : {}) }
  return writeRecord(
    app,
    principal,
    await prepareUpdate(app, principal, model, id, data, options),
    sent,
    options,
  )
}

/** What a record gets besides what was sent for it: a file that has arrived, what only the service sets. */
export interface WriteAddition {
  /** What a repeat must be equal to. */
  readonly file?: object
  /** What it changes beside the record goes into the same part of the Log. */
  readonly prepareValues: (tx: Transaction, changes: NewChange[]) => Promise<Values>
}

/** Made, or changed if it has an id. */
export async function saveWithAddition(
  app: App,
  principal: Principal,
  model: Model,
  data: unknown,
  { file, prepareValues }: WriteAddition,
  options: UpdateOptions,
): Promise<WriteResult<WireRecord>> {
  const id = isObject(data) ? (data['id'] ?? null) : null
  if (id !== null && typeof id !== 'number')
    throw new VersoError('bad-request', 'data.id must be a whole number from 1')
  if (id === null && options.ifMatch !== undefined)
    throw new VersoError('bad-request', 'A new record has no version yet: name the id of the record, too')
  const save =
    id === null
      ? await prepareCreate(app, principal, model, data)
      : await prepareUpdate(app, principal, model, id, data, options)
  return writeRecord(app, principal, save, { data, ...(file ? { file } : {}) }, options, prepareValues)
}

/** A checked request to write one record; one that is made is expected at no version. */
interface RecordSave {
  readonly draft: Draft
  readonly expected: ExpectedVersion | undefined
  readonly now: string
}

async function prepareCreate(
  app: App,
  principal: Principal,
  model: Model,
  data: unknown,
): Promise<RecordSave> {
  requirePermission(principal, 'create', model)
  refuseRecordKeys(data)
  const now = getTimestamp(app)
  const draft = readCreateDraft(getVisibility(app, principal), model, data, now)
  return { draft: await prepareDraft(app, principal, draft), expected: undefined, now }
}

async function prepareUpdate(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions,
): Promise<RecordSave> {
  requireId(model, id)
  await requireUpdatable(app, principal, model, id)
  const expected = parseUpdateVersion(data, id, options)
  const now = getTimestamp(app)
  const key = { id, version: expected.version }
  const draft = readUpdateDraft(getVisibility(app, principal), model, data, key, now)
  return {
    draft: await prepareDraft(app, principal, options.patch ? markPatchedFields(draft) : draft),
    expected,
    now,
  }
}

/** As it may be stored. */
export async function prepareDraft(app: App, principal: Principal, draft: Draft): Promise<Draft> {
  const [validated = draft] = await validateSystemDrafts(app, principal, draft.model, [draft])
  return hashSecrets(validated)
}

/** Who may change no record of this model is told so, if there is one to be changed. */
export async function requireUpdatable(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
): Promise<void> {
  if (!principal.permissions || principal.permissions.of(model).can('update')) return
  if (!(await isRecordVisible(app, principal, app.db.reader, { model, id }))) throwNotFound(model, id)
  requirePermission(principal, 'update', model)
}

async function writeRecord(
  app: App,
  principal: Principal,
  { draft: sent, expected, now }: RecordSave,
  sentBody: { readonly data: unknown; readonly file?: object; readonly patch?: boolean },
  options: SaveOptions,
  prepareValues?: WriteAddition['prepareValues'],
): Promise<WriteResult<WireRecord>> {
  const { model, key } = sent
  const request = await buildWriteRequest(
    app,
    model,
    key ? 'update' : 'create',
    { ...key, ...sentBody },
    options,
  )
  const plain = plainOf(principal, sent, options, prepareValues !== undefined)
  if (plain && options.wanted === undefined && isBare(app, principal, sent)) {
    const saveOne = async ({ tx, changes }: TransactionScope) => {
      const work = { app, ...principal, tx, now }
      const saving = key && expected ? updateBare(work, sent, key, expected) : createBare(work, sent)
      const { record, change } = await saving
      changes.push(change)
      return hasMembers(model, record) ? addNamesOrShorten(app, principal, tx, { model, record }) : record
    }
    return writeInTransaction(app, principal, request, undefined, saveOne, plain)
  }
  const readResult = buildResultReader(app, principal, model, options)
  const work = async ({ tx, changes }: TransactionScope) => {
    const draft = prepareValues
      ? { ...sent, values: { ...sent.values, ...(await prepareValues(tx, changes)) } }
      : sent
    const merges = options.merge === 'fields'
    const writer = new RecordWriter({ app, ...principal, tx, now }, [draft], { merges })
    await lockInOrder({ app, tx }, [draft], merges)
    if (!key) await writer.refuseStaleInside(draft)
    const id = key && expected ? await writer.update(draft, key, expected) : await writer.create(draft)
    changes.push(...(await writer.finish()))
    return readResult(writer, tx, id)
  }
  return writeInTransaction(app, principal, request, options.idempotencyKey, work, plain)
}

/** Several at once: those without an id are made, the others changed from the version that they name. All of them or none. */
export async function saveRecords(
  app: App,
  principal: Principal,
  model: Model,
  records: readonly unknown[],
  options: SaveOptions = {},
): Promise<WriteResult<readonly WireRecord[]>> {
  const now = getTimestamp(app)
  const sent = records.map((data, index) => ({ data, key: parseRecordKey(model, data, `records[${index}]`) }))
  if (sent.some(({ key }) => !key)) refuseDirectKeyCreate(model)
  const drafts: Draft[] = []
  const read = readSaveDrafts(getVisibility(app, principal), model, sent, now)
  for (const draft of await validateSystemDrafts(app, principal, model, read))
    drafts.push(await hashSecrets(draft))
  const readResult = buildResultReader(app, principal, model, options)
  const request = await buildWriteRequest(app, model, 'save', { data: records }, options)
  return writeInTransaction(app, principal, request, options.idempotencyKey, async ({ tx, changes }) => {
    const merges = options.merge === 'fields'
    const writer = new RecordWriter({ app, ...principal, tx, now }, drafts, { merges })
    await lockInOrder({ app, tx }, drafts, merges)
    await writer.refuseStale(drafts)
    const ids: number[] = []
    for (const draft of drafts) ids.push(await writer.save(draft))
    changes.push(...(await writer.finish()))
    const answers = new AnswerCollector<WireRecord>(app)
    for (const id of ids)
      answers.add(await (answers.isFull ? readRecordKey(app, tx, model, id) : readResult(writer, tx, id)))
    return answers.all()
  })
}

/** Which record is to be changed, and from which version; undefined for a new one. */
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

/** All that is told of a record where there is no room for more. */
export async function readRecordKey(
  app: App,
  tx: Transaction,
  model: Model,
  id: number,
): Promise<WireRecord> {
  return { id, version: (await store.findVersion(tx, app.tables.of(model), id)) ?? throwNotFound(model, id) }
}

export type ResultReader = (saving: RecordWriter, tx: Transaction, id: number) => Promise<WireRecord>

/** What the answer shows of a record that was written. */
export function buildResultReader(
  app: App,
  principal: Principal,
  model: Model,
  { wanted: fields }: SaveOptions,
): ResultReader {
  if (fields === undefined && seesWholeRecords(app, principal, model))
    return async (writer, tx, id) => {
      const record = await writer.readRecord(model, id)
      return hasMembers(model, record) ? addNamesOrShorten(app, principal, tx, { model, record }) : record
    }
  const select = fields
    ? compileSelection(app.db.dialect, parseRecordSelection(getVisibility(app, principal), model, fields))
    : getSelect(app, principal, model, 'full')
  return async (_, tx, id) => {
    const key = await readRecordKey(app, tx, model, id)
    const record = await readIfFits(app, principal, tx, { model, id, select })
    if (record) return record
    const isLarge =
      !isAlwaysInMemory(app, select) && (await isRecordVisible(app, principal, tx, { model, id }))
    // Who may write what they may not see is told that it was written.
    return isLarge ? toShortenedKey(key) : key
  }
}

/** With the names of its list members; the id and the version of one that is larger than an answer. */
async function addNamesOrShorten(
  app: App,
  principal: Principal,
  tx: Transaction,
  written: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord> {
  return (await addMemberNames(app, principal, tx, written)) ?? toShortenedKey(written.record)
}

function refuseRecordKeys(data: unknown, path = ''): void {
  if (!isObject(data)) return
  const given = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (given.length > 0) {
    throw new VersoError(
      'bad-request',
      `${path}A new record has no ${given.join(' and no ')} yet: leave it out, or update with POST`,
    )
  }
}
