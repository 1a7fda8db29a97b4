// Finds a page of records at a point in time: filtered, sorted and counted by the values of that time.
import { VersoError } from '../../errors.js'
import type { Criteria, PathStep } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import {
  isOwnedList,
  isReference,
  isReadByDefault,
  isInverse,
  type Model,
} from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import { parseFindQuery, type FindQuery, type Search } from '../../model/query/search.js'
import { selectListFields, type SelectionEntry } from '../../model/query/selection.js'
import { isSameValue, type Value } from '../../model/values/value.js'
import { findOwnFields } from '../../store/records/evaluate-values.js'
import { findChangedRecords, buildTableAt, type ChangedRecord } from '../../store/log/table-at.js'
import { isKnownIn, getStateValue, type RecordState } from '../../store/log/rewind.js'
import { findPage, resolveSelect } from '../../store/find/pages.js'
import { FoundPage } from '../../store/sql/found.js'
import type { WireRecord } from '../../wire.js'
import { computeAnswerRoom, createPageTooLargeError, stringifyRecords } from '../context/answer-limits.js'
import { AnswerPage } from '../context/answer-page.js'
import { refuseLargePageAt } from '../context/staged-pages.js'
import type { Principal } from '../context/principal.js'
import { getVisibleCriteria, getSelect } from '../access/visible-records.js'
import { parseTimelineTime, resolveSeqAt } from './point-in-time.js'
import { readRelatedRecords, toVisibleValue, type ReadContext } from './record-at.js'
import { getVisibility, type Context } from '../context/context.js'

export async function findPageAt(context: Context, model: Model, query: FindQuery): Promise<AnswerPage> {
  const { app, principal } = context
  const requested = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxPageSize)
  const at = parseTimelineTime(query.asOf)
  refuseRelatedPaths(requested)
  const search = { ...requested, visible: getVisibleCriteria(principal, model) }
  const table = app.tables.of(model)
  // One snapshot, because the Log and the table must be read in the same state.
  return app.db.queryPool.snapshot(async (db) => {
    const seq = await resolveSeqAt(db, at)
    const changed = hideUntestable(principal, model, await findChangedRecords(db, table, seq))
    const list = getSelect(context, model, 'list')
    const tableAt = buildTableAt(table, changed)
    await refuseLargePageAt(app.settings, db, tableAt, {
      search,
      select: resolveSelect(tableAt, search, list),
    })
    const { total, records, nextCursor } = await findPage(db, tableAt, search, { list })
    const { entries } = search.selection ?? selectListFields(getVisibility(app, principal), model)
    const data = await addRelatedRecords({ app, principal, db, model }, entries, changed, records)
    const page = new FoundPage({ total, seq, nextCursor }, stringifyRecords(app, data))
    return new AnswerPage(search, page, nextCursor && { offset: search.offset + search.limit })
  })
}

/** The Log of a record has the ids of its related records, but not their values. Paths into related records are rejected. */
function refuseRelatedPaths({ where, sort, selection }: Search): void {
  const errors = [
    ...(where ? collectRelatedPaths(where) : []),
    ...sort.flatMap(({ steps, field }) =>
      isOwnField(steps, field === ID_FIELD) ? [] : [formatSteps(steps)],
    ),
  ].map(
    (path) =>
      `asOf: "${path}" is a path into related records: filter, q and sortBy can use fields of the record itself only`,
  )
  const views = (selection?.entries ?? [])
    .filter(({ steps, field }) => steps.length === 0 && isInverse(field))
    .map(({ key }) => `asOf: "${key}" is stored in other records and cannot be shown at a past time`)
  const all = [...new Set([...errors, ...views])]
  if (all.length > 0) throw new VersoError('bad-request', all.slice(0, 10).join('; '))
}

function collectRelatedPaths(criteria: Criteria): string[] {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().flatMap(collectRelatedPaths)
  const { steps, field } = criteria
  return isOwnField(steps, field === ID_FIELD) ? [] : [formatSteps(steps)]
}

/** A record stores the id of a referenced record, so `reference.id` is one of its own values. */
function isOwnField(steps: readonly PathStep[], isId: boolean): boolean {
  const [step, ...further] = steps
  return !step || (isId && further.length === 0 && isReference(step.field))
}

function formatSteps(steps: readonly PathStep[]): string {
  return steps.map(({ field }) => field.name).join('.')
}

/**
 * SQL can only test the current members of an owned list. If a permission condition depends on a list that changed after the point in time, the
 * condition cannot be evaluated, and the record is hidden.
 */
function hideUntestable(
  { permissions }: Principal,
  model: Model,
  changed: ReadonlyMap<number, ChangedRecord>,
): ReadonlyMap<number, ChangedRecord> {
  const conditions = (permissions?.of(model).grantsFor('read') ?? []).flatMap(({ where }) => where ?? [])
  const lists = conditions.flatMap(findOwnFields).filter((field) => isOwnedList(field))
  if (lists.length === 0) return changed
  const isSame = ({ before, today }: ChangedRecord) =>
    lists.every(({ name }) => isSameValue(getStateValue(before, name), getStateValue(today, name)))
  return new Map(
    [...changed].map(([id, each]) => [id, isSame(each) ? each : { ...each, before: 'unknown' as const }]),
  )
}

/** True if the Log no longer has the value of the field. */
function isValueLost(before: RecordState | undefined, field: Field): boolean {
  return typeof before === 'object' && isReadByDefault(field) && !isKnownIn(before, field.name)
}

/** Replaces the related records of changed records by those of the point in time. */
async function addRelatedRecords(
  context: ReadContext,
  entries: readonly SelectionEntry[],
  changed: ReadonlyMap<number, ChangedRecord>,
  records: readonly WireRecord[],
): Promise<readonly WireRecord[]> {
  const { model } = context
  const { settings } = context.app
  // An estimate, because the sizes of past records are not known exactly.
  const tooHeavy = (bytes: number) =>
    createPageTooLargeError(
      settings,
      Math.min(records.length - 1, Math.floor((records.length * computeAnswerRoom(settings)) / bytes)),
    )
  const shown = new Map(
    records.map((record) => [record.id, { ...record } as Record<string, Value> & WireRecord]),
  )
  for (const { key, field, steps, related } of entries) {
    if (steps.length === 0 && model.fields.get(field.name) === field)
      for (const [id, record] of shown)
        if (isValueLost(changed.get(id)?.before, field)) Reflect.deleteProperty(record, key)
    if (!related || steps.length > 0 || isInverse(field)) continue
    // A missing key means that the field is hidden from the principal.
    const changedRecords = [...shown.values()].filter(
      (record) => changed.has(record.id) && Object.hasOwn(record, key),
    )
    const valueOf = ({ id }: WireRecord) => getStateValue(changed.get(id)?.before ?? 'gone', field.name)
    const relatedRecords = await readRelatedRecords(context, field, changedRecords.map(valueOf), tooHeavy)
    for (const record of changedRecords)
      record[key] = toVisibleValue(field, valueOf(record), relatedRecords) ?? null
  }
  return [...shown.values()]
}
