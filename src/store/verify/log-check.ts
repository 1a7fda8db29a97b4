// Compares the records of a table with the Log: replaying the Changes that the Log contains must give the values of each record.
import { isSameFile } from '../../model/catalog/file-metadata.js'
import type { Field } from '../../model/values/field.js'
import { getStorage } from '../../model/values/field-types.js'
import { isReadByDefault, type Model } from '../../model/definition/model.js'
import { listIds, isSameValue, type Value } from '../../model/values/value.js'
import type { Queryable } from '../engine/database.js'
import { readRetentionFloor } from '../log/feed.js'
import { ALL_FIELDS, type FormerField } from '../sql/field-names.js'
import {
  LOG_PAGE_BYTES,
  LOGGED_CHANGE_COLUMNS,
  sumPrecedingSizes,
  toLoggedChange,
  type LoggedChange,
} from '../log/log.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import type { CurrentRecord } from '../log/rewind.js'
import { readCurrentRecords } from '../log/timeline.js'
import type { Table } from '../sql/table.js'

/** Small batches, because records and Changes can be large. */
const LOG_CHECK_BATCH_RECORDS = 50
const LOG_CHECK_BATCH_CHANGES = 500

export interface LogCheckBatch {
  /** The last id of the batch; undefined if no ids are left. */
  readonly lastId: number | undefined
  readonly records: number
  readonly changes: number
  readonly errors: readonly string[]
}

/** Checks a batch of records after the id `after`. Everything must be read from one snapshot. */
export async function checkRecordsAgainstLog(
  db: Queryable,
  table: Table,
  former: readonly FormerField[],
  after: number,
): Promise<LogCheckBatch> {
  const ids = await findNextIds(db, table, after)
  const lastId = ids.at(-1)
  if (lastId === undefined) return { lastId, records: 0, changes: 0, errors: [] }
  const current = await readCurrentRecords(db, table, ids)
  const floor = { retentionFloor: await readRetentionFloor(db), tableDropSeq: findTableDropSeq(former) }
  const replayed = new Map(ids.map((id) => [id, new ReplayedRecord(table, floor)]))
  let changes = 0
  for await (const row of readLoggedChanges(db, table.model, after, lastId)) {
    replayed.get(row.id)?.add(row)
    changes++
  }
  const errors = [...replayed].flatMap(([id, record]) =>
    record.findErrors(current.get(id)).map((error) => `${table.model.name} ${id} ${error}`),
  )
  return { lastId, records: current.size, changes, errors }
}

/** Finds the next ids in the table or the Log, in ascending order. */
async function findNextIds(db: Queryable, { name, model }: Table, after: number): Promise<number[]> {
  const rows = await db.all(
    `select "id" from (select "id" from ${name} where "id" > ? order by "id" limit ${LOG_CHECK_BATCH_RECORDS}) as "stored" ` +
      `union select record from (select distinct record from ${LOG_TABLE} where model = ? and record > ? ` +
      `order by record limit ${LOG_CHECK_BATCH_RECORDS}) as "logged" order by 1 limit ${LOG_CHECK_BATCH_RECORDS}`,
    [after, model.name, after],
  )
  return rows.map((row) => Number(row['id']))
}

/** Finds the last sequence number before the table was dropped, which deletes records without logging Changes. */
function findTableDropSeq(former: readonly FormerField[]): number {
  return Math.max(0, ...former.filter(({ name }) => name === ALL_FIELDS).map(({ seq }) => seq))
}

/** Reads the Changes of the records after the id `after` up to `upTo`, in the order of id and version, in pages. */
async function* readLoggedChanges(
  db: Queryable,
  { name }: Model,
  after: number,
  upTo: number,
): AsyncGenerator<LoggedChange> {
  const page =
    `select seq, record, version, octet_length(changes) as "size" from ${LOG_TABLE} ` +
    // PostgreSQL starts at this place of the index; with `or` it would read all earlier entries.
    `where model = ? and record <= ? and (record, version) > (?, ?) ` +
    `order by record, version limit ${LOG_CHECK_BATCH_CHANGES}`
  for (let [record, version] = [after, Number.MAX_SAFE_INTEGER]; ;) {
    const rows = await db.all(
      `select ${LOGGED_CHANGE_COLUMNS} from ${LOG_TABLE} as l ` +
        `join (${sumPrecedingSizes(page, 'record, version')}) as "page" on "page".seq = l.seq where "page"."before" < ${LOG_PAGE_BYTES} ` +
        `order by l.record, l.version`,
      [name, upTo, record, version],
    )
    yield* rows.map(toLoggedChange)
    const last = rows.at(-1)
    if (!last) return
    ;[record, version] = [Number(last['record']), Number(last['version'])]
  }
}

