// Changes as a caller may see them. What comes into their sight is told as if it came to be, what leaves it as if it went.
import { isReadable, isInverse, type Model } from '../../model/definition/model.js'
import { isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import {
  inTodaysNames,
  momentsOf,
  valueIn,
  type Moment,
  type RecordState,
  type Walked,
} from '../../store/log/past.js'
import type { Table } from '../../store/sql/table.js'
import type { Change } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { shownOf, withoutUnseen, type PastState, type Shown } from './past-visibility.js'

/** Each may be as large as it is. */
const RECORDS_AT_ONCE = 50

/** Those that the caller sees, in the same order. */
export async function changesFor(
  app: App,
  by: Caller,
  db: Queryable,
  changes: readonly Change[],
): Promise<Change[]> {
  const shown = new Map<number, Change>()
  for (const name of new Set(changes.map(({ model }) => model))) {
    const model = app.catalog.find(name)
    if (!model) continue
    const some = changes.filter((change) => change.model === name)
    const seen = by.rights
      ? await changesOfModel(app, by, db, model, some)
      : some.map((each) => inTodaysNames(app.tables.of(model), each))
    for (const change of seen) shown.set(change.seq, change)
  }
  return changes.flatMap(({ seq }) => shown.get(seq) ?? [])
}

/** Whether the caller sees the same of every record: then it does not matter what one held. */
export function seesAllAlike({ rights }: Caller, model: Model): boolean {
  if (!rights) return true
  const reading = rights.of(model).grantsFor('read')
  return reading.length > 0 && reading.every(({ where }) => !where)
}

async function changesOfModel(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  changes: readonly Change[],
): Promise<Change[]> {
  if (by.rights?.of(model).can('read') !== true) return []
  if (seesAllAlike(by, model))
    return momentsFor(
      app,
      by,
      db,
      model,
      changes.map((change) => ({ moment: bareMoment(app.tables.of(model), change), today: 'unknown' })),
    )
  const wanted = new Map<number, Set<number>>()
  for (const { id, version } of changes) wanted.set(id, (wanted.get(id) ?? new Set()).add(version))
  const told: Change[] = []
  for (let start = 0; start < wanted.size; start += RECORDS_AT_ONCE) {
    const some = new Map([...wanted].slice(start, start + RECORDS_AT_ONCE))
    const asked = (await momentsOf(db, app.tables.of(model), some)).flatMap(askedOf)
    told.push(...(await momentsFor(app, by, db, model, asked)))
  }
  return told
}

export function askedOf({ moments, today }: Walked): Asked[] {
  return moments.map((moment) => ({ moment, today }))
}

/** A Change of a record of which nothing else is known. */
function bareMoment(table: Table, logged: Change): Moment {
  const change = inTodaysNames(table, logged)
  return {
    change,
    before: change.action === 'create' ? 'gone' : 'unknown',
    after: change.action === 'delete' ? 'gone' : 'unknown',
  }
}

interface Asked {
  readonly moment: Moment
  readonly today: RecordState
}

/** The Changes of one model that the caller sees, with the records before and after them known. */
export async function momentsFor(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  asked: readonly Asked[],
): Promise<Change[]> {
  const states = asked.flatMap(({ moment: { change, before, after }, today }): PastState[] => [
    { id: change.id, version: change.version - 1, state: before, today },
    { id: change.id, version: change.version, state: after, today },
  ])
  const shown = await shownOf(app, by, db, model, states)
  const told = asked.flatMap(({ moment }, index) => {
    const change = tell(model, moment, shown[2 * index], shown[2 * index + 1])
    return change ? [change] : []
  })
  return seenIn(app, by, db, model, told)
}

function tell(model: Model, { change, before, after }: Moment, was: Shown, is: Shown): Change | undefined {
  if (was === 'nothing' && is === 'nothing') return undefined
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const field of model.fields.values()) {
    const { name } = field
    if ((!isReadable(field) && field.type !== 'binary') || isInverse(field)) continue
    // What the Log leaves out follows from the Change itself.
    if (field.kept && change.changes[name] === undefined) continue
    const logged = change.changes[name]
    const told = {
      before: isIn(was, name) ? valueOf(before, name, logged?.before) : null,
      after: isIn(is, name) ? valueOf(after, name, logged?.after) : null,
    }
    if (!isSameValue(told.before, told.after) && !isNothing(told.before, told.after)) changes[name] = told
  }
  const action =
    is === 'nothing' ? 'delete' : was === 'nothing' && change.action !== 'create' ? 'update' : change.action
  return { ...change, action, changes }
}

function valueOf(state: RecordState, name: string, logged: Value = null): Value {
  return state === 'unknown' ? logged : valueIn(state, name)
}

function isIn(shown: Shown, name: string): boolean {
  return shown !== 'nothing' && (shown === undefined || shown.has(name))
}

/** A list that is not there, and one without members. */
function isNothing(before: Value, after: Value): boolean {
  return [before ?? [], after ?? []].every((value) => Array.isArray(value) && value.length === 0)
}

/** Neighbours that the caller does not see are not told: what is then the same before and after has not changed. */
async function seenIn(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  changes: readonly Change[],
): Promise<Change[]> {
  const sides = changes.flatMap((change) => [sideOf(change, 'before'), sideOf(change, 'after')])
  const seen = await withoutUnseen(app, by, db, model, sides)
  return changes.map((change, index) => {
    const [before = {}, after = {}] = [seen[2 * index], seen[2 * index + 1]]
    const told = Object.keys(change.changes)
      .map((name) => [name, { before: before[name] ?? null, after: after[name] ?? null }] as const)
      .filter(([, each]) => !isSameValue(each.before, each.after))
    return { ...change, changes: Object.fromEntries(told) }
  })
}

function sideOf({ changes }: Change, side: 'before' | 'after'): Values {
  return Object.fromEntries(Object.entries(changes).map(([name, each]) => [name, each[side]]))
}
