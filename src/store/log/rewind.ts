// Undoes the Changes of a record one after the other, the newest first. Fields have their current names; dropped fields are omitted.
import type { Model } from '../../model/definition/model.js'
import type { Value, Values } from '../../model/values/value.js'
import type { Change } from '../../wire.js'
import type { Table } from '../sql/table.js'
import type { LoggedChange } from './log.js'

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

/** A Change that was undone. */
interface UndoneChange {
  /** The changes by the current names of the fields. */
  readonly changes: Change['changes']
  /** Fields whose values before the Change are not known. */
  readonly unknownFields: readonly string[]
  /** False if the Log lacks the Changes after this one. */
  readonly isNext: boolean
}

/** Undoes Changes in place: a record may have many fields and many Changes, so nothing is copied unless it is asked for. */
export class Rewind {
  #version: number
  #state: RecordState
  #isCurrent = true
  #isExact = true

  constructor(
    private readonly table: Table,
    private readonly creation: Creation,
    current: CurrentRecord | undefined,
    newest?: LoggedChange,
  ) {
    this.#version = current?.version ?? newest?.version ?? 0
    this.#state = current ? { ...current.values } : 'gone'
  }

  /** The version before the last undone Change. */
  get version(): number {
    return this.#version
  }

  /** True if the Log contains every Change so far with all its values, and every value belongs to a current field. */
  get isExact(): boolean {
    return this.#isExact
  }

  /** Copies the record at `version`. The system fields about its last update have later values. */
  copyValues(): RecordState {
    return typeof this.#state === 'string' ? this.#state : { ...this.#state }
  }

  /** Copies the record at `version`, with all its system fields. `last` is the Change that made this version: only it tells who last updated the record. */
  copyState(last: Change | undefined): RecordState {
    const state = this.copyValues()
    // The current row has the user of its last update.
    if (typeof state === 'string' || this.#isCurrent) return state
    const update = last?.version === this.#version && last.action === 'update' ? last : undefined
    const updatedBy = update?.by ? { id: update.by.id } : null
    return Object.assign(state, this.creation, { updatedOn: update?.on ?? null, updatedBy })
  }

  undo(logged: LoggedChange): UndoneChange {
    const { changes, unknownFields, hasUnexplainedFields } = this.table.fieldNames.translate(logged)
    const isNext = logged.version === this.#version
    if (!isNext) this.#state = 'unknown'
    if (!isNext || logged.purged || hasUnexplainedFields || unknownFields.length > 0) this.#isExact = false
    this.#state = undoChange(this.table, logged, changes, this.#state)
    if (typeof this.#state !== 'string')
      for (const name of unknownFields) Reflect.deleteProperty(this.#state, name)
    this.#isCurrent = false
    this.#version = logged.version - 1
    return { changes, unknownFields, isNext }
  }
}

/** Changes the given state. */
function undoChange(
  { model: { fields } }: Table,
  { action, purged }: LoggedChange,
  changes: Change['changes'],
  state: RecordState,
): RecordState {
  if (action === 'create') return 'gone'
  if (purged) return 'unknown'
  if (action !== 'delete' && typeof state === 'string') return state
  const before = typeof state === 'string' || action === 'delete' ? buildEmptyValues(fields) : state
  for (const name of Object.keys(changes)) before[name] = changes[name]?.before ?? null
  return before
}

/** A delete does not log empty values. */
function buildEmptyValues(fields: Model['fields']): Values {
  const values: Values = {}
  for (const { name, relation } of fields.values()) values[name] = relation?.isList ? [] : null
  return values
}

/** The value of a missing field is not known. */
export function omitFields(names: readonly string[], state: RecordState): RecordState {
  if (typeof state === 'string' || names.length === 0) return state
  return Object.fromEntries(Object.entries(state).filter(([name]) => !names.includes(name)))
}

/** Gives the fields of a Change their current names, and omits those that no longer exist. */
export function translateFieldNames({ fieldNames }: Table, change: Change): Change {
  return { ...change, changes: fieldNames.translate(change).changes }
}
