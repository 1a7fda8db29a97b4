import { VersoError } from '../../errors.js'
import { listNestedDrafts, type Draft, type DraftMember } from '../../model/write/draft.js'
import { pickFileMetadata } from '../../model/catalog/file-metadata.js'
import { canApplyOurs } from '../../model/write/merge.js'
import type { Model } from '../../model/definition/model.js'
import type { Value, Values } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import { rewindValues } from '../../store/log/timeline.js'
import { readVersions } from '../../store/records/bulk.js'
import type { StoredFile } from '../../store/records/files.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { ConflictData, WireRecord } from '../../wire.js'
import { mergeVisibleFields, pickFields, readVisibleFields } from './conflict-view.js'
import { readFileValues } from './held-files.js'
import { fitsAnswer } from '../context/answer-limits.js'
import { evaluateOptionalCriteria } from '../access/record-access.js'
import { isRecordVisible, getVisibleCriteria, addMemberNames } from '../access/visible-records.js'
import type { ExpectedVersion } from '../access/request-checks.js'
import type { Context } from '../context/context.js'

/** A write that was made from another version than the current one. */
interface StaleRecordWrite {
  readonly table: Table
  /** The record as it is now. */
  readonly record: WireRecord
  readonly expected: ExpectedVersion
  /** The data that was sent; null for a delete. */
  readonly draft: Draft | null
}

/** Builds the error of a write whose version is not the current one, with everything that the client needs to go on. */
export async function createConflictError(context: Context, write: StaleRecordWrite): Promise<VersoError> {
  const { data } = await compareWithCurrent(context, write)
  return createStaleError(context, write, data)
}

/** Refuses a stale write. A write that may be merged is refused only if one of its fields has changed since. */
export async function refuseStaleWrite(
  context: Context,
  write: StaleRecordWrite,
  mayMerge = false,
): Promise<void> {
  const { data, appliesOnTop } = await compareWithCurrent(context, write)
  if (!mayMerge || !appliesOnTop) throw await createStaleError(context, write, data)
}

interface ConflictComparison {
  /** `theirs` has no names of list members: a write that is merged does not need them. */
  readonly data: ConflictData
  /** True if the sent values can be written on top of the current record. */
  readonly appliesOnTop: boolean
}

async function compareWithCurrent(
  context: Context,
  { table, record, expected, draft }: StaleRecordWrite,
): Promise<ConflictComparison> {
  const { db } = context
  const { model } = table
  const { id, version } = record
  const sent = draft ? toLoggedValues(draft) : {}
  const visible = await readVisibleFields(context, table, record)
  const { theirs } = visible
  const files = await readFileValues(db, table, id)
  const full = { ...toValues(model, record), ...files }
  const current = pickFields(
    visible.names,
    theirs === record ? full : { ...toValues(model, theirs), ...files },
  )
  const base = await rewindValues(db, table, { id, version, values: full }, expected.version)
  const sides = { base, sent, patched: draft?.patched, current, full }
  const merged = await mergeVisibleFields(context, visible, sides)
  // A delete would discard the other changes. Hidden changes cannot be reported. So neither can be merged.
  const isBlind = draft === null || Object.keys(sent).some((name) => !visible.names.has(name))
  const mergeable = merged.mergeable && !isBlind
  const data: ConflictData = {
    entityName: model.name,
    entityId: id,
    expected: expected.version,
    current: version,
    ...merged,
    mergeable,
    changedBy: (theirs[record['updatedOn'] === null ? 'createdBy' : 'updatedBy'] ??
      null) as ConflictData['changedBy'],
    changedOn: (theirs['updatedOn'] ?? theirs['createdOn'] ?? null) as string | null,
    theirs,
  }
  return { data, appliesOnTop: mergeable && canApplyOurs(merged, sent) }
}

async function createStaleError(
  context: Context,
  { table: { model }, expected: { source } }: StaleRecordWrite,
  data: ConflictData,
): Promise<VersoError> {
  const { app } = context
  const { entityName, entityId, current, expected } = data
  const kind = source === 'if-match' ? 'stale-match' : 'conflict'
  const message = `${entityName} ${entityId} is at version ${current}, not ${expected}: read it again and retry; nothing was changed`
  const named = await addMemberNames(context, { model, record: data.theirs })
  // The record may have changed between the two reads. The version and the values of a conflict must belong together.
  const isOther = named
    ? named.version !== current
    : !(await isRecordVisible(context, { model, id: entityId }))
  const theirs = isOther ? data.theirs : named
  const whole = theirs && { ...data, theirs }
  if (whole && fitsAnswer(app, whole)) return new VersoError(kind, message, { data: whole })
  const more = 'Its values are too large for this response: read the fields that you need with "fields"'
  return new VersoError(kind, `${message}. ${more}`, { data: shortenConflictData(data) })
}

