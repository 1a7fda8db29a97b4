// The timeline of a record: its revisions, newest first. It starts at the current row and undoes one Change after the other. Conflicts,
// history, reads at a point in time and reverts fold over it.
import { VersoError } from '../../errors.js'
import { pickFileMetadata } from '../../model/catalog/file-metadata.js'
import { isOwnedList } from '../../model/definition/model.js'
import { toValues } from '../../model/definition/record-values.js'
import type { Values } from '../../model/values/value.js'
import type { Change } from '../../wire.js'
import { findByIds, type RowWithId } from '../records/bulk.js'
import type { Queryable } from '../engine/database.js'
import { findRecordFiles } from '../records/files.js'
import type { Table } from '../sql/table.js'
import { LOGGED_CHANGES, readChangesBackwards, readOutermostChanges, WHOLE_CHANGES } from './change-pages.js'
import {
  findCreation,
  omitFields,
  Rewind,
  type CurrentRecord,
  type RecordState,
  type Revision,
} from './rewind.js'

export interface Timeline {
  /** The record as it is now. */
  readonly today: RecordState
  /** The last version; undefined if neither the table nor the Log has the record. */
  readonly latest: number | undefined
  /** The revisions in pages, which keep large Changes apart. They can be read once. */
  readonly pages: AsyncIterable<readonly Revision[]>
}

interface TimelineStart {
  /** The first version whose Change belongs to the timeline. */
  readonly from: number
  readonly current: CurrentRecord | undefined
}

/** How often the row and the Log of a record that others change are read, until they match. */
const MAX_ATTEMPTS = 10
/** `rewindValues` gives up beyond this. A conflict with an older version then has no merge base. */
const MAX_REWOUND_CHANGES = 10_000

/** Opens the timeline of a record from a version on. */
export async function openTimeline(db: Queryable, table: Table, id: number, from = 0): Promise<Timeline> {
  const current = (await readCurrentRecords(db, table, [id])).get(id)
  return startTimeline(db, table, id, { from, current })
}

async function startTimeline(
  db: Queryable,
  table: Table,
  id: number,
  { from, current: known }: TimelineStart,
): Promise<Timeline> {
  const { model } = table
  let current = known
  let lastSeq: number | undefined
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    // One Change more than the timeline has: it names the user who left the record as the first revision found it.
    const range = { model: model.name, id, after: Math.max(-1, from - 2), upTo: current?.version }
    const changes = readChangesBackwards(db, WHOLE_CHANGES, range)
    const { value: first = [] } = await changes.next()
    const [newest] = first
    // The Log has the Change of the current version, unless compaction deleted it. A missing row was deleted, or its whole table was.
    if (current || !newest || newest.action === 'delete' || newest.seq === lastSeq) {
      const firstChanges = current ? undefined : await readOutermostChanges(db, table, [id], 'first')
      const rewind = new Rewind(table, findCreation(current, firstChanges?.get(id)), current, newest)
      return {
        today: current?.values ?? 'gone',
        latest: current?.version ?? newest?.version,
        pages: undoChanges(rewind, from, first, changes),
      }
    }
    lastSeq = newest.seq
    current = (await readCurrentRecords(db, table, [id])).get(id)
  }
  throw new VersoError(
    'busy',
    `${model.name} ${id} changes too often to read its history: retry after the seconds in Retry-After`,
    {
      retryAfterS: 1,
    },
  )
}

async function* undoChanges(
  rewind: Rewind,
  from: number,
  first: readonly Change[],
  further: AsyncIterable<readonly Change[]>,
): AsyncGenerator<readonly Revision[]> {
  let later: Omit<Revision, 'before'> | undefined
  const undo = (logged: Change | undefined): readonly Revision[] => {
    const state = rewind.copyState(logged)
    const revision = later && { ...later, before: state }
    if (logged) {
      const { changes, unknownFields, isNext } = rewind.undo(logged)
      // The values of the current row are known.
      const known = later ? omitFields(unknownFields, state) : state
      later = { change: { ...logged, changes }, after: isNext ? known : 'unknown' }
    }
    return revision && revision.change.version >= from ? [revision] : []
  }
  yield first.flatMap(undo)
  for await (const page of further) yield page.flatMap(undo)
  yield undo(undefined)
}

