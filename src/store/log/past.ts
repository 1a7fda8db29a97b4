// Records as they were: what they are now, with every later Change taken back.
import { VersoError } from '../../errors.js'
import type { Values } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import type { Change } from '../../wire.js'
import { findByIds } from '../records/bulk.js'
import type { Queryable } from '../engine/database.js'
import { pickFileMetadata } from '../../model/catalog/file-metadata.js'
import { findRecordFiles } from '../records/files.js'
import { LOG_PAGE_BYTES, CHANGE_COLUMNS, FROM_LOG, CHANGE_HEADER_COLUMNS, toChange } from './log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import type { Table } from '../sql/table.js'
import type { RecordState } from './record-state.js'

/** One Change of a record, with the record before and after it. */
export interface Moment {
  readonly change: Change
  readonly before: RecordState
  readonly after: RecordState
}

/** The versions of each record whose Changes are wanted. */
export type VersionsByRecord = ReadonlyMap<number, ReadonlySet<number>>

/** Some Changes of a record, the newest first. */
export interface Walked {
  readonly moments: readonly Moment[]
  /** The record as it is now. */
  readonly today: RecordState
}

const CHANGES_AT_ONCE = 1_000
const MAX_ATTEMPTS = 10

/**
 * The Changes of these records that are wanted, with the record before and after each one. Fields go by the names that they have today;
 * what the models no longer have is left out. Whatever lies on the way is not kept.
 */
export async function momentsOf(db: Queryable, table: Table, wanted: VersionsByRecord): Promise<Walked[]> {
  const now = await currentValues(db, table, [...wanted.keys()])
  const all: Walked[] = []
  for (const [id, versions] of wanted) {
    const moments: Moment[] = []
    const from = Math.min(...versions)
    const head = await headOf(db, table, id, from, now.get(id))
    for await (const page of momentsBack(db, table, id, from, head))
      moments.push(...page.filter(({ change }) => versions.has(change.version)))
    all.push({ moments, today: todayOf(head) })
  }
  return all
}

/** All of them from this version on, page by page. */
export async function* walkBack(
  db: Queryable,
  table: Table,
  id: number,
  from: number,
): AsyncGenerator<Walked> {
  const head = await headOf(db, table, id, from, (await currentValues(db, table, [id])).get(id))
  for await (const moments of momentsBack(db, table, id, from, head)) yield { moments, today: todayOf(head) }
}

/** A record at a moment. */
export interface Was {
  readonly state: RecordState
  /** The version that it had then; undefined if nothing is known of it. */
  readonly version: number | undefined
  /** As it is now, and the last version there was. */
  readonly today: RecordState
  readonly latest: number | undefined
  /** The oldest Change that was looked at. */
  readonly oldest: Change | undefined
}

/** The record once all those Changes were made of which this is true, and no others. */
export async function wasAfter(
  db: Queryable,
  table: Table,
  id: number,
  isMade: (change: Change) => boolean,
): Promise<Was> {
  const head = await headOf(db, table, id, 0, (await currentValues(db, table, [id])).get(id))
  const today = todayOf(head)
  const latest = head.current?.version ?? head.page[0]?.version
  let was: Was = { state: today, version: latest, today, latest, oldest: undefined }
  for await (const page of momentsBack(db, table, id, 0, head)) {
    for (const { change, before, after } of page) {
      if (isMade(change)) return { ...was, state: after, version: change.version, oldest: change }
      was = { ...was, state: before, version: change.version - 1, oldest: change }
    }
  }
  return was
}

export interface Current {
  readonly version: number
  readonly values: Values
}

/** As they are now, with the facts of their files; those that are there. */
export async function currentValues(
  db: Queryable,
  table: Table,
  ids: readonly number[],
): Promise<Map<number, Current>> {
  const current = new Map<number, Current>()
  for (const record of await findByIds(db, table, ids, { select: table.own })) {
    const files = table.fileFields.length === 0 ? undefined : await findRecordFiles(db, table, record.id)
    const facts = [...(files ?? [])].map(([name, file]) => [name, pickFileMetadata(file)] as const)
    const values = { ...toValues(table.model, record), ...Object.fromEntries(facts) }
    current.set(record.id, { version: record.version, values })
  }
  return current
}

/** Where a walk into the past begins: the record as it is, and the first of its Changes, newest first. */
interface Head {
  readonly current: Current | undefined
  readonly page: readonly Change[]
  readonly origin: Origin
}

function todayOf({ current }: Head): RecordState {
  return current?.values ?? 'gone'
}

async function headOf(
  db: Queryable,
  table: Table,
  id: number,
  from: number,
  known: Current | undefined,
): Promise<Head> {
  const { model } = table
  let current = known
  let seen: number | undefined
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const page = await changesFrom(db, model.name, id, from - 1, current?.version)
    const last = page[0]
    // What is at a version has the Change that made it, unless it was taken out of the Log; what is gone was deleted.
    if (current) return { current, page, origin: originIn(current.values) }
    // Unless it went without a word, with its whole table.
    if (!last || last.action === 'delete' || last.seq === seen)
      return { current, page, origin: originOf(await firstChange(db, model.name, id)) }
    seen = last.seq
    current = (await currentValues(db, table, [id])).get(id)
  }
  throw new VersoError('busy', `${model.name} ${id} is changed again and again: try later`, {
    retryAfterS: 1,
  })
}