/** Keeps the names of the clashing fields and leaves out their values. */
function shortenConflictData(data: ConflictData): Readonly<Record<string, unknown>> {
  const verdicts = Object.entries(data.fields).map(([name, { verdict }]) => [name, { verdict }] as const)
  const theirs = { id: data.entityId, version: data.current }
  return { ...data, theirs, fields: Object.fromEntries(verdicts), isShortened: true }
}

/** Refuses unless the record is at this version. The caller reports a record that is deleted or hidden. */
export async function refuseIfStale(
  context: Context,
  table: Table,
  id: number,
  { expected, draft, mayMerge = false }: ExpectedWrite,
): Promise<void> {
  const { db, principal } = context
  const version = await store.findVersion(db, table, id)
  if (version === undefined || version === expected.version) return
  const [isVisible] = await evaluateOptionalCriteria(db, table, id, [
    getVisibleCriteria(principal, table.model),
  ])
  const record = isVisible ? await store.readById(db, table, id) : undefined
  if (record) await refuseStaleWrite(context, { table, record, expected, draft }, mayMerge)
}

interface ExpectedWrite {
  readonly expected: ExpectedVersion
  /** The data that was sent; null for a delete or an assertion. */
  readonly draft: Draft | null
  readonly mayMerge?: boolean
}

/** Converts the sent values to the form of the Log. */
function toLoggedValues({ model, values, related, lists }: Draft): Values {
  const sent: Values = { ...values }
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && model.fields.get(name)?.type === 'binary')
      sent[name] = pickFileMetadata(value as unknown as StoredFile)
  }
  for (const [name, relatedRecord] of related) sent[name] = toMemberIdentity({ draft: relatedRecord })
  for (const [name, members] of lists) sent[name] = members.map(toMemberIdentity).sort(compareById)
  return sent
}

/** Converts a member to its id, or a new one to its values. */
function toMemberIdentity(member: DraftMember): Value {
  if (!member.draft) return { id: member.id }
  const { model, key, values } = member.draft
  if (key) return { id: key.id }
  const isPublic = ([name]: readonly [string, Value]) => model.fields.get(name)?.secret === undefined
  return Object.fromEntries(Object.entries(values).filter(isPublic))
}

/** Sorts members as lists are read, new members last. */
function compareById(a: Value, b: Value): number {
  const [left, right] = [a, b].map((value) => (value as { readonly id?: number }).id ?? Infinity)
  return left === right ? 0 : (left ?? 0) - (right ?? 0)
}

/** Versions by model and id. */
export type KnownVersions = ReadonlyMap<Model, ReadonlyMap<number, number>>

/** Reads the versions of the records that the drafts name, with one statement for each model. */
export async function readKnownVersions(
  { app, db }: Context,
  drafts: readonly Draft[],
): Promise<KnownVersions> {
  const idsByModel = new Map<Model, number[]>()
  for (const { model, key } of drafts)
    if (key) idsByModel.set(model, [...(idsByModel.get(model) ?? []), key.id])
  const versions = new Map<Model, ReadonlyMap<number, number>>()
  for (const [model, ids] of idsByModel)
    versions.set(model, await readVersions(db, app.tables.of(model), ids))
  return versions
}

/** Refuses a draft if its record, or a record inside of it, is stale. `known` are versions that were read already. */
export async function refuseStaleDraft(
  context: Context,
  draft: Draft,
  mayMerge: boolean,
  known?: KnownVersions,
): Promise<void> {
  const { model, key } = draft
  const isCurrent = key !== undefined && known?.get(model)?.get(key.id) === key.version
  if (key && !isCurrent) {
    const expected = { version: key.version, source: 'version' } as const
    await refuseIfStale(context, context.app.tables.of(model), key.id, { expected, draft, mayMerge })
  }
  await refuseStaleInside(context, draft, known)
}

/** Refuses stale records inside a draft. They are never merged. */
export async function refuseStaleInside(
  context: Context,
  draft: Draft,
  known?: KnownVersions,
): Promise<void> {
  for (const inner of listNestedDrafts(draft)) await refuseStaleDraft(context, inner, false, known)
}
