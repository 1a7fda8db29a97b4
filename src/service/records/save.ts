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
import { sightOf, type Caller } from '../context/principal.js'
import { checkId, missing } from '../context/ids.js'
import { refuseNewKey } from '../auth/key-rules.js'
import { isLight } from '../context/answer-limits.js'
import { lockInOrder } from '../write/lock-order.js'
import { keepRules } from '../auth/auth-rules.js'
import { plainOf } from '../write/plain.js'
import { requirePermitted } from '../access/permission-checks.js'
import { Saving } from '../write/record-writer.js'
import { hashSecrets } from '../write/secrets.js'
import { isSeen, readToAnswer, seesWhole, selectFor, withMemberNames } from '../access/visible-records.js'
import { versionIn, versionToUpdate, type Expected } from '../write/versions.js'
import { nowOf } from '../context/context.js'
import { requestOf, write, type Writing } from '../write/transaction.js'
import { shortened, WrittenAnswers } from '../write/written-answers.js'
import { hasMembers } from '../access/written-record.js'

export async function create(
  app: App,
  by: Caller,
  model: Model,
  data: unknown,
  options: SaveOptions = {},
): Promise<WriteResult<WireRecord>> {
  requirePermitted(by, 'create', model)
  refuseNewKey(model)
  return writeOne(app, by, await creationOf(app, by, model, data), { data }, options)
}

export async function update(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  const told = { data, ...(options.patch ? { patch: true } : {}) }
  return writeOne(app, by, await updateOf(app, by, model, id, data, options), told, options)
}

/** What a record gets besides what was sent for it: a file that has arrived, what only the service sets. */
export interface Addition {
  /** What a repeat must be equal to. */
  readonly file?: object
  /** What it changes beside the record goes into the same part of the Log. */
  readonly valuesIn: (tx: Transaction, changes: NewChange[]) => Promise<Values>
}

/** Made, or changed if it has an id. */
export async function saveWith(
  app: App,
  by: Caller,
  model: Model,
  data: unknown,
  { file, valuesIn }: Addition,
  options: UpdateOptions,
): Promise<WriteResult<WireRecord>> {
  const id = isObject(data) ? (data['id'] ?? null) : null
  if (id !== null && typeof id !== 'number')
    throw new VersoError('bad-request', 'data.id must be a whole number from 1')
  if (id === null && options.ifMatch !== undefined)
    throw new VersoError('bad-request', 'A new record has no version yet: name the id of the record, too')
  const save =
    id === null ? await creationOf(app, by, model, data) : await updateOf(app, by, model, id, data, options)
  return writeOne(app, by, save, { data, ...(file ? { file } : {}) }, options, valuesIn)
}

/** A checked request to write one record; one that is made is expected at no version. */
interface Save {
  readonly draft: Draft
  readonly expected: Expected | undefined
  readonly now: string
}

async function creationOf(app: App, by: Caller, model: Model, data: unknown): Promise<Save> {
  requirePermitted(by, 'create', model)
  refuseKeysOfARecord(data)
  const now = nowOf(app)
  const draft = readCreateDraft(sightOf(app, by), model, data, now)
  return { draft: await ready(app, by, draft), expected: undefined, now }
}

async function updateOf(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions,
): Promise<Save> {
  checkId(model, id)
  await requireUpdatable(app, by, model, id)
  const expected = versionToUpdate(data, id, options)
  const now = nowOf(app)
  const key = { id, version: expected.version }
  const draft = readUpdateDraft(sightOf(app, by), model, data, key, now)
  return { draft: await ready(app, by, options.patch ? markPatchedFields(draft) : draft), expected, now }
}

/** As it may be stored. */
export async function ready(app: App, by: Caller, draft: Draft): Promise<Draft> {
  const [kept = draft] = await keepRules(app, by, draft.model, [draft])
  return hashSecrets(kept)
}

/** Who may change no record of this model is told so, if there is one to be changed. */
export async function requireUpdatable(app: App, by: Caller, model: Model, id: number): Promise<void> {
  if (!by.rights || by.rights.of(model).can('update')) return
  if (!(await isSeen(app, by, app.db.reader, { model, id }))) missing(model, id)
  requirePermitted(by, 'update', model)
}

