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
import { limitToAnswer } from '../context/answer-limits.js'
import { hasMembers } from './written-record.js'
import type { Principal } from '../context/principal.js'

type SelectionKind = 'full' | 'own' | 'list'
type SelectApp = Pick<App, 'tables' | 'db'>

const SELECTION_BUILDERS: Readonly<Record<SelectionKind, (sight: Visibility, model: Model) => Selection>> = {
  full: selectFullRecord,
  own: (sight, model) => reduceMembersToIds(selectFullRecord(sight, model)),
  list: selectListFields,
}
/** Rights are kept from one request to the next, and with them the SQL that follows from them. */
const COMPILED_SELECTS = new WeakMap<Permissions, Map<string, Select>>()

/** A record as it is read, as a write needs it, or as it is found. */
export function getSelect(
  { tables, db }: SelectApp,
  { permissions }: Principal,
  model: Model,
  kind: SelectionKind,
): Select {
  if (!permissions) return tables.of(model)[kind]
  const compiled = COMPILED_SELECTS.get(permissions) ?? new Map<string, Select>()
  COMPILED_SELECTS.set(permissions, compiled)
  const key = `${kind} ${model.name}`
  const select =
    compiled.get(key) ?? compileSelection(db.dialect, SELECTION_BUILDERS[kind](permissions, model))
  compiled.set(key, select)
  return select
}

/** Whether every record is shown to the caller as it is, with all that it holds. */
export function seesWholeRecords(app: SelectApp, principal: Principal, model: Model): boolean {
  if (!principal.permissions) return true
  const { full } = app.tables.of(model)
  const { byId, params } = getSelect(app, principal, model, 'full')
  return byId === full.byId && params.length === 0 && getVisibleCriteria(principal, model) === undefined
}

/** The records that the caller may see; all of them if undefined. */
export function getVisibleCriteria({ permissions }: Principal, model: Model): Criteria | undefined {
  return permissions?.of(model).criteriaFor('read')
}

/** A record as the caller sees it; undefined if it is not there, or may not be seen. */
export async function readVisible(
  app: SelectApp,
  principal: Principal,
  db: Queryable,
  model: Model,
  id: number,
  select = getSelect(app, principal, model, 'full'),
): Promise<WireRecord | undefined> {
  return store.read(db, app.tables.of(model), id, select, { seen: getVisibleCriteria(principal, model) })
}

/** True if the record exists and the caller may see it. */
export async function isRecordVisible(
  app: SelectApp,
  principal: Principal,
  db: Queryable,
  { model, id }: RecordKey,
): Promise<boolean> {
  const seen = getVisibleCriteria(principal, model)
  const tested = await store.evaluateCriteria(db, app.tables.of(model), id, seen ? [seen] : [])
  return tested !== undefined && !tested.includes(false)
}

interface RecordKey {
  readonly model: Model
  readonly id: number
}

interface RecordReadRequest extends RecordKey {
  readonly select?: Select
}

/** A record as the caller sees it, if it fits an answer. Of a larger one the database sends nothing. */
export async function readIfFits(
  app: SelectApp & Pick<App, 'settings'>,
  principal: Principal,
  db: Queryable,
  { model, id, select = getSelect(app, principal, model, 'full') }: RecordReadRequest,
): Promise<WireRecord | undefined> {
  const only = limitToAnswer(app, { select, seen: getVisibleCriteria(principal, model) })
  return store.read(db, app.tables.of(model), id, select, only)
}

/** Adds the names of list members to a record that a write has read; undefined if it does not fit an answer then. */
export async function addMemberNames(
  app: SelectApp & Pick<App, 'settings'>,
  principal: Principal,
  db: Queryable,
  { model, record }: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord | undefined> {
  return hasMembers(model, record) ? readIfFits(app, principal, db, { model, id: record.id }) : record
}

/** Those of the ids that the caller may see; without regard to whether they are there, where everything may be seen. */
export async function filterVisibleIds(
  app: SelectApp,
  { permissions }: Principal,
  db: Queryable,
  model: Model,
  ids: readonly number[],
  seen = permissions?.visibleRecords(model),
): Promise<ReadonlySet<number>> {
  return seen && ids.length > 0 ? store.filterIds(db, app.tables.of(model), ids, seen) : new Set(ids)
}
