// Reads records as a principal sees them: only visible records, without hidden fields.
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { hasMembers } from '../../model/definition/record-values.js'
import type { Permissions } from '../../model/access/permissions.js'
import {
  selectFullRecord,
  selectListFields,
  reduceMembersToIds,
  type Selection,
} from '../../model/query/selection.js'
import * as store from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import type { Visibility } from '../../model/query/visibility.js'
import { limitToAnswer } from '../context/answer-limits.js'
import type { Principal } from '../context/principal.js'
import { type Context } from '../context/context.js'

type SelectionKind = 'full' | 'own' | 'list'
const SELECTION_BUILDERS: Readonly<
  Record<SelectionKind, (visibility: Visibility, model: Model) => Selection>
> = {
  full: selectFullRecord,
  own: (visibility, model) => reduceMembersToIds(selectFullRecord(visibility, model)),
  list: selectListFields,
}
/** Compiled selects per permissions. Permissions are cached between requests, and their SQL with them. */
const COMPILED_SELECTS = new WeakMap<Permissions, Record<SelectionKind, Map<Model, Select>>>()

/** How a record is selected: whole, as a write needs it, or as a list shows it. */
export function getSelect({ app, principal }: Context, model: Model, kind: SelectionKind): Select {
  const { permissions } = principal
  if (!permissions) return app.tables.of(model)[kind]
  const selects = getCompiledSelects(permissions)[kind]
  const compiled = selects.get(model)
  if (compiled) return compiled
  const select = compileSelection(app.db.dialect, SELECTION_BUILDERS[kind](permissions, model))
  selects.set(model, select)
  return select
}

function getCompiledSelects(permissions: Permissions): Record<SelectionKind, Map<Model, Select>> {
  const cached = COMPILED_SELECTS.get(permissions)
  if (cached) return cached
  const empty = {
    full: new Map<Model, Select>(),
    own: new Map<Model, Select>(),
    list: new Map<Model, Select>(),
  }
  COMPILED_SELECTS.set(permissions, empty)
  return empty
}

/** Returns the criteria of the visible records; undefined means all of them. */
export function getVisibleCriteria({ permissions }: Principal, model: Model): Criteria | undefined {
  return permissions?.of(model).criteriaFor('read')
}

/** Reads a record as the principal sees it. Undefined if it does not exist or is not visible. */
export async function readVisible(
  context: Context,
  model: Model,
  id: number,
  select = getSelect(context, model, 'full'),
): Promise<WireRecord | undefined> {
  const filter = { visible: getVisibleCriteria(context.principal, model) }
  return store.readById(context.db, context.app.tables.of(model), id, { select, filter })
}

/** True if the record exists and the principal may see it. */
export async function isRecordVisible(context: Context, { model, id }: RecordKey): Promise<boolean> {
  const visible = getVisibleCriteria(context.principal, model)
  const tested = await store.evaluateCriteria(
    context.db,
    context.app.tables.of(model),
    id,
    visible ? [visible] : [],
  )
  return tested !== undefined && !tested.includes(false)
}

interface RecordKey {
  readonly model: Model
  readonly id: number
}

interface RecordReadRequest extends RecordKey {
  readonly select?: Select
}

/** Reads a record as the principal sees it, if it fits an answer. The database sends nothing of a larger record. */
export async function readIfFits(
  context: Context,
  { model, id, select = getSelect(context, model, 'full') }: RecordReadRequest,
): Promise<WireRecord | undefined> {
  const { app, principal, db } = context
  const filter = limitToAnswer(app, { select, visible: getVisibleCriteria(principal, model) })
  return store.readById(db, app.tables.of(model), id, { select, filter })
}

/** Adds the names of list members to a record that a write has read. Undefined if the result does not fit an answer. */
export async function addMemberNames(
  context: Context,
  { model, record }: { readonly model: Model; readonly record: WireRecord },
): Promise<WireRecord | undefined> {
  return hasMembers(model, record) ? readIfFits(context, { model, id: record.id }) : record
}

/** Keeps the ids of visible records. Without restrictions it keeps every id, also ids that do not exist. */
export async function filterVisibleIds(
  context: Context,
  model: Model,
  ids: readonly number[],
  visible = context.principal.permissions?.visibleRecords(model),
): Promise<ReadonlySet<number>> {
  return visible && ids.length > 0
    ? store.filterIds(context.db, context.app.tables.of(model), ids, visible)
    : new Set(ids)
}
