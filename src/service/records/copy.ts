// A record as the beginning of another one.
import { VersoError } from '../../errors.js'
import type { Criteria } from '../../model/query/criteria.js'
import { MAX_DRAFT_DEPTH, MAX_DRAFT_RECORDS } from '../../model/write/draft.js'
import type { Field } from '../../model/values/field-types.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import { getReferenceId, type Value, type Values } from '../../model/values/value.js'
import { measureScan } from '../../store/find/large-pages.js'
import * as store from '../../store/records/records.js'
import type { Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { sightOf, type Caller } from '../context/principal.js'
import { checkId, missing } from '../context/ids.js'
import { copyTooLarge, fitsAnswer, memoryBytes, roomFor } from '../context/answer-limits.js'
import { isSeen, readToAnswer, selectFor } from '../access/visible-records.js'

const MARK = ' (copy)'

/** Makes the data that creates an equal record: no ids, no versions, and copies of the owned records. Weighs the record first, and refuses one that is larger than an answer. */
export async function copy(app: App, by: Caller, model: Model, id: number): Promise<Values> {
  const db = app.db.reader
  const record = await readToAnswer(app, by, db, { model, id: checkId(model, id) })
  if (!record && !(await isSeen(app, by, db, { model, id }))) missing(model, id)
  const copied = record && (await new Copying(app, by).copyOf(model, record, undefined, 1))
  if (!copied || !fitsAnswer(app, copied)) throw copyTooLarge(app.settings)
  return copied
}

class Copying {
  /** How many records the copy has, in all its lists. */
  #records = 0
  /** How many bytes those in its lists take. */
  #bytes = 0

  constructor(
    private readonly app: App,
    private readonly by: Caller,
  ) {}

  async copyOf(
    model: Model,
    record: WireRecord,
    /** The reference to the owner, which the list decides. */
    owner: string | undefined,
    depth: number,
  ): Promise<Values> {
    this.#count(model, depth)
    const values: Values = {}
    for (const field of model.fields.values()) {
      if (!isCopied(model, field) || field.name === owner || !Object.hasOwn(record, field.name)) continue
      const isMembers = isOwnedList(field) && field.relation?.mappedBy !== undefined
      values[field.name] = isMembers
        ? await this.#copyMembers(model, field, record, depth)
        : ((record[field.name] ?? null) as Value)
    }
    return differing(model, values, owner)
  }

  async #copyMembers(model: Model, field: Field, owner: WireRecord, depth: number): Promise<Value> {
    const { app } = this
    const { target } = buildStep(app.catalog, model, field)
    const back = field.relation?.mappedBy ?? ''
    const reference = target.fields.get(back)
    if (!reference) return []
    const steps = [buildStep(app.catalog, target, reference)]
    const where: Criteria = { kind: 'comparison', steps, field: ID_FIELD, operator: '=', values: [owner.id] }
    const { seen } = buildStep(sightOf(app, this.by), model, field)
    const shown = { seen, select: selectFor(app, this.by, target, 'full') }
    const walk = { after: 0, limit: MAX_DRAFT_RECORDS - this.#records + 1, where, ...shown }
    const table = app.tables.of(target)
    await this.#weigh(table, walk)
    const copies: Values[] = []
    const members = await store.scanById(app.db.queryPool, table, walk)
    for (const member of inOrderOf(owner[field.name], members))
      copies.push(await this.copyOf(target, member, back, depth + 1))
    return copies
  }

  async #weigh(table: Table, walk: store.IdScan & { readonly select: Select }): Promise<void> {
    const { db, settings } = this.app
    if (walk.select.maxBytes * walk.limit <= memoryBytes(settings)) return
    for (const { bytes } of await measureScan(db.queryPool, table, walk, walk.select)) this.#bytes += bytes
    if (this.#bytes > roomFor(settings)) throw copyTooLarge(settings)
  }

  /** A copy that cannot be sent back is of no use, and one without its last members would lose them unseen. */
  #count(model: Model, depth: number): void {
    if (++this.#records > MAX_DRAFT_RECORDS || depth > MAX_DRAFT_DEPTH)
      throw new VersoError(
        'bad-request',
        `This ${model.name} has too much inside to be copied at once: at most ${MAX_DRAFT_RECORDS} records, ${MAX_DRAFT_DEPTH} levels deep`,
      )
  }
}

/** As the list shows them: the copies are made in this order. Who has joined since comes last. */
function inOrderOf(list: unknown, members: readonly WireRecord[]): readonly WireRecord[] {
  const shown = new Map([list].flat().map((member, rank) => [getReferenceId(member as Value), rank]))
  const rankOf = ({ id }: WireRecord) => shown.get(id) ?? shown.size
  return members.toSorted((a, b) => rankOf(a) - rankOf(b))
}

/** All that a client can send, but for what was hidden from lists: whoever copies it wants to see it. */
function isCopied(model: Model, field: Field): boolean {
  return (
    isReadByDefault(field) &&
    isWritable(field) &&
    field.copied &&
    !(model.archived && field.name === 'archived')
  )
}

/** What is unique cannot be the same: a text is marked, all else is left to be chosen. */
function differing(model: Model, values: Values, owner: string | undefined): Values {
  const changed = { ...values }
  for (const set of model.unique) {
    // The new owner makes the difference, and so does whatever is empty or given anew.
    const isOther = set.some((name) => name === owner || (changed[name] ?? null) === null)
    const isMarked = set.some((name) => changed[name] !== values[name])
    const fields = set.flatMap((name) => model.fields.get(name) ?? [])
    const field = fields.find(canBeMarked) ?? fields.findLast(({ required }) => !required) ?? fields[0]
    if (!isOther && !isMarked && field) changed[field.name] = another(field, changed[field.name] ?? null)
  }
  return changed
}

function canBeMarked({ type, maxLength, selection }: Field): boolean {
  return type === 'string' && selection === undefined && maxLength > MARK.length
}

function another(field: Field, value: Value): Value {
  if (typeof value !== 'string' || !canBeMarked(field)) return null
  const kept = Array.from(value).slice(0, field.maxLength - MARK.length)
  return kept.join('') + MARK
}
