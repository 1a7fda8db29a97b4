// Writes consecutive plain records of one model with few statements. The records, Changes and errors are those of one write after the other:
// a list ends before the first draft that cannot be written, which the caller then writes alone.
import type { VersoError } from '../../errors.js'
import type { Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import { buildRecord, toValues } from '../../model/definition/record-values.js'
import type { Values } from '../../model/values/value.js'
import { NotUniqueError } from '../../store/records/not-unique.js'
import * as store from '../../store/records/records.js'
import { insertRows, updateRows, type RecordUpdate } from '../../store/records/write.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { listChangedFields } from '../access/changed-fields.js'
import { createNotFoundError, requirePermission } from '../access/request-checks.js'
import { FULL_ACCESS } from '../access/record-access.js'
import { computeMemoryLimit } from '../context/answer-limits.js'
import type { WritePlan } from '../context/app.js'
import type { WriteContext } from '../context/context.js'
import { createConflictError } from './conflict.js'
import {
  buildNewValues,
  buildUpdatedRecord,
  buildUpdateValues,
  nameUniquePath,
  pickChangedValues,
} from './write-rows.js'
import type { WriteState } from './write-state.js'

/** The records of a list are in memory at once. */
const MAX_LIST_RECORDS = 1_000
/** After a record that is too large for its list, the next lists are smaller. */
const SMALLER_LIST_DIVISOR = 8

/** The error of a draft in a list, with its index among the drafts that are written. */
class ListError extends Error {
  constructor(
    readonly index: number,
    readonly error: unknown,
  ) {
    super(`the draft ${index} of a list failed`)
  }
}

/** Adds the index of a draft to its error. */
export type ListErrorTranslator = (error: unknown, index: number) => unknown

export interface PlainListOptions {
  /** True if the request names the records. A record that it does not name gets a version only if a value changes. */
  readonly areRoots: boolean
  /**
   * True if no record of the request shows another one. The records after the writes are then known without a read. By default, the drafts
   * are all that the request writes.
   */
  readonly areIndependent?: boolean | undefined
  readonly plan: (draft: Draft) => WritePlan
  /** Writes a draft alone, and returns the id of its record. */
  readonly writeOne: (draft: Draft) => Promise<number>
}

/** True if no record shows another one of the drafts: all are plain, and their models do not refer to each other. */
export function areIndependent(drafts: readonly Draft[], plan: (draft: Draft) => WritePlan): boolean {
  const models = new Set(drafts.map(({ model }) => model))
  const names = new Set([...models].map(({ name }) => name))
  const isReferring = ({ fields }: Model) =>
    [...fields.values()].some(({ relation }) => relation && names.has(relation.target))
  return ![...models].some(isReferring) && drafts.every((draft) => plan(draft).isPlain)
}

export class PlainListWriter {
  #maxUpdates = MAX_LIST_RECORDS

  constructor(
    private readonly context: WriteContext,
    private readonly state: WriteState,
    private readonly options: PlainListOptions,
  ) {}

  /** Writes the drafts in their order and returns the ids of their records. */
  async writeAll(
    drafts: readonly Draft[],
    toError: ListErrorTranslator = (error) => error,
  ): Promise<number[]> {
    const { plan, writeOne } = this.options
    const isKnown = drafts.length > 1 && (this.options.areIndependent ?? areIndependent(drafts, plan))
    const ids: number[] = []
    for (let draft = drafts[0]; draft; draft = drafts[ids.length]) {
      try {
        const listed = this.#takeListed(drafts, ids.length)
        const written = listed.length > 1 ? await this.#writeList(listed, isKnown) : []
        ids.push(...(written.length > 0 ? written : [await writeOne(draft)]))
      } catch (error) {
        throw error instanceof ListError
          ? toError(error.error, ids.length + error.index)
          : toError(error, ids.length)
      }
    }
    return ids
  }

  /** Takes the plain drafts that can be written together: creates of one model, or updates of different records of it. */
  #takeListed(drafts: readonly Draft[], from: number): Draft[] {
    const first = drafts[from]
    const listed: Draft[] = []
    if (drafts.length === 1) return listed
    const ids = new Set<number>()
    const maxRecords = first?.key ? this.#maxUpdates : MAX_LIST_RECORDS
    for (let index = from; index < drafts.length && listed.length < maxRecords; index++) {
      const draft = drafts[index]
      if (!draft || draft.model !== first?.model || (draft.key === undefined) !== (first.key === undefined))
        break
      if (draft.isDuplicate || (draft.key && ids.has(draft.key.id)) || !this.options.plan(draft).isPlain)
        break
      if (draft.key) ids.add(draft.key.id)
      listed.push(draft)
    }
    return listed
  }

  /** Writes the first of these drafts and returns the ids of those that it wrote. */
  async #writeList(drafts: readonly Draft[], isKnown: boolean): Promise<number[]> {
    const [first] = drafts
    if (!first) return []
    const table = this.context.app.tables.of(first.model)
    return first.key ? this.#update(table, drafts, isKnown) : this.#create(table, drafts, isKnown)
  }

  async #create(table: Table, drafts: readonly Draft[], isKnown: boolean): Promise<number[]> {
    const { context, state } = this
    const { model } = table
    requirePermission(context.principal, 'create', model)
    const rows = takeWhileComputed(drafts, (draft) => buildNewValues(context, draft, draft.values))
    if (rows.length < 2) return []
    const ids = await this.#run(drafts, () => insertRows(context.tx, table, rows))
    ids.forEach((id, index) => {
      const values = rows[index]
      const after = isKnown && values ? buildRecord(model, id, 0, values) : undefined
      withIndex(index, () => {
        state.addCreated(table, id, after)
      })
    })
    return ids
  }

  async #update(table: Table, drafts: readonly Draft[], isKnown: boolean): Promise<number[]> {
    const { context } = this
    const { model } = table
    const stored = await this.#readStored(table, drafts)
    // Smaller lists leave more memory for each record.
    if (stored.includes(undefined)) this.#maxUpdates = Math.ceil(this.#maxUpdates / SMALLER_LIST_DIVISOR)
    const updates = takeWhileComputed(drafts, (draft, index) => this.#prepareUpdate(draft, stored[index]))
    if (updates.length < 2) return []
    const written = updates.filter(({ isWritten }) => isWritten)
    const writtenDrafts = written.map(({ draft }) => draft)
    const results = await this.#run(writtenDrafts, () => updateRows(context.tx, table, written))
    for (const [index, update] of written.entries()) {
      if (!results[index]) throw new ListError(index, await this.#findConflict(table, update))
      const { before, changed, generated } = update
      const after = isKnown ? buildUpdatedRecord(model, before, changed, generated) : undefined
      withIndex(index, () => {
        this.state.addUpdated(table, before, after)
      })
    }
    return updates.map(({ id }) => id)
  }

  /** Undefined if the draft must be written alone, which reports its error. */
  #prepareUpdate(draft: Draft, before: WireRecord | undefined): PlainUpdate | undefined {
    const { model, key } = draft
    if (!before || before.version !== key?.version) return undefined
    if (this.state.isWritten(model, key.id)) return undefined
    const old = toValues(model, before)
    const sent = draft.values
    const changed = pickChangedValues(old, sent)
    const isWritten = this.options.areRoots || listChangedFields(draft, before, sent, FULL_ACCESS).length > 0
    const generated = isWritten ? buildUpdateValues(this.context, draft, old, sent) : {}
    const values = Object.assign({}, sent, generated)
    return { draft, id: key.id, version: key.version, values, before, changed, generated, isWritten }
  }

  /** Another transaction has changed the record after it was read. */
  async #findConflict(table: Table, { draft, id, version }: PlainUpdate): Promise<VersoError> {
    const { context } = this
    const theirs = await store.readById(context.tx, table, id)
    if (!theirs) return createNotFoundError(table.model, id)
    const expected = { version, source: 'version' } as const
    return createConflictError(context, { table, record: theirs, expected, draft })
  }

  /** Reads the records that fit into an equal share of the memory. The caller writes the others alone, like missing ones. */
  async #readStored(table: Table, drafts: readonly Draft[]): Promise<(WireRecord | undefined)[]> {
    const ids = drafts.flatMap(({ key }) => key?.id ?? [])
    const { maxBytes, sizeSql } = table.own
    const share = computeMemoryLimit(this.context.app.settings) / ids.length
    if (maxBytes <= share) return store.readByIds(this.context.tx, table, ids)
    const within = { size: sizeSql.estimatedBytes, maxBytes: Math.floor(sizeSql.limitedBytes + share) }
    return store.readByIds(this.context.tx, table, ids, { filter: { within } })
  }

  async #run<T>(drafts: readonly Draft[], write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      const draft = error instanceof NotUniqueError ? drafts[error.index ?? 0] : undefined
      if (!draft || !(error instanceof NotUniqueError)) throw error
      throw new ListError(error.index ?? 0, nameUniquePath(this.context.principal, draft, error))
    }
  }
}

/** Adds the index of a draft to the error of its record. */
function withIndex(index: number, add: () => void): void {
  try {
    add()
  } catch (error) {
    throw new ListError(index, error)
  }
}

interface PlainUpdate extends RecordUpdate {
  readonly draft: Draft
  readonly before: WireRecord
  readonly changed: Values
  readonly generated: Values
  /** False if no value changes and the request does not name the record. */
  readonly isWritten: boolean
}

/** Ends before the first draft whose values cannot be computed. Nothing is written yet, and the caller reports its error after the others. */
function takeWhileComputed<T>(
  drafts: readonly Draft[],
  compute: (draft: Draft, index: number) => T | undefined,
): T[] {
  const results: T[] = []
  for (const [index, draft] of drafts.entries()) {
    try {
      const result = compute(draft, index)
      if (result === undefined) break
      results.push(result)
    } catch {
      break
    }
  }
  return results
}
