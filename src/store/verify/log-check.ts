// Holds the records of a table against the Log: each must be what its Changes add up to, as far as the Log holds them.
import { isSameFile } from '../../model/catalog/file-facts.js'
import { storageOf, type Field } from '../../model/values/field-types.js'
import { isShown, type Model } from '../../model/definition/model.js'
import { idsIn, sameValue, type Value } from '../../model/values/value.js'
import type { Change } from '../../wire.js'
import { parseStored } from '../engine/database-condition.js'
import type { Queryable, Row } from '../engine/database.js'
import { horizonOf } from '../log/feed.js'
import { ALL_FIELDS, type FormerField } from '../sql/field-names.js'
import { BYTES_IN_A_PAGE, LOG_TABLE } from '../log/log.js'
import { currentValues, type Current } from '../log/past.js'
import type { Table } from '../sql/table.js'

/** Each may be as large as it is. */
const RECORDS_AT_ONCE = 50
const CHANGES_AT_ONCE = 500

export interface LogPortion {
  /** The last id that was looked at; undefined if there are none left. */
  readonly last: number | undefined
  readonly records: number
  readonly changes: number
  readonly faults: readonly string[]
}

/** The records after this id, a portion of them. All that it reads must be of one snapshot. */
export async function compareWithLog(
  db: Queryable,
  table: Table,
  former: readonly FormerField[],
  after: number,
): Promise<LogPortion> {
  const ids = await nextIds(db, table, after)
  const last = ids.at(-1)
  if (last === undefined) return { last, records: 0, changes: 0, faults: [] }
  const current = await currentValues(db, table, ids)
  const floor = { horizon: await horizonOf(db), dropped: droppedAt(former) }
  const sums = new Map(ids.map((id) => [id, new ChangeSum(table, floor)]))
  let changes = 0
  for await (const row of changesOf(db, table.model, after, last)) {
    sums.get(row.record)?.add(row)
    changes++
  }
  const faults = [...sums].flatMap(([id, sum]) =>
    sum.faultsOf(current.get(id)).map((fault) => `${table.model.name} ${id} ${fault}`),
  )
  return { last, records: current.size, changes, faults }
}

/** Those that the table or the Log has, the smallest first. */
async function nextIds(db: Queryable, { name, model }: Table, after: number): Promise<number[]> {
  const rows = await db.all(
    `select "id" from (select "id" from ${name} where "id" > ? order by "id" limit ${RECORDS_AT_ONCE}) as "stored" ` +
      `union select record from (select distinct record from ${LOG_TABLE} where model = ? and record > ? ` +
      `order by record limit ${RECORDS_AT_ONCE}) as "logged" order by 1 limit ${RECORDS_AT_ONCE}`,
    [after, model.name, after],
  )
  return rows.map((row) => Number(row['id']))
}

/** A table that was dropped took its records along without a word. */
function droppedAt(former: readonly FormerField[]): number {
  return Math.max(0, ...former.filter(({ name }) => name === ALL_FIELDS).map(({ seq }) => seq))
}

interface LoggedChange extends Pick<Change, 'seq' | 'version' | 'action' | 'changes'> {
  readonly record: number
  readonly isPurged: boolean
}

/** Of the records after the first id up to the last, in the order of their versions, page by page. */
async function* changesOf(
  db: Queryable,
  { name }: Model,
  after: number,
  upTo: number,
): AsyncGenerator<LoggedChange> {
  const some =
    `select seq, record, version, octet_length(changes) as "size" from ${LOG_TABLE} ` +
    `where model = ? and record <= ? and (record > ? or (record = ? and version > ?)) ` +
    `order by record, version limit ${CHANGES_AT_ONCE}`
  const sized = `select seq, sum("size") over (order by record, version) - "size" as "before" from (${some}) as "some"`
  for (let [record, version] = [after, Number.MAX_SAFE_INTEGER]; ;) {
    const rows = await db.all(
      `select l.seq, l.record, l.version, l.action, l.changes, l.purged from ${LOG_TABLE} as l ` +
        `join (${sized}) as "page" on "page".seq = l.seq where "page"."before" < ${BYTES_IN_A_PAGE} ` +
        `order by l.record, l.version`,
      [name, upTo, record, record, version],
    )
    yield* rows.map(toLogged)
    const last = rows.at(-1)
    if (!last) return
    ;[record, version] = [Number(last['record']), Number(last['version'])]
  }
}