interface LogFloor {
  /** Changes up to this sequence number may have been deleted from the Log. */
  readonly retentionFloor: number
  /** Changes up to this sequence number belong to a dropped table. */
  readonly tableDropSeq: number
}

/** The values of one record, computed by replaying its Changes from the oldest. */
class ReplayedRecord {
  readonly #values = new Map<string, Value>()
  readonly #errors: string[] = []
  /** True if every field without a logged value is empty. */
  #isComplete = false
  #lastChange: LoggedChange | undefined

  constructor(
    private readonly table: Table,
    private readonly floor: LogFloor,
  ) {}

  add(change: LoggedChange): void {
    if (change.seq <= this.floor.tableDropSeq) return
    this.#checkGap(change)
    const { action, purged = false } = change
    if (action !== 'update' || purged) this.#reset(action === 'create' && !purged)
    const { changes, unknownFields } = this.table.fieldNames.translate(change)
    for (const name of unknownFields) this.#values.delete(name)
    if (unknownFields.length > 0) this.#isComplete = false
    for (const [name, { after }] of Object.entries(changes)) this.#values.set(name, after)
    this.#lastChange = change
  }

  findErrors(current: CurrentRecord | undefined): string[] {
    const last = this.#lastChange
    if (!last) return current ? ['is stored, but the Log does not have it'] : []
    const isDeleted = last.action === 'delete'
    if (!current && !isDeleted) this.#errors.push(`is missing, but the Log has it at version ${last.version}`)
    if (current && isDeleted)
      this.#errors.push(`is stored, but version ${last.version} in the Log deleted it`)
    if (!current || isDeleted) return this.#errors
    if (current.version !== last.version)
      return [...this.#errors, `is at version ${current.version}, but the Log is at ${last.version}`]
    const wrong = [...this.table.model.fields.values()].filter((field) => !this.#matchesLog(field, current))
    return [...this.#errors, ...wrong.map(({ name }) => `has a different value in ${name} than the Log`)]
  }

  #checkGap({ version, action, seq }: LoggedChange): void {
    const last = this.#lastChange
    const isNext = last ? version === last.version + 1 : action === 'create'
    if (isNext) return
    // The missing Changes lie between the two. Compaction deletes nothing after the retention floor.
    const isExplained = last ? last.seq < this.floor.retentionFloor : this.floor.retentionFloor > 0
    if (!isExplained && seq > this.floor.tableDropSeq)
      this.#errors.push(
        last ? `has no Change for version ${last.version + 1}` : 'has no Change that created it',
      )
    this.#reset(false)
  }

  #reset(isComplete: boolean): void {
    this.#values.clear()
    this.#isComplete = isComplete
  }

  #matchesLog(field: Field, { values }: CurrentRecord): boolean {
    if (!isReadByDefault(field)) return true
    const logged = this.#values.get(field.name)
    const stored = values[field.name] ?? null
    if (logged !== undefined) return isSameStoredValue(field, stored, logged)
    return !this.#isComplete || !isEmptyByDefault(field) || isSameStoredValue(field, stored, null)
  }
}

/** Returns true if a new field starts empty. Values that a migration fills in are not logged. */
function isEmptyByDefault(field: Field): boolean {
  const isFilled = field.default !== undefined || field.computed !== undefined || field.sequence !== undefined
  return (
    !field.isSystem && !isFilled && !field.required && !field.relation?.isList && field.type !== 'boolean'
  )
}

function isSameStoredValue(field: Field, stored: Value, logged: Value): boolean {
  if (field.relation?.isList) return hasSameIds(listIds(stored), listIds(logged))
  const storage = getStorage(field)
  if (storage === 'file') return isSameFile(stored, logged)
  // The scale of the field may have changed since the value was logged.
  if (storage === 'decimal') return trimDecimal(stored) === trimDecimal(logged)
  // Earlier releases logged no change between null and an empty JSON array.
  if (storage === 'json') return isSameValue(toNullIfEmpty(stored), toNullIfEmpty(logged))
  return isSameValue(stored, logged)
}

function toNullIfEmpty(value: Value): Value {
  return Array.isArray(value) && value.length === 0 ? null : value
}

function hasSameIds(stored: readonly number[], logged: readonly number[]): boolean {
  const ids = new Set(logged)
  return stored.length === ids.size && stored.every((id) => ids.has(id))
}

function trimDecimal(decimal: Value): Value {
  return typeof decimal === 'string' && decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
}
