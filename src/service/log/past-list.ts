// A list as it was: the records of a moment, found, sorted and counted by what they held then.
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
import { findOwnFields } from '../../store/sql/evaluate-values.js'
import { changedSince, tableWith, type Changed } from '../../store/log/past-table.js'
import { isKnownIn, valueIn, type RecordState } from '../../store/log/past.js'
import { findPage, resolveSelect } from '../../store/find/pages.js'
import type { Page, WireRecord } from '../../wire.js'
import { refuseLargePastPage, computeAnswerRoom, createPageTooLargeError } from '../context/answer-limits.js'
import { getVisibility, type Principal } from '../context/principal.js'
import { getVisibleCriteria, getSelect } from '../access/visible-records.js'
import { parseTimelineTime, resolveSeqAt } from './point-in-time.js'
import { readRelatedRecords, toVisibleValue, type ReadContext } from './past-record.js'
import type { Context } from '../context/context.js'

export async function findPageAt(context: Context, model: Model, query: FindQuery): Promise<Page> {
  const { app, principal } = context
  const requested = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  const at = parseTimelineTime(query.asOf)
  refuseRelatedPaths(requested)
  const search = { ...requested, seen: getVisibleCriteria(principal, model) }
  const table = app.tables.of(model)
  // Whatever is committed meanwhile: what is read of the Log and of the table belongs together.
  return app.db.queryPool.snapshot(async (db) => {
    const seq = await resolveSeqAt(db, at)
    const changed = hideUntestable(principal, model, await changedSince(db, table, seq))
    const list = getSelect(context, model, 'list')
    const past = tableWith(table, changed)
    await refuseLargePastPage(app.settings, db, past, { search, select: resolveSelect(past, search, list) })
    const { total, records, nextCursor } = await findPage(db, past, search, list)
    const { entries } = search.selection ?? selectListFields(getVisibility(app, principal), model)
    const data = await addRelatedRecords({ app, principal, db, model }, entries, changed, records)
    const { offset, limit } = search
    return { offset, limit, total, seq, data, next: nextCursor && { offset: offset + limit } }
  })
}

/** Of its neighbours a record knows who they were; what they held then is not looked up. */
function refuseRelatedPaths({ where, sort, selection }: Search): void {
  const errors = [
    ...(where ? collectRelatedPaths(where) : []),
    ...sort.flatMap(({ steps, field }) =>
      isOwnField(steps, field === ID_FIELD) ? [] : [formatSteps(steps)],
    ),
  ].map(
    (path) =>
      `asOf: "${path}" leads to other records: filter, q and sortBy look at fields of the record itself`,
  )
  const views = (selection?.entries ?? [])
    .filter(({ steps, field }) => steps.length === 0 && isInverse(field))
    .map(({ key }) => `asOf: "${key}" is held by other records, and cannot be shown as it was`)
  const all = [...new Set([...errors, ...views])]
  if (all.length > 0) throw new VersoError('bad-request', all.slice(0, 10).join('; '))
}

function collectRelatedPaths(criteria: Criteria): string[] {
  if (criteria.kind !== 'comparison') return [criteria.criteria].flat().flatMap(collectRelatedPaths)
  const { steps, field } = criteria
  return isOwnField(steps, field === ID_FIELD) ? [] : [formatSteps(steps)]
}

/** The id of a neighbour stands in the record. */
function isOwnField(steps: readonly PathStep[], isId: boolean): boolean {
  const [step, ...further] = steps
  return !step || (isId && further.length === 0 && isReference(step.field))
}

function formatSteps(steps: readonly PathStep[]): string {
  return steps.map(({ field }) => field.name).join('.')
}

/**
 * Who was in a list in the past cannot be asked. Where the caller's rights ask it, a record whose list has changed since is not said
 * to be theirs.
 */
function hideUntestable(
  { permissions }: Principal,
  model: Model,
  changed: ReadonlyMap<number, Changed>,
): ReadonlyMap<number, Changed> {
  const conditions = (permissions?.of(model).grantsFor('read') ?? []).flatMap(({ where }) => where ?? [])
  const lists = conditions.flatMap(findOwnFields).filter((field) => isOwnedList(field))
  if (lists.length === 0) return changed
  const isSame = ({ was, today }: Changed) =>
    lists.every(({ name }) => isSameValue(valueIn(was, name), valueIn(today, name)))
  return new Map(
    [...changed].map(([id, each]) => [id, isSame(each) ? each : { ...each, was: 'unknown' as const }]),
  )
}

/** Whether nobody knows what the field held. */
function isValueLost(was: RecordState | undefined, field: Field): boolean {
  return typeof was === 'object' && isReadByDefault(field) && !isKnownIn(was, field.name)
}

/** Records that have changed since are shown with the neighbours that they had. */
async function addRelatedRecords(
  context: ReadContext,
  entries: readonly SelectionEntry[],
  changed: ReadonlyMap<number, Changed>,
  records: readonly WireRecord[],
): Promise<readonly WireRecord[]> {
  const { model } = context
  const { settings } = context.app
  // An estimate, as for every list of the past.
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
        if (isValueLost(changed.get(id)?.was, field)) Reflect.deleteProperty(record, key)
    if (!related || steps.length > 0 || isInverse(field)) continue
    // What is left out is hidden.
    const changedRecords = [...shown.values()].filter(
      (record) => changed.has(record.id) && Object.hasOwn(record, key),
    )
    const valueOf = ({ id }: WireRecord) => valueIn(changed.get(id)?.was ?? 'gone', field.name)
    const relatedRecords = await readRelatedRecords(context, field, changedRecords.map(valueOf), tooHeavy)
    for (const record of changedRecords)
      record[key] = toVisibleValue(field, valueOf(record), relatedRecords) ?? null
  }
  return [...shown.values()]
}
