// Copies a stored record: returns the data of a new record, which the client can edit and create.
import { VersoError } from '../../errors.js'
import type { Criteria } from '../../model/query/criteria.js'
import { MAX_DRAFT_DEPTH, MAX_DRAFT_RECORDS } from '../../model/write/draft.js'
import type { Field } from '../../model/values/field.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import { getReferenceId, type Value, type Values } from '../../model/values/value.js'
import { measureScan } from '../../store/find/large-pages.js'
import * as store from '../../store/records/records.js'
import type { Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireId, throwNotFound } from '../access/request-checks.js'
import {
  createCopyTooLargeError,
  fitsAnswer,
  computeMemoryLimit,
  computeAnswerRoom,
} from '../context/answer-limits.js'
import { isRecordVisible, readIfFits, getSelect } from '../access/visible-records.js'
import { getVisibility, createContext, type Context } from '../context/context.js'

const COPY_SUFFIX = ' (copy)'

/**
 * Makes the data that creates an equal record: without ids and versions, with copies of the owned records. Measures the record first and
 * refuses one that is larger than an answer.
 */
export async function copyRecord(context: Context, model: Model, id: number): Promise<Values> {
  const { app, principal } = context
  const record = await readIfFits(context, { model, id: requireId(model, id) })
  if (!record && !(await isRecordVisible(context, { model, id }))) throwNotFound(model, id)
  const copied = record && (await new RecordCopier(app, principal).copyValues(model, record, undefined, 1))
  if (!copied || !fitsAnswer(app, copied)) throw createCopyTooLargeError(app.settings)
  return copied
}

class RecordCopier {
  /** The number of records in all lists of the copy. */
  #recordCount = 0
  /** The bytes of the records in these lists. */
  #memberBytes = 0

  constructor(
    private readonly app: App,
    private readonly principal: Principal,
  ) {}

  async copyValues(
    model: Model,
    record: WireRecord,
    /** The reference to the owner. The list sets it. */
    owner: string | undefined,
    depth: number,
  ): Promise<Values> {
    this.#countRecord(model, depth)
    const values: Values = {}
    for (const field of model.fields.values()) {
      if (!isCopied(model, field) || field.name === owner || !Object.hasOwn(record, field.name)) continue
      const isMembers = isOwnedList(field) && field.relation?.mappedBy !== undefined
      values[field.name] = isMembers
        ? await this.#copyMembers(model, field, record, depth)
        : ((record[field.name] ?? null) as Value)
    }
    return changeUniqueValues(model, values, owner)
  }

  async #copyMembers(model: Model, field: Field, owner: WireRecord, depth: number): Promise<Value> {
    const { app } = this
    const { target } = buildStep(app.catalog, model, field)
    const back = field.relation?.mappedBy ?? ''
    const reference = target.fields.get(back)
    if (!reference) return []
    const steps = [buildStep(app.catalog, target, reference)]
    const where: Criteria = { kind: 'comparison', steps, field: ID_FIELD, operator: '=', values: [owner.id] }
    const { visible } = buildStep(getVisibility(app, this.principal), model, field)
    const select = getSelect(createContext(app, this.principal), target, 'full')
    const scan = { after: 0, limit: MAX_DRAFT_RECORDS - this.#recordCount + 1, where, visible, select }
    const table = app.tables.of(target)
    await this.#measureMembers(table, scan)
    const copies: Values[] = []
    const members = await store.scanById(app.db.queryPool, table, scan)
    for (const member of sortLikeList(owner[field.name], members))
      copies.push(await this.copyValues(target, member, back, depth + 1))
    return copies
  }

  async #measureMembers(table: Table, scan: store.IdScan & { readonly select: Select }): Promise<void> {
    const { db, settings } = this.app
    if (scan.select.maxBytes * scan.limit <= computeMemoryLimit(settings)) return
    for (const { bytes } of await measureScan(db.queryPool, table, scan, scan.select))
      this.#memberBytes += bytes
    if (this.#memberBytes > computeAnswerRoom(settings)) throw createCopyTooLargeError(settings)
  }

  /** Refuses a copy that would not fit into a request. A copy without its last members would lose them unnoticed. */
  #countRecord(model: Model, depth: number): void {
    if (++this.#recordCount > MAX_DRAFT_RECORDS || depth > MAX_DRAFT_DEPTH)
      throw new VersoError(
        'bad-request',
        `This ${model.name} is too large to copy in one request: at most ${MAX_DRAFT_RECORDS} records, ${MAX_DRAFT_DEPTH} levels deep`,
      )
  }
}

/** Sorts the members as the list shows them, because copies are created in this order. Members that were added after the read come last. */
function sortLikeList(list: unknown, members: readonly WireRecord[]): readonly WireRecord[] {
  const positions = new Map(
    [list].flat().map((member, position) => [getReferenceId(member as Value), position]),
  )
  const getPosition = ({ id }: WireRecord) => positions.get(id) ?? positions.size
  return members.toSorted((a, b) => getPosition(a) - getPosition(b))
}

/** True for a field that a client can send, also if lists do not show it. */
function isCopied(model: Model, field: Field): boolean {
  return (
    isReadByDefault(field) &&
    isWritable(field) &&
    field.copied &&
    !(model.archived && field.name === 'archived')
  )
}

/** Changes unique values: appends a suffix to a text and leaves out every other value. */
function changeUniqueValues(model: Model, values: Values, owner: string | undefined): Values {
  const changed = { ...values }
  for (const set of model.unique) {
    // The value stays if the constraint includes the new owner, an empty field or a generated field.
    const isOther = set.some((name) => name === owner || (changed[name] ?? null) === null)
    const isMarked = set.some((name) => changed[name] !== values[name])
    const fields = set.flatMap((name) => model.fields.get(name) ?? [])
    const field = fields.find(canTakeSuffix) ?? fields.findLast(({ required }) => !required) ?? fields[0]
    if (!isOther && !isMarked && field)
      changed[field.name] = createDistinctValue(field, changed[field.name] ?? null)
  }
  return changed
}

function canTakeSuffix({ type, maxLength, selection }: Field): boolean {
  return type === 'string' && selection === undefined && maxLength > COPY_SUFFIX.length
}

function createDistinctValue(field: Field, value: Value): Value {
  if (typeof value !== 'string' || !canTakeSuffix(field)) return null
  const prefix = Array.from(value).slice(0, field.maxLength - COPY_SUFFIX.length)
  return prefix.join('') + COPY_SUFFIX
}