function toLogged(row: Row): LoggedChange {
  return {
    seq: Number(row['seq']),
    record: Number(row['record']),
    version: Number(row['version']),
    action: row['action'] as Change['action'],
    changes: parseStored(row['changes']) as Change['changes'],
    isPurged: row['purged'] === 1,
  }
}

interface Floor {
  /** Up to here Changes may have been taken out of the Log. */
  readonly horizon: number
  /** Up to here they are of a table that is no more. */
  readonly dropped: number
}

/** One record, as its Changes tell it, the oldest first. */
class ChangeSum {
  readonly #values = new Map<string, Value>()
  readonly #faults: string[] = []
  /** Whether every field that no Change tells of is empty. */
  #isWhole = false
  #last: LoggedChange | undefined

  constructor(
    private readonly table: Table,
    private readonly floor: Floor,
  ) {}

  add(change: LoggedChange): void {
    if (change.seq <= this.floor.dropped) return
    this.#checkGap(change)
    const { action, isPurged } = change
    if (action !== 'update' || isPurged) this.#forget(action === 'create' && !isPurged)
    const { changes, lost } = this.table.names.read(change)
    for (const name of lost) this.#values.delete(name)
    if (lost.length > 0) this.#isWhole = false
    for (const [name, { after }] of Object.entries(changes)) this.#values.set(name, after)
    this.#last = change
  }

  faultsOf(current: Current | undefined): string[] {
    const last = this.#last
    if (!last) return current ? ['is stored, and the Log does not know of it'] : []
    const isGone = last.action === 'delete'
    if (!current && !isGone) this.#faults.push(`is missing, and the Log has it at version ${last.version}`)
    if (current && isGone)
      this.#faults.push(`is stored, and the Log says that version ${last.version} deleted it`)
    if (!current || isGone) return this.#faults
    if (current.version !== last.version)
      return [...this.#faults, `is at version ${current.version}, and the Log is at ${last.version}`]
    const wrong = [...this.table.model.fields.values()].filter((field) => !this.#isAsTold(field, current))
    return [...this.#faults, ...wrong.map(({ name }) => `holds another value in ${name} than the Log`)]
  }

  #checkGap({ version, action, seq }: LoggedChange): void {
    const last = this.#last
    const isNext = last ? version === last.version + 1 : action === 'create'
    if (isNext) return
    // What is missing lies between the two; compaction takes out nothing behind the horizon.
    const isExplained = last ? last.seq < this.floor.horizon : this.floor.horizon > 0
    if (!isExplained && seq > this.floor.dropped)
      this.#faults.push(
        last ? `has no Change for version ${last.version + 1}` : 'has no Change that created it',
      )
    this.#forget(false)
  }

  #forget(isWhole: boolean): void {
    this.#values.clear()
    this.#isWhole = isWhole
  }

  #isAsTold(field: Field, { values }: Current): boolean {
    if (!isShown(field)) return true
    const told = this.#values.get(field.name)
    const held = values[field.name] ?? null
    if (told !== undefined) return isSame(field, held, told)
    return !this.#isWhole || !isEmptyUntold(field) || isSame(field, held, null)
  }
}

/** What a start fills in where a field is new is in no Change. */
function isEmptyUntold(field: Field): boolean {
  const isFilled = field.default !== undefined || field.computed !== undefined || field.sequence !== undefined
  return !field.kept && !isFilled && !field.required && !field.relation?.isList && field.type !== 'boolean'
}

function isSame(field: Field, held: Value, told: Value): boolean {
  if (field.relation?.isList) return sameIds(idsIn(held), idsIn(told))
  const storage = storageOf(field)
  if (storage === 'file') return isSameFile(held, told)
  // The scale of a field may have changed since.
  if (storage === 'decimal') return trimmed(held) === trimmed(told)
  // Earlier releases did not log the difference between an empty array of JSON and none.
  if (storage === 'json') return sameValue(orNull(held), orNull(told))
  return sameValue(held, told)
}

function orNull(value: Value): Value {
  return Array.isArray(value) && value.length === 0 ? null : value
}

function sameIds(held: readonly number[], told: readonly number[]): boolean {
  const ids = new Set(told)
  return held.length === ids.size && held.every((id) => ids.has(id))
}

function trimmed(decimal: Value): Value {
  return typeof decimal === 'string' && decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
}
