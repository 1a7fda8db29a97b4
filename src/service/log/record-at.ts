// Reads a record at a point in time: its own values of that time, with its related records as they are today.
import { VersoError } from '../../errors.js'
import { isReference, isReadByDefault, type Model } from '../../model/definition/model.js'
import { resolveListOrder } from '../../model/query/sort.js'
import { buildStep } from '../../model/query/path.js'
import { selectReference } from '../../model/query/selection.js'
import { getReferenceId, type Value, type Values } from '../../model/values/value.js'
import type { Field } from '../../model/values/field.js'
import { findByIds } from '../../store/records/bulk.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRetentionFloor } from '../../store/log/feed.js'
import { measureRecords } from '../../store/find/large-pages.js'
import { findRecordAt, type RecordAt } from '../../store/log/timeline.js'
import { isKnownIn } from '../../store/log/rewind.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { requireId, throwNotFound } from '../access/request-checks.js'
import {
  fitsAnswer,
  computeMemoryLimit,
  createRecordAtTooLargeError,
  computeAnswerRoom,
} from '../context/answer-limits.js'
import type { Principal } from '../context/principal.js'
import { isRecordVisible } from '../access/visible-records.js'
import { parseTimelinePoint, refuseBelowRetentionFloor, resolveSeqAt } from './point-in-time.js'
import { evaluateStateVisibility, toValueList, type StateVisibility } from './state-visibility.js'
import { getVisibility, withDatabase, type Context } from '../context/context.js'

/** `asOf` is a version or a point in time. */
export async function readRecordAt(
  context: Context,
  model: Model,
  id: number,
  asOf: unknown,
): Promise<WireRecord> {
  const { app, principal } = context
  const at = parseTimelinePoint(asOf)
  requireId(model, id)
  const db = app.db.queryPool
  if ('version' in at) {
    const visible = await readVisibleRecordAt(withDatabase(context, db), model, id, at.version)
    return buildRecordAt({ app, principal, db, model }, id, visible)
  }
  const seq = await resolveSeqAt(db, at)
  const found = await findRecordAt(db, app.tables.of(model), id, (change) => change.seq <= seq)
  await refuseBelowRetentionFloor(db, seq)
  const visible = await toVisibleRecordAt(withDatabase(context, db), model, id, found)
  return visible ? buildRecordAt({ app, principal, db, model }, id, visible) : throwNotFound(model, id)
}

/** A past state of a record, with the fields that the principal may read. */
export interface VisibleRecordAt {
  readonly version: number
  readonly values: Values
  readonly readableFields: Exclude<StateVisibility, 'nothing'>
}

/** Returns the record at a version. Fails if the version never existed, is a delete, is not visible, or is no longer in the Log. */
export async function readVisibleRecordAt(
  context: Context,
  model: Model,
  id: number,
  version: number,
): Promise<VisibleRecordAt> {
  const { db } = context
  const found = await findRecordAt(
    db,
    context.app.tables.of(model),
    id,
    (change) => change.version <= version,
  )
  if (found.version === version && found.state !== 'unknown')
    return (await toVisibleRecordAt(context, model, id, found)) ?? throwNoVersion(model, id, version)
  const isLost = await isVersionExpired(db, found, version)
  // A principal that cannot see the record must not learn that it exists.
  const isVisible = !context.principal.permissions || (await isRecordVisible(context, { model, id }))
  if (!isLost || !isVisible) return throwNoVersion(model, id, version)
  throw new VersoError('gone', `Version ${version} of ${model.name} ${id} is no longer in the change log`)
}

/** True if the version existed, or may have existed, before old Changes were removed from the Log. */
async function isVersionExpired(
  db: Queryable,
  { latest, oldest }: RecordAt,
  version: number,
): Promise<boolean> {
  if (latest === undefined || version > latest) return false
  if (oldest === undefined || oldest.action !== 'create' || oldest.version <= version) return true
  // The oldest Change may be a second create (after a delete), or an import that starts at any version.
  return oldest.version > 0 && (await readRetentionFloor(db)) > 0
}

function throwNoVersion(model: Model, id: number, version: number): never {
  throw new VersoError('not-found', `${model.name} ${id} has no version ${version}`)
}