/** The versions of each record whose revisions are read. */
export type VersionsByRecord = ReadonlyMap<number, ReadonlySet<number>>

/** Some revisions of a record, newest first. */
export interface SelectedRevisions {
  readonly revisions: readonly Revision[]
  /** The record as it is now. */
  readonly today: RecordState
}

/** Reads some revisions of each record. Holds no others in memory. */
export async function readRevisions(
  db: Queryable,
  table: Table,
  versionsById: VersionsByRecord,
): Promise<SelectedRevisions[]> {
  const currentRecords = await readCurrentRecords(db, table, [...versionsById.keys()])
  const selected: SelectedRevisions[] = []
  for (const [id, versions] of versionsById) {
    const start = { from: Math.min(...versions), current: currentRecords.get(id) }
    const { today, pages } = await startTimeline(db, table, id, start)
    const revisions: Revision[] = []
    for await (const page of pages)
      revisions.push(...page.filter(({ change }) => versions.has(change.version)))
    selected.push({ revisions, today })
  }
  return selected
}

/** A record at a point of its timeline. */
export interface RecordAt {
  readonly state: RecordState
  /** The version at that point; undefined if nothing is known of the record. */
  readonly version: number | undefined
  /** The record as it is now, and its last version. */
  readonly today: RecordState
  readonly latest: number | undefined
  /** The oldest Change that was read. */
  readonly oldest: Change | undefined
}

/** Finds the record after the newest Change that `isIncluded` accepts. */
export async function findRecordAt(
  db: Queryable,
  table: Table,
  id: number,
  isIncluded: (change: Change) => boolean,
): Promise<RecordAt> {
  const { today, latest, pages } = await openTimeline(db, table, id)
  let [state, version, oldest]: [RecordState, number | undefined, Change | undefined] = [
    today,
    latest,
    undefined,
  ]
  for await (const page of pages) {
    for (const { change, before, after } of page) {
      oldest = change
      if (isIncluded(change)) return { state: after, version: change.version, today, latest, oldest }
      state = before
      version = change.version - 1
    }
  }
  return { state, version, today, latest, oldest }
}

/**
 * Computes the values of a record at an older version; the system fields about its last update have later values. Undefined if one of the
 * later Changes is no longer in the Log, does not fit the current fields, or if there are more than MAX_REWOUND_CHANGES.
 */
export async function rewindValues(
  db: Queryable,
  table: Table,
  { id, ...current }: RowWithId,
  version: number,
): Promise<Values | undefined> {
  const { model } = table
  if (version > current.version || current.version - version > MAX_REWOUND_CHANGES) return undefined
  const rewind = new Rewind(table, findCreation(current, undefined), current)
  const range = { model: model.name, id, after: version, upTo: current.version }
  if (version < current.version)
    for await (const page of readChangesBackwards(db, LOGGED_CHANGES, range)) {
      for (const change of page) rewind.undo(change)
      if (!rewind.isExact) return undefined
    }
  const state = rewind.copyValues()
  if (rewind.version !== version || state === 'unknown') return undefined
  const values = state === 'gone' ? {} : state
  // Changes do not contain empty lists, so a record that was deleted and restored in between lacks them here.
  for (const field of model.fields.values()) if (isOwnedList(field)) values[field.name] ??= []
  return values
}

/** Reads the existing records among `ids`, by default with the metadata of their files. */
export async function readCurrentRecords(
  db: Queryable,
  table: Table,
  ids: readonly number[],
  { hasFiles = true }: { readonly hasFiles?: boolean } = {},
): Promise<Map<number, CurrentRecord>> {
  const current = new Map<number, CurrentRecord>()
  for (const record of await findByIds(db, table, ids, { select: table.own })) {
    const values = toValues(table.model, record)
    const files = hasFiles && table.fileFields.length > 0 ? await findRecordFiles(db, table, record.id) : []
    for (const [name, file] of files ?? []) values[name] = pickFileMetadata(file)
    current.set(record.id, { version: record.version, values })
  }
  return current
}
