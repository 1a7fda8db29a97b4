// Filters Changes by the permissions of a principal. A record that becomes visible appears with all of its values, and a record that becomes
// invisible appears as deleted.
import { isReadable, isInverse, type Model } from '../../model/definition/model.js'
import { isSameValue, type Value, type Values } from '../../model/values/value.js'
import { readRevisions, type SelectedRevisions } from '../../store/log/timeline.js'
import {
  translateFieldNames,
  getStateValue,
  type RecordState,
  type Revision,
} from '../../store/log/rewind.js'
import type { Table } from '../../store/sql/table.js'
import type { Change } from '../../wire.js'
import type { Principal } from '../context/principal.js'
import {
  evaluateStateVisibility,
  removeUnseenRelated,
  type DatedState,
  type StateVisibility,
} from './state-visibility.js'
import type { Context } from '../context/context.js'

/** Records have no size limit, so batches are small. */
const RECORDS_PER_BATCH = 50

/** Returns the visible Changes in the same order. */
export async function filterVisibleChanges(context: Context, changes: readonly Change[]): Promise<Change[]> {
  const { app } = context
  const visibleBySeq = new Map<number, Change>()
  for (const name of new Set(changes.map(({ model }) => model))) {
    const model = app.catalog.find(name)
    if (!model) continue
    const some = changes.filter((change) => change.model === name)
    const visible = context.principal.permissions
      ? await filterModelChanges(context, model, some)
      : some.map((each) => translateFieldNames(app.tables.of(model), each))
    for (const change of visible) visibleBySeq.set(change.seq, change)
  }
  return changes.flatMap(({ seq }) => visibleBySeq.get(seq) ?? [])
}

/** True if the principal sees the same fields of every record, so that their past values need no evaluation. */
export function seesAllRecordsAlike({ permissions }: Principal, model: Model): boolean {
  if (!permissions) return true
  const reading = permissions.of(model).grantsFor('read')
  return reading.length > 0 && reading.every(({ where }) => !where)
}

async function filterModelChanges(
  context: Context,
  model: Model,
  changes: readonly Change[],
): Promise<Change[]> {
  const { principal, app } = context
  if (principal.permissions?.of(model).can('read') !== true) return []
  if (seesAllRecordsAlike(principal, model))
    return filterVisibleRevisions(
      context,
      model,
      changes.map((change) => ({
        revision: toLoggedRevision(app.tables.of(model), change),
        today: 'unknown',
      })),
    )
  const versionsById = new Map<number, Set<number>>()
  for (const { id, version } of changes)
    versionsById.set(id, (versionsById.get(id) ?? new Set()).add(version))
  const visible: Change[] = []
  for (let start = 0; start < versionsById.size; start += RECORDS_PER_BATCH) {
    const some = new Map([...versionsById].slice(start, start + RECORDS_PER_BATCH))
    const queries = (await readRevisions(context.db, app.tables.of(model), some)).flatMap(toRevisionQueries)
    visible.push(...(await filterVisibleRevisions(context, model, queries)))
  }
  return visible
}

export function toRevisionQueries({ revisions, today }: SelectedRevisions): RevisionQuery[] {
  return revisions.map((revision) => ({ revision, today }))
}

/** Builds a revision from its Change alone. The states before and after it are not read. */
function toLoggedRevision(table: Table, logged: Change): Revision {
  const change = translateFieldNames(table, logged)
  return {
    change,
    before: change.action === 'create' ? 'gone' : 'unknown',
    after: change.action === 'delete' ? 'gone' : 'unknown',
  }
}

interface RevisionQuery {
  readonly revision: Revision
  readonly today: RecordState
}

/** Returns the visible Changes of one model, given the states of their records before and after. */
export async function filterVisibleRevisions(
  context: Context,
  model: Model,
  queries: readonly RevisionQuery[],
): Promise<Change[]> {
  const states = queries.flatMap(({ revision: { change, before, after }, today }): DatedState[] => [
    { id: change.id, version: change.version - 1, state: before, today },
    { id: change.id, version: change.version, state: after, today },
  ])
  const visibility = await evaluateStateVisibility(context, model, states)
  const visible = queries.flatMap(({ revision }, index) => {
    const change = buildVisibleChange(model, revision, visibility[2 * index], visibility[2 * index + 1])
    return change ? [change] : []
  })
  return hideUnseenRelated(context, model, visible)
}

function buildVisibleChange(
  model: Model,
  { change, before, after }: Revision,
  visibleBefore: StateVisibility,
  visibleAfter: StateVisibility,
): Change | undefined {
  if (visibleBefore === 'nothing' && visibleAfter === 'nothing') return undefined
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const field of model.fields.values()) {
    const { name } = field
    if ((!isReadable(field) && field.type !== 'binary') || isInverse(field)) continue
    // The Log omits system fields that follow from the Change itself.
    if (field.isSystem && change.changes[name] === undefined) continue
    const logged = change.changes[name]
    const values = {
      before: isFieldVisible(visibleBefore, name) ? getVisibleValue(before, name, logged?.before) : null,
      after: isFieldVisible(visibleAfter, name) ? getVisibleValue(after, name, logged?.after) : null,
    }
    if (!isSameValue(values.before, values.after) && !areEmptyLists(values.before, values.after))
      changes[name] = values
  }
  const action =
    visibleAfter === 'nothing'
      ? 'delete'
      : visibleBefore === 'nothing' && change.action !== 'create'
        ? 'update'
        : change.action
  return { ...change, action, changes }
}

function getVisibleValue(state: RecordState, name: string, logged: Value = null): Value {
  return state === 'unknown' ? logged : getStateValue(state, name)
}

function isFieldVisible(visibility: StateVisibility, name: string): boolean {
  return visibility !== 'nothing' && (visibility === undefined || visibility.has(name))
}

/** A missing list equals an empty one. */
function areEmptyLists(before: Value, after: Value): boolean {
  return [before ?? [], after ?? []].every((value) => Array.isArray(value) && value.length === 0)
}

/** Removes related records that the principal cannot see. Fields that are then equal before and after are omitted. */
async function hideUnseenRelated(
  context: Context,
  model: Model,
  changes: readonly Change[],
): Promise<Change[]> {
  const sides = changes.flatMap((change) => [pickSide(change, 'before'), pickSide(change, 'after')])
  const pruned = await removeUnseenRelated(context, model, sides)
  return changes.map((change, index) => {
    const [before = {}, after = {}] = [pruned[2 * index], pruned[2 * index + 1]]
    const visible = Object.keys(change.changes)
      .map((name) => [name, { before: before[name] ?? null, after: after[name] ?? null }] as const)
      .filter(([, each]) => !isSameValue(each.before, each.after))
    return { ...change, changes: Object.fromEntries(visible) }
  })
}

function pickSide({ changes }: Change, side: 'before' | 'after'): Values {
  return Object.fromEntries(Object.entries(changes).map(([name, each]) => [name, each[side]]))
}