/** Returns undefined if the record did not exist then, or its past state is not visible. */
export async function toVisibleRecordAt(
  context: Context,
  model: Model,
  id: number,
  { state, version = 0, today }: RecordAt,
): Promise<VisibleRecordAt | undefined> {
  const [shown = 'nothing'] = await evaluateStateVisibility(context, model, [{ id, version, state, today }])
  if (typeof state === 'string' || (context.principal.permissions && shown === 'nothing')) return undefined
  return { version, values: state, readableFields: shown === 'nothing' ? undefined : shown }
}

/** The principal, model and connection of a read. */
export interface ReadContext {
  readonly app: App
  readonly principal: Principal
  readonly db: Queryable
  readonly model: Model
}

async function buildRecordAt(
  context: ReadContext,
  id: number,
  { version, values, readableFields }: VisibleRecordAt,
): Promise<WireRecord> {
  const { app, model } = context
  const record: Record<string, Value> & { id: number; version: number } = { id, version }
  for (const field of model.fields.values()) {
    if (
      !isReadByDefault(field) ||
      (readableFields && !readableFields.has(field.name)) ||
      !isKnownIn(values, field.name)
    )
      continue
    const value = values[field.name] ?? null
    if (!field.relation) record[field.name] = value
    else {
      const related = await readRelatedRecords(context, field, [value], () =>
        createRecordAtTooLargeError(app.settings),
      )
      const visible = toVisibleValue(field, value, related)
      if (visible !== undefined) record[field.name] = visible
    }
  }
  if (!fitsAnswer(app, record)) throw createRecordAtTooLargeError(app.settings)
  return record
}

/** Related records by id, as they are today. */
export interface RelatedRecordLookup {
  find(id: number): Value | undefined
  /** Returns the position in the current order of the list. Deleted members come last. */
  findListOrder(id: number): number
}

const NO_RELATED_RECORDS: RelatedRecordLookup = { find: () => undefined, findListOrder: () => Infinity }

/**
 * Reads the records that these values refer to. A deleted record is shown as its id to principals without restrictions, and hidden from all
 * other principals. Fails before reading if the records would exceed the size limit of an answer.
 */
export async function readRelatedRecords(
  { app, principal, db, model }: ReadContext,
  field: Field,
  values: readonly Value[],
  tooLarge: (bytes: number) => VersoError,
): Promise<RelatedRecordLookup> {
  const ids = [...new Set(values.flatMap((value) => toValueList(value).map(getReferenceId)))]
  if (ids.length === 0) return NO_RELATED_RECORDS
  const visibility = getVisibility(app, principal)
  const { target, visible } = buildStep(visibility, model, field)
  const select = compileSelection(app.db.dialect, selectReference(visibility, target))
  const order = field.relation?.orderBy && resolveListOrder(visibility, field)
  const table = app.tables.of(target)
  const isLight = select.maxBytes * ids.length <= computeMemoryLimit(app.settings)
  const bytes = isLight ? 0 : await measureRecords(db, table, ids, { select, visible })
  if (bytes > computeAnswerRoom(app.settings)) throw tooLarge(bytes)
  const records = await findByIds(db, table, ids, { select, visible, order })
  const known = new Map(records.map(({ id, version, ...rest }) => [id, { id, $version: version, ...rest }]))
  const ranks = order && new Map(records.map(({ id }, rank) => [id, rank]))
  return {
    find: (id) => known.get(id) ?? (principal.permissions ? undefined : { id }),
    findListOrder: (id) => ranks?.get(id) ?? Infinity,
  }
}

/** Omits a reference to an invisible record, and removes invisible members from a list. */
export function toVisibleValue(field: Field, value: Value, related: RelatedRecordLookup): Value | undefined {
  if (isReference(field)) return value === null ? null : related.find(getReferenceId(value))
  const ids = toValueList(value).map(getReferenceId)
  const ordered = field.relation?.orderBy ? ids.toSorted(compareByListOrder(related)) : ids
  return ordered.flatMap((id) => related.find(id) ?? [])
}

function compareByListOrder(related: RelatedRecordLookup): (a: number, b: number) => number {
  return (a, b) => {
    const [left, right] = [related.findListOrder(a), related.findListOrder(b)]
    return left === right ? a - b : left - right
  }
}