/** Who made a record and when, which never changes. */
export type Origin = Pick<Values, 'createdOn' | 'createdBy'>

export function originIn({ createdOn = null, createdBy = null }: Values): Origin {
  return { createdOn, createdBy }
}

/** Of a record that is gone; unknown where that Change is gone, too. */
export function originOf(first: Change | undefined): Origin {
  if (first?.action !== 'create') return { createdOn: null, createdBy: null }
  return { createdOn: first.on, createdBy: first.by ? { id: first.by.id } : null }
}

async function firstChange(db: Queryable, model: string, id: number): Promise<Change | undefined> {
  const [row] = await db.all(
    `select ${CHANGE_HEADER_COLUMNS} ${FROM_LOG} where l.model = ? and l.record = ? order by l.version limit 1`,
    [model, id],
  )
  return row && toChange(row)
}

/** As many of them as are a page, newest first, up to the version that the record was read at; one alone may be as large as it is. */
async function changesFrom(
  db: Queryable,
  model: string,
  id: number,
  from: number,
  upTo = Number.MAX_SAFE_INTEGER,
): Promise<Change[]> {
  const some =
    `select seq, version, octet_length(changes) as "size" from ${LOG_TABLE} ` +
    `where model = ? and record = ? and version >= ? and version <= ? order by version desc limit ${CHANGES_AT_ONCE}`
  const sized = `select seq, sum("size") over (order by version desc) - "size" as "before" from (${some}) as "some"`
  const rows = await db.all(
    `select ${CHANGE_COLUMNS} ${FROM_LOG} join (${sized}) as "page" on "page".seq = l.seq ` +
      `where "page"."before" < ${LOG_PAGE_BYTES} order by l.version desc`,
    [model, id, from, upTo],
  )
  return rows.map(toChange)
}

/** Newest first, down to the version that is wanted. */
async function* momentsBack(
  db: Queryable,
  table: Table,
  id: number,
  from: number,
  head: Head,
): AsyncGenerator<Moment[]> {
  const back = new WayBack(table, head.origin, head.current, head.page[0])
  // One more than is wanted: it tells who made what the first one changed.
  for (let { page } = head; ;) {
    yield page.flatMap((change) => wantedFrom(from, back.pass(change)))
    const last = page.at(-1)
    if (!last || last.version <= Math.max(0, from - 1)) break
    page = await changesFrom(db, table.model.name, id, from - 1, last.version - 1)
  }
  yield wantedFrom(from, back.pass(undefined))
}

function wantedFrom(from: number, moment: Moment | undefined): Moment[] {
  return moment && moment.change.version >= from ? [moment] : []
}

/** A record on its way into the past: one Change after the other is taken back, the newest first. */
export class WayBack {
  #version: number
  #state: RecordState
  #isToday: boolean
  #last: Moment | undefined

  constructor(
    private readonly table: Table,
    private readonly origin: Origin,
    current: Current | undefined,
    newest: Change | undefined,
  ) {
    this.#version = current?.version ?? newest?.version ?? 0
    this.#state = current?.values ?? 'gone'
    this.#isToday = true
  }

  /** Takes the next one back; answers the one after it, of which only now is known who left the record as it was before. */
  pass(logged: Change | undefined): Moment | undefined {
    const later = this.#last
    const isNext = logged !== undefined && logged.version === this.#version
    const whole = later && {
      ...later,
      before: withMakers(later.before, isNext ? logged : undefined, this.origin),
    }
    if (!logged) return whole
    const { changes, unknownFields } = this.table.fieldNames.translate(logged)
    const change = { ...logged, changes }
    if (!isNext) this.#state = 'unknown'
    // Of a record as it is its row tells who has changed it.
    const after = this.#isToday
      ? this.#state
      : withMakers(without(unknownFields, this.#state), change, this.origin)
    this.#isToday = false
    this.#state = without(unknownFields, stateBefore(this.table, change, this.#state))
    this.#last = { change, before: this.#state, after }
    this.#version = change.version - 1
    return whole
  }
}

function stateBefore(
  { model: { fields } }: Table,
  { action, changes, purged }: Change,
  after: RecordState,
): RecordState {
  if (action === 'create') return 'gone'
  if (purged) return 'unknown'
  const before = Object.fromEntries(Object.entries(changes).map(([name, change]) => [name, change.before]))
  if (action === 'delete') {
    const nothing = [...fields.values()].map(
      (field) => [field.name, field.relation?.isList ? [] : null] as const,
    )
    return { ...(Object.fromEntries(nothing) as Values), ...before }
  }
  return typeof after === 'string' ? after : { ...after, ...before }
}

/** A field that is missing: what it held is not known. */
function without(names: readonly string[], state: RecordState): RecordState {
  if (typeof state === 'string' || names.length === 0) return state
  return Object.fromEntries(Object.entries(state).filter(([name]) => !names.includes(name)))
}

/** Who made it, and who changed it last, which follows from the Change that left it so. */
function withMakers(state: RecordState, change: Change | undefined, origin: Origin): RecordState {
  if (typeof state === 'string') return state
  const update = change?.action === 'update' ? change : undefined
  return {
    ...{ ...state, ...origin },
    updatedOn: update?.on ?? null,
    updatedBy: update?.by ? { id: update.by.id } : null,
  }
}

/** By the names that fields have today, without what is not of them. */
export function inTodaysNames({ fieldNames }: Table, change: Change): Change {
  return { ...change, changes: fieldNames.translate(change).changes }
}
