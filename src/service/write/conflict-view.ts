// What of a conflict may be told to whoever is refused: the fields that they may read, as they are and as they were.
import { mergeRecords, type Merge } from '../../model/write/merge.js'
import { applyPatchToValues } from '../../model/write/merge-patch.js'
import { isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { buildStep } from '../../model/query/path.js'
import type { Grant } from '../../model/access/permissions.js'
import { getReferenceId, isSameValue, type Value, type Values } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { holding } from '../access/record-access.js'
import { readFor, seenAmong, selectFor } from '../access/visible-records.js'

type Viewer = Caller & { readonly app: App }

export interface VisibleFields {
  readonly model: Model
  /** The record as it is, without what is hidden, and without the names of list members. */
  readonly theirs: WireRecord
  /** What can be merged, and may be read. */
  readonly names: ReadonlySet<string>
  /** The grants to read that hold for the record as it is; undefined where everything may be read. */
  readonly grants: readonly Grant[] | undefined
}

export async function visibleFields(
  viewer: Viewer,
  db: Queryable,
  table: Table,
  record: WireRecord,
): Promise<VisibleFields> {
  const { model } = table
  const merged = [...model.fields.values()].filter(
    (field) => (field.type === 'binary' || isReadByDefault(field)) && isWritable(field),
  )
  const rights = viewer.rights?.of(model)
  if (!rights)
    return { model, theirs: record, names: new Set(merged.map(({ name }) => name)), grants: undefined }
  const reading = rights.grantsFor('read')
  const asked = reading.map(({ where }) => where)
  const holds = await holding(db, table, record.id, asked)
  const grants = reading.filter((_, index) => holds[index])
  const select = selectFor(viewer.app, viewer, model, 'own')
  const theirs = (await readFor(viewer.app, viewer, db, model, record.id, select)) ?? {
    id: record.id,
    version: record.version,
  }
  const isTold = ({ name, type }: { readonly name: string; readonly type: string }) =>
    type === 'binary' ? grants.some((grant) => includes(grant, name)) : Object.hasOwn(theirs, name)
  return { model, theirs, names: new Set(merged.filter(isTold).map(({ name }) => name)), grants }
}

export interface Sides {
  readonly base: Values | undefined
  readonly sent: Values
  /** Which of it changes what was there. */
  readonly patched: ReadonlySet<string> | undefined
  /** What is there, as far as it may be read. */
  readonly now: Values
  /** All of it. */
  readonly full: Values
}

/**
 * The past of a field is told where a grant shows it now and where nothing that the grant looks at has changed since: then it
 * showed it in the past, too. Otherwise nobody is told who changed it. What a neighbour was in the past is not looked up.
 */
export async function mergeVisible(
  viewer: Viewer,
  db: Queryable,
  { model, names, grants }: VisibleFields,
  { base, sent, patched, now, full }: Sides,
): Promise<Merge> {
  const { together } = model
  const ours = pickThere(names, sent)
  if (!base || !grants)
    return mergeRecords(
      base && pick(names, base),
      applyPatchToValues(ours, patched, base ?? {}),
      now,
      together,
    )
  const isSame = (name: string) => isSameValue(base[name] ?? null, full[name] ?? null)
  const showing = grants.filter(
    ({ conditionFields }) => conditionFields && [...conditionFields].every(isSame),
  )
  const isShown = (name: string) => showing.some((grant) => includes(grant, name))
  const past: Values = {}
  for (const name of [...names].filter(isShown)) {
    const [was, is] = [
      await partsOf(viewer, db, model, name, base),
      await partsOf(viewer, db, model, name, full),
    ]
    // What they do not see may have been changed by others: then their own change is not made from what is there.
    if (isSameValue(was.hidden, is.hidden)) past[name] = was.told
  }
  const known = new Set(Object.keys(past))
  const unknown = new Set([...names].filter((name) => !known.has(name)))
  const ourKnown = applyPatchToValues(pickThere(known, ours), patched, past)
  const told = mergeRecords(past, ourKnown, pick(known, now), together)
  const untold = mergeRecords(undefined, pickThere(unknown, ours), pick(unknown, now))
  const isWhole = Object.keys(untold.fields).length === 0
  // Whether they changed the rest of a group is not told, not even by a merge that is done or refused.
  const isOpen = (group: readonly string[]) =>
    group.every((name) => known.has(name)) || !group.some((name) => Object.hasOwn(sent, name))
  return {
    baseKnown: isWhole,
    fields: { ...told.fields, ...untold.fields },
    mergeable: told.mergeable && isWhole && together.every(isOpen),
  }
}

/** What the viewer sees of a value, and the neighbours in it that they do not see, or that are gone. */
async function partsOf(
  viewer: Viewer,
  db: Queryable,
  model: Model,
  name: string,
  values: Values,
): Promise<{ readonly told: Value; readonly hidden: readonly Value[] }> {
  const field = model.fields.get(name)
  const value = values[name] ?? null
  if (!viewer.rights || !field?.relation || value === null) return { told: value, hidden: [] }
  const neighbours = (Array.isArray(value) ? value : [value]) as readonly Value[]
  const step = buildStep(viewer.rights, model, field)
  const seen = await seenAmong(viewer.app, viewer, db, step.target, neighbours.map(getReferenceId), step.seen)
  const told = neighbours.filter((neighbour) => seen.has(getReferenceId(neighbour)))
  const hidden = neighbours.filter((neighbour) => !seen.has(getReferenceId(neighbour)))
  return { told: Array.isArray(value) ? told : (told[0] ?? null), hidden }
}

function includes({ readable }: Grant, name: string): boolean {
  return !readable || readable.has(name)
}

export function pick(names: ReadonlySet<string>, values: Values): Values {
  const picked: Values = {}
  for (const name of names) picked[name] = values[name] ?? null
  return picked
}

function pickThere(names: ReadonlySet<string>, values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)))
}
