// A record as it was: its own values of then, and its neighbours as they are today.
import { VersoError } from '../../errors.js'
import { isReference, isReadByDefault, type Model } from '../../model/definition/model.js'
import { resolveListOrder } from '../../model/query/list-order.js'
import { buildStep } from '../../model/query/path.js'
import { selectReference } from '../../model/query/selection.js'
import { getReferenceId, type Value, type Values } from '../../model/values/value.js'
import type { Field } from '../../model/values/field-types.js'
import { readByIds } from '../../store/records/bulk.js'
import type { Queryable } from '../../store/engine/database.js'
import { readRetentionFloor } from '../../store/log/feed.js'
import { measureRecords } from '../../store/find/large-pages.js'
import { isKnownIn, wasAfter, type Was } from '../../store/log/past.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { checkId, missing } from '../context/ids.js'
import { fitsAnswer, memoryBytes, pastTooLarge, roomFor } from '../context/answer-limits.js'
import { sightOf, type Caller } from '../context/principal.js'
import { isSeen } from '../access/visible-records.js'
import { asOfFrom, refuseIfGone, seqOf } from './point-in-time.js'
import { shownOf, type Shown } from './past-visibility.js'

/** At a version or at a moment. */
export async function readAt(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  asOf: unknown,
): Promise<WireRecord> {
  const at = asOfFrom(asOf)
  checkId(model, id)
  const db = app.db.queryPool
  if ('version' in at) {
    const past = await pastAt(app, by, db, model, id, at.version)
    return recordOf({ app, by, db, model }, id, past)
  }
  const seq = await seqOf(db, at)
  const was = await wasAfter(db, app.tables.of(model), id, (change) => change.seq <= seq)
  await refuseIfGone(db, seq)
  const past = await shownPast(app, by, db, model, id, was)
  return past ? recordOf({ app, by, db, model }, id, past) : missing(model, id)
}

/** What a record held, as far as a caller may see it. */
export interface Past {
  readonly version: number
  readonly values: Values
  readonly shown: Exclude<Shown, 'nothing'>
}

/** The record at a version; refuses one that never was, that was a delete, that may not be seen, or that the Log no longer has. */
export async function pastAt(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  id: number,
  version: number,
): Promise<Past> {
  const was = await wasAfter(db, app.tables.of(model), id, (change) => change.version <= version)
  if (was.version === version && was.state !== 'unknown')
    return (await shownPast(app, by, db, model, id, was)) ?? noVersion(model, id, version)
  const isLost = await isForgotten(db, was, version)
  // Who does not see the record must not learn that there was one.
  const isTold = !by.rights || (await isSeen(app, by, db, { model, id }))
  if (!isLost || !isTold) return noVersion(model, id, version)
  throw new VersoError('gone', `Version ${version} of ${model.name} ${id} is no longer kept`)
}

/** Whether there was such a version, or may have been, before the past was taken out of the Log. */
async function isForgotten(db: Queryable, { latest, oldest }: Was, version: number): Promise<boolean> {
  if (latest === undefined || version > latest) return false
  if (oldest === undefined || oldest.action !== 'create' || oldest.version <= version) return true
  // A record that was deleted and came back was made twice; one that was imported may begin with any version.
  return oldest.version > 0 && (await readRetentionFloor(db)) > 0
}

function noVersion(model: Model, id: number, version: number): never {
  throw new VersoError('not-found', `There is no ${model.name} with id ${id} at version ${version}`)
}

/** Undefined if it was not there, or may not be seen as it was. */
export async function shownPast(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  id: number,
  { state, version = 0, today }: Was,
): Promise<Past | undefined> {
  const [shown = 'nothing'] = await shownOf(app, by, db, model, [{ id, version, state, today }])
  if (typeof state === 'string' || (by.rights && shown === 'nothing')) return undefined
  return { version, values: state, shown: shown === 'nothing' ? undefined : shown }
}

/** The caller who reads records of a model, and the connection that reads them. */
export interface Viewing {
  readonly app: App
  readonly by: Caller
  readonly db: Queryable
  readonly model: Model
}

async function recordOf(viewing: Viewing, id: number, { version, values, shown }: Past): Promise<WireRecord> {
  const { app, model } = viewing
  const record: Record<string, Value> & { id: number; version: number } = { id, version }
  for (const field of model.fields.values()) {
    if (!isReadByDefault(field) || (shown && !shown.has(field.name)) || !isKnownIn(values, field.name))
      continue
    const value = values[field.name] ?? null
    if (!field.relation) record[field.name] = value
    else {
      const neighbours = await neighboursOf(viewing, field, [value], () => pastTooLarge(app.settings))
      const told = toldOf(field, value, neighbours)
      if (told !== undefined) record[field.name] = told
    }
  }
  if (!fitsAnswer(app, record)) throw pastTooLarge(app.settings)
  return record
}

/** Neighbours by their ids, as they are shown today. */
export interface Neighbours {
  of(id: number): Value | undefined
  /** Where one stands in the order of its list, as that is today; those that are gone come last. */
  rankOf(id: number): number
}

const NOBODY: Neighbours = { of: () => undefined, rankOf: () => Infinity }

/**
 * Those that these values lead to. One that is gone is its id alone, to those who see everything; to others it is like one that they do not see.
 * Names that do not fit an answer are not read.
 */
export async function neighboursOf(
  { app, by, db, model }: Viewing,
  field: Field,
  values: readonly Value[],
  tooLarge: (bytes: number) => VersoError,
): Promise<Neighbours> {
  const ids = [...new Set(values.flatMap((value) => listed(value).map(getReferenceId)))]
  if (ids.length === 0) return NOBODY
  const sight = sightOf(app, by)
  const { target, seen } = buildStep(sight, model, field)
  const select = compileSelection(app.db.dialect, selectReference(sight, target))
  const order = field.relation?.orderBy && resolveListOrder(sight, field)
  const table = app.tables.of(target)
  const isLight = select.maxBytes * ids.length <= memoryBytes(app.settings)
  const bytes = isLight ? 0 : await measureRecords(db, table, ids, { select, seen })
  if (bytes > roomFor(app.settings)) throw tooLarge(bytes)
  const records = await readByIds(db, table, ids, select, { seen, order })
  const known = new Map(records.map(({ id, version, ...rest }) => [id, { id, $version: version, ...rest }]))
  const ranks = order && new Map(records.map(({ id }, rank) => [id, rank]))
  return {
    of: (id) => known.get(id) ?? (by.rights ? undefined : { id }),
    rankOf: (id) => ranks?.get(id) ?? Infinity,
  }
}

/** A reference to what may not be seen is left out, and a list is without such members. */
export function toldOf(field: Field, value: Value, neighbours: Neighbours): Value | undefined {
  if (isReference(field)) return value === null ? null : neighbours.of(getReferenceId(value))
  const ids = listed(value).map(getReferenceId)
  const ordered = field.relation?.orderBy ? ids.toSorted(byRank(neighbours)) : ids
  return ordered.flatMap((id) => neighbours.of(id) ?? [])
}

function byRank(neighbours: Neighbours): (a: number, b: number) => number {
  return (a, b) => {
    const [left, right] = [neighbours.rankOf(a), neighbours.rankOf(b)]
    return left === right ? a - b : left - right
  }
}

function listed(value: Value): readonly Value[] {
  if (value === null) return []
  return Array.isArray(value) ? (value as readonly Value[]) : [value]
}
