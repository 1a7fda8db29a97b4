import { VersoError } from '../../errors.js'
import type { Draft, DraftMember } from '../../model/write/draft.js'
import { pickFileMetadata } from '../../model/catalog/file-facts.js'
import { canApplyOurs } from '../../model/write/merge.js'
import type { Value, Values } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { Queryable } from '../../store/engine/database.js'
import { rewindValues } from '../../store/log/log.js'
import type { StoredFile } from '../../store/records/files.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { ConflictData, WireRecord } from '../../wire.js'
import { mergeVisibleFields, pickFields, readVisibleFields } from './conflict-view.js'
import { readFileValues } from './held-files.js'
import { fitsAnswer } from '../context/answer-limits.js'
import { evaluateOptionalCriteria } from '../access/record-access.js'
import { isRecordVisible, getVisibleCriteria, addMemberNames } from '../access/visible-records.js'
import type { ExpectedVersion } from './versions.js'
import type { WriteContext } from '../context/context.js'

/** Whoever is refused, and sees of the record what they may. */
type ConflictContext = Omit<WriteContext, 'tx' | 'now'>

/** The refusal of a write whose version is not the current one, with all that its sender needs to go on. */
export async function createConflictError(
  context: ConflictContext,
  db: Queryable,
  table: Table,
  record: WireRecord,
  expected: ExpectedVersion,
  /** What was to be written; null for a delete. */
  draft: Draft | null,
): Promise<VersoError> {
  const { data } = await compareWithCurrent(context, db, table, record, expected, draft)
  return createStaleError(context, db, table, { data, expected })
}

/** Refuses what is not made from the current version; one that may be merged, only if somebody changed since what is sent. */
export async function refuseStaleWrite(
  context: ConflictContext,
  db: Queryable,
  table: Table,
  record: WireRecord,
  expected: ExpectedVersion,
  draft: Draft | null,
  mayMerge: boolean,
): Promise<void> {
  const { data, appliesOnTop } = await compareWithCurrent(context, db, table, record, expected, draft)
  if (!mayMerge || !appliesOnTop) throw await createStaleError(context, db, table, { data, expected })
}

interface ConflictComparison {
  /** `theirs` is without the names of list members: a write that can be merged needs none. */
  readonly data: ConflictData
  /** Whether what was sent can be written as if it had been made from the record as it is. */
  readonly appliesOnTop: boolean
}

async function compareWithCurrent(
  context: ConflictContext,
  db: Queryable,
  table: Table,
  record: WireRecord,
  expected: ExpectedVersion,
  draft: Draft | null,
): Promise<ConflictComparison> {
  const { model } = table
  const { id, version } = record
  const sent = draft ? toLoggedValues(draft) : {}
  const visible = await readVisibleFields(context, db, table, record)
  const { theirs } = visible
  const files = await readFileValues(db, table, id)
  const full = { ...toValues(model, record), ...files }
  const current = pickFields(
    visible.names,
    theirs === record ? full : { ...toValues(model, theirs), ...files },
  )
  const past = { version, values: full }
  const base = await rewindValues(db, table, id, past, expected.version)
  const sides = { base, sent, patched: draft?.patched, current, full }
  const merged = await mergeVisibleFields(context, db, visible, sides)
  // A delete takes their changes with it, and who changed what is not shown is not told: neither can stand beside the other.
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

interface StaleWrite {
  readonly data: ConflictData
  readonly expected: ExpectedVersion
}

async function createStaleError(
  context: ConflictContext,
  db: Queryable,
  { model }: Table,
  { data, expected: { source } }: StaleWrite,
): Promise<VersoError> {
  const { app } = context
  const { entityName, entityId, current, expected } = data
  const kind = source === 'if-match' ? 'stale-match' : 'conflict'
  const message = `${entityName} ${entityId} is at version ${current}, not ${expected}: nothing was written`
  const named = await addMemberNames(app, context, db, { model, record: data.theirs })
  // Somebody may have written or removed the record between the two reads: the version and the values of a conflict belong together.
  const isOther = named
    ? named.version !== current
    : !(await isRecordVisible(app, context, db, { model, id: entityId }))
  const theirs = isOther ? data.theirs : named
  const whole = theirs && { ...data, theirs }
  if (whole && fitsAnswer(app, whole)) return new VersoError(kind, message, { data: whole })
  const more = 'Its values are too large for this answer: read those that you need with "fields"'
  return new VersoError(kind, `${message}. ${more}`, { data: shortenConflictData(data) })
}

/** Which fields clash, without what they hold. */
function shortenConflictData(data: ConflictData): Readonly<Record<string, unknown>> {
  const verdicts = Object.entries(data.fields).map(([name, { verdict }]) => [name, { verdict }] as const)
  const theirs = { id: data.entityId, version: data.current }
  return { ...data, theirs, fields: Object.fromEntries(verdicts), isShortened: true }
}

/** Refuses unless the record is at this version. What is no longer there, or may not be seen, is for the caller to say. */
export async function refuseIfStale(
  context: ConflictContext,
  db: Queryable,
  table: Table,
  id: number,
  expected: ExpectedVersion,
  draft: Draft | null,
  mayMerge = false,
): Promise<void> {
  const version = await store.findVersion(db, table, id)
  if (version === undefined || version === expected.version) return
  const [isVisible] = await evaluateOptionalCriteria(db, table, id, [
    getVisibleCriteria(context, table.model),
  ])
  const record = isVisible ? await store.read(db, table, id) : undefined
  if (record) await refuseStaleWrite(context, db, table, record, expected, draft, mayMerge)
}

/** What was to be written, in the form that the Log knows it. */
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

/** Who it is; of one that is yet to be made, what it is to hold. */
function toMemberIdentity(member: DraftMember): Value {
  if (!member.draft) return { id: member.id }
  const { model, key, values } = member.draft
  if (key) return { id: key.id }
  const isPublic = ([name]: readonly [string, Value]) => model.fields.get(name)?.secret === undefined
  return Object.fromEntries(Object.entries(values).filter(isPublic))
}

/** As lists are read; what has no id yet comes last. */
function compareById(a: Value, b: Value): number {
  const [left, right] = [a, b].map((value) => (value as { readonly id?: number }).id ?? Infinity)
  return left === right ? 0 : (left ?? 0) - (right ?? 0)
}
