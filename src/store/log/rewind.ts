// Undoes the Changes of a record one after the other, the newest first. Fields have their current names; dropped fields are omitted.
import type { Value, Values } from '../../model/values/value.js'
import type { Change } from '../../wire.js'
import type { Table } from '../sql/table.js'

/** The known values of a record at one version; `gone` if the record did not exist, `unknown` if the Log no longer contains the version. */
export type RecordState = Values | 'gone' | 'unknown'

/** Returns null if the value is not known. */
export function getStateValue(state: RecordState, name: string): Value {
  return typeof state === 'string' ? null : (state[name] ?? null)
}

/** True if the Log contains the value of the field. */
export function isKnownIn(values: Values, name: string): boolean {
  return Object.hasOwn(values, name)
}

/** One Change of a record, with the record before and after it. */
export interface Revision {
  readonly change: Change
  readonly before: RecordState
  readonly after: RecordState
}

/** The current row of a record. */
export interface CurrentRecord {
  readonly version: number
  readonly values: Values
}

/** The user who created a record, and the time. Neither ever changes. */
export type Creation = Pick<Values, 'createdOn' | 'createdBy'>

/** Finds the creation in the current row, or in the first Change of a deleted record. It is unknown if that Change was deleted, too. */
export function findCreation(current: CurrentRecord | undefined, first: Change | undefined): Creation {
  if (current) {
    const { createdOn = null, createdBy = null } = current.values
    return { createdOn, createdBy }
  }
  if (first?.action !== 'create') return { createdOn: null, createdBy: null }
  return { createdOn: first.on, createdBy: first.by ? { id: first.by.id } : null }
}

export class Rewind {
  #version: number
  #state: RecordState
  #isCurrent = true
  #isExact = true
  #latest: Revision | undefined

  constructor(
    private readonly table: Table,
    private readonly creation: Creation,
    current: CurrentRecord | undefined,
    newest?: Change,
  ) {
    this.#version = current?.version ?? newest?.version ?? 0
    this.#state = current?.values ?? 'gone'
  }

  /** The version before the last undone Change. */
  get version(): number {
    return this.#version
  }

  /** The record at that version. The system fields about its last update have later values. */
  get state(): RecordState {
    return this.#state
  }

  /** True if the Log contains every Change so far with all its values, and every value belongs to a current field. */
  get isExact(): boolean {
    return this.#isExact
  }

  /**
   * Undoes the next Change, or none after the last one. Returns the revision of the Change before: only now is it known which user had left
   * the record as it was before that Change.
   */
  undo(logged: Change | undefined): Revision | undefined {
    const later = this.#latest
    const isNext = logged !== undefined && logged.version === this.#version
    const revision = later && {
      change: later.change,
      before: addAuthors(later.before, isNext ? logged : undefined, this.creation),
      after: later.after,
    }
    if (!logged) return revision
    const { changes, unknownFields, hasUnexplainedFields } = this.table.fieldNames.translate(logged)
    const change = { ...logged, changes }
    if (!isNext) this.#state = 'unknown'
    if (!isNext || logged.purged || hasUnexplainedFields || unknownFields.length > 0) this.#isExact = false
    // The current row has the user of its last update.
    const after = this.#isCurrent
      ? this.#state
      : addAuthors(omitFields(unknownFields, this.#state), change, this.creation)
    this.#isCurrent = false
    this.#state = omitFields(unknownFields, undoChange(this.table, change, this.#state))
    this.#latest = { change, before: this.#state, after }
    this.#version = change.version - 1
    return revision
  }
}

function undoChange(
  { model: { fields } }: Table,
  { action, changes, purged }: Change,
  after: RecordState,
): RecordState {
  if (action === 'create') return 'gone'
  if (purged) return 'unknown'
  const before = Object.fromEntries(Object.entries(changes).map(([name, change]) => [name, change.before]))
  if (action === 'delete') {
    // A delete does not log empty values.
    const empty = [...fields.values()].map(
      (field) => [field.name, field.relation?.isList ? [] : null] as const,
    )
    return { ...(Object.fromEntries(empty) as Values), ...before }
  }
  return typeof after === 'string' ? after : { ...after, ...before }
}

/** The value of a missing field is not known. */
function omitFields(names: readonly string[], state: RecordState): RecordState {
  if (typeof state === 'string' || names.length === 0) return state
  return Object.fromEntries(Object.entries(state).filter(([name]) => !names.includes(name)))
}

/** Adds the users who created and last updated the record. The Log omits them, because they follow from the Change. */
function addAuthors(state: RecordState, change: Change | undefined, creation: Creation): RecordState {
  if (typeof state === 'string') return state
  const update = change?.action === 'update' ? change : undefined
  return {
    ...state,
    ...creation,
    updatedOn: update?.on ?? null,
    updatedBy: update?.by ? { id: update.by.id } : null,
  }
}

/** Gives the fields of a Change their current names, and omits those that no longer exist. */
export function translateFieldNames({ fieldNames }: Table, change: Change): Change {
  return { ...change, changes: fieldNames.translate(change).changes }
}