async function writeOne(
  app: App,
  by: Caller,
  { draft: sent, expected, now }: Save,
  told: { readonly data: unknown; readonly file?: object; readonly patch?: boolean },
  options: SaveOptions,
  valuesIn?: Addition['valuesIn'],
): Promise<WriteResult<WireRecord>> {
  const { model, key } = sent
  const request = await requestOf(app, model, key ? 'update' : 'create', { ...key, ...told }, options)
  const plain = plainOf(by, sent, options, valuesIn !== undefined)
  if (plain && options.wanted === undefined && isBare(app, by, sent)) {
    const saveOne = async ({ tx, changes }: Writing) => {
      const work = { app, ...by, tx, now }
      const saving = key && expected ? updateBare(work, sent, key, expected) : createBare(work, sent)
      const { record, change } = await saving
      changes.push(change)
      return hasMembers(model, record) ? named(app, by, tx, { model, record }) : record
    }
    return write(app, by, request, undefined, saveOne, plain)
  }
  const shown = shownTo(app, by, model, options)
  const work = async ({ tx, changes }: Writing) => {
    const draft = valuesIn ? { ...sent, values: { ...sent.values, ...(await valuesIn(tx, changes)) } } : sent
    const merges = options.merge === 'fields'
    const saving = new Saving({ app, ...by, tx, now }, [draft], { merges })
    await lockInOrder({ app, tx }, [draft], merges)
    if (!key) await saving.refuseStaleInside(draft)
    const id = key && expected ? await saving.update(draft, key, expected) : await saving.create(draft)
    changes.push(...(await saving.finish()))
    return shown(saving, tx, id)
  }
  return write(app, by, request, options.idempotencyKey, work, plain)
}

/** Several at once: those without an id are made, the others changed from the version that they name. All of them or none. */
export async function save(
  app: App,
  by: Caller,
  model: Model,
  records: readonly unknown[],
  options: SaveOptions = {},
): Promise<WriteResult<readonly WireRecord[]>> {
  const now = nowOf(app)
  const sent = records.map((data, index) => ({ data, key: keyIn(model, data, `records[${index}]`) }))
  if (sent.some(({ key }) => !key)) refuseNewKey(model)
  const drafts: Draft[] = []
  const asked = readSaveDrafts(sightOf(app, by), model, sent, now)
  for (const draft of await keepRules(app, by, model, asked)) drafts.push(await hashSecrets(draft))
  const shown = shownTo(app, by, model, options)
  const request = await requestOf(app, model, 'save', { data: records }, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const merges = options.merge === 'fields'
    const saving = new Saving({ app, ...by, tx, now }, drafts, { merges })
    await lockInOrder({ app, tx }, drafts, merges)
    await saving.refuseStale(drafts)
    const ids: number[] = []
    for (const draft of drafts) ids.push(await saving.save(draft))
    changes.push(...(await saving.finish()))
    const answers = new WrittenAnswers<WireRecord>(app)
    for (const id of ids)
      answers.add(await (answers.isFull ? writtenKey(app, tx, model, id) : shown(saving, tx, id)))
    return answers.all()
  })
}

/** Which record is to be changed, and from which version; undefined for a new one. */
function keyIn(model: Model, data: unknown, place: string): VersionedId | undefined {
  if (!isObject(data) || (data['id'] ?? null) === null) {
    refuseKeysOfARecord(data, `${place}: `)
    return undefined
  }
  const { id } = data
  if (typeof id !== 'number') throw new VersoError('bad-request', `${place}.id must be a whole number from 1`)
  const version = versionIn(data, place)
  if (version !== undefined) return { id: checkId(model, id), version }
  throw new VersoError(
    'bad-request',
    `${place} has an id: it must name the version that it was made from, too`,
  )
}

/** All that is told of a record where there is no room for more. */
export async function writtenKey(app: App, tx: Transaction, model: Model, id: number): Promise<WireRecord> {
  return { id, version: (await store.findVersion(tx, app.tables.of(model), id)) ?? missing(model, id) }
}

export type Shown = (saving: Saving, tx: Transaction, id: number) => Promise<WireRecord>

/** What the answer shows of a record that was written. */
export function shownTo(app: App, by: Caller, model: Model, { wanted }: SaveOptions): Shown {
  if (wanted === undefined && seesWhole(app, by, model))
    return async (saving, tx, id) => {
      const record = await saving.recordOf(model, id)
      return hasMembers(model, record) ? named(app, by, tx, { model, record }) : record
    }
  const select = wanted
    ? compileSelection(app.db.dialect, parseRecordSelection(sightOf(app, by), model, wanted))
    : selectFor(app, by, model, 'full')
  return async (_, tx, id) => {
    const key = await writtenKey(app, tx, model, id)
    const record = await readToAnswer(app, by, tx, { model, id, select })
    if (record) return record
    const isLarge = !isLight(app, select) && (await isSeen(app, by, tx, { model, id }))
    // Who may write what they may not see is told that it was written.
    return isLarge ? shortened(key) : key
  }
}

/** With the names of its list members; the id and the version of one that is larger than an answer. */
async function named(
  app: App,
  by: Caller,
  tx: Transaction,
  written: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord> {
  return (await withMemberNames(app, by, tx, written)) ?? shortened(written.record)
}

function refuseKeysOfARecord(data: unknown, place = ''): void {
  if (!isObject(data)) return
  const given = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (given.length > 0) {
    throw new VersoError(
      'bad-request',
      `${place}A new record has no ${given.join(' and no ')} yet: leave it out, or update with POST`,
    )
  }
}
