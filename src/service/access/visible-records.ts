// What a caller is shown of records: those that may be seen, without what is hidden in them.
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import type { Permissions } from '../../model/access/permissions.js'
import {
  selectFullRecord,
  selectListFields,
  reduceMembersToIds,
  type Selection,
} from '../../model/query/selection.js'
import type { Queryable } from '../../store/engine/database.js'
import * as store from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { App } from '../context/app.js'
import { onlyWithin } from '../context/answer-limits.js'
import { hasMembers } from './written-record.js'
import type { Caller } from '../context/principal.js'

type Shown = 'full' | 'own' | 'list'
type Composed = Pick<App, 'tables' | 'db'>

const SELECTIONS: Readonly<Record<Shown, (sight: Visibility, model: Model) => Selection>> = {
  full: selectFullRecord,
  own: (sight, model) => reduceMembersToIds(selectFullRecord(sight, model)),
  list: selectListFields,
}
/** Rights are kept from one request to the next, and with them the SQL that follows from them. */
const COMPILED = new WeakMap<Permissions, Map<string, Select>>()

/** A record as it is read, as a write needs it, or as it is found. */
export function selectFor({ tables, db }: Composed, { rights }: Caller, model: Model, shown: Shown): Select {
  if (!rights) return tables.of(model)[shown]
  const compiled = COMPILED.get(rights) ?? new Map<string, Select>()
  COMPILED.set(rights, compiled)
  const key = `${shown} ${model.name}`
  const select = compiled.get(key) ?? compileSelection(db.dialect, SELECTIONS[shown](rights, model))
  compiled.set(key, select)
  return select
}

/** Whether every record is shown to the caller as it is, with all that it holds. */
export function seesWhole(app: Composed, by: Caller, model: Model): boolean {
  if (!by.rights) return true
  const { full } = app.tables.of(model)
  const { byId, params } = selectFor(app, by, model, 'full')
  return byId === full.byId && params.length === 0 && seenBy(by, model) === undefined
}

/** The records that the caller may see; all of them if undefined. */
export function seenBy({ rights }: Caller, model: Model): Criteria | undefined {
  return rights?.of(model).criteriaFor('read')
}

/** A record as the caller sees it; undefined if it is not there, or may not be seen. */
export async function readFor(
  app: Composed,
  by: Caller,
  db: Queryable,
  model: Model,
  id: number,
  select = selectFor(app, by, model, 'full'),
): Promise<WireRecord | undefined> {
  return store.read(db, app.tables.of(model), id, select, { seen: seenBy(by, model) })
}

/** True if the record exists and the caller may see it. */
export async function isSeen(
  app: Composed,
  by: Caller,
  db: Queryable,
  { model, id }: RecordKey,
): Promise<boolean> {
  const seen = seenBy(by, model)
  const tested = await store.evaluateCriteria(db, app.tables.of(model), id, seen ? [seen] : [])
  return tested !== undefined && !tested.includes(false)
}

interface RecordKey {
  readonly model: Model
  readonly id: number
}

interface RecordToAnswer extends RecordKey {
  readonly select?: Select
}

/** A record as the caller sees it, if it fits an answer. Of a larger one the database sends nothing. */
export async function readToAnswer(
  app: Composed & Pick<App, 'settings'>,
  by: Caller,
  db: Queryable,
  { model, id, select = selectFor(app, by, model, 'full') }: RecordToAnswer,
): Promise<WireRecord | undefined> {
  const only = onlyWithin(app, { select, seen: seenBy(by, model) })
  return store.read(db, app.tables.of(model), id, select, only)
}

/** Adds the names of list members to a record that a write has read; undefined if it does not fit an answer then. */
export async function withMemberNames(
  app: Composed & Pick<App, 'settings'>,
  by: Caller,
  db: Queryable,
  { model, record }: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord | undefined> {
  return hasMembers(model, record) ? readToAnswer(app, by, db, { model, id: record.id }) : record
}

/** Those of the ids that the caller may see; without regard to whether they are there, where everything may be seen. */
export async function seenAmong(
  app: Composed,
  { rights }: Caller,
  db: Queryable,
  model: Model,
  ids: readonly number[],
  seen = rights?.visibleRecords(model),
): Promise<ReadonlySet<number>> {
  return seen && ids.length > 0 ? store.filterIds(db, app.tables.of(model), ids, seen) : new Set(ids)
}
