// The types of writes: changes of a record, both sides of a conflict, and the requests of a batch.
import type { Verdict } from '../../model/write/merge.js'
import type { CreateValues, ModelName, ReadOf, UpdateValues } from './schema.js'

/** A function that changes nothing may also return nothing. */
type Maybe<T> = T | null | undefined | void // eslint-disable-line @typescript-eslint/no-invalid-void-type

/** Unknown fields get this text as their type, so that it is part of the error message. */
type UnknownField<N, K> = `${N & string} has no field ${K & string} that an update can change`

/** Fields that an update cannot change, but that a record which is sent back has. */
type IgnoredField<S, N> = keyof ReadOf<S, N>

/** Infers C, the changes as a function returns them, and checks their names. The compiler would ignore unknown names there. */
type CheckedChanges<S, N, C> = [C] extends [never]
  ? C
  : UpdateValues<S, N> & {
      readonly [K in Exclude<keyof C, keyof UpdateValues<S, N> | IgnoredField<S, N>>]: UnknownField<N, K>
    }

/** Computes the changes from the record. Without changes, nothing is written. */
export type ChangeFunction<S, N, C> = (
  record: ReadOf<S, N>,
) => Maybe<CheckedChanges<S, N, C>> | Promise<Maybe<CheckedChanges<S, N, C>>>

/** The changes, and the version of the record that they are based on. */
export type VersionedChanges<S, N> = UpdateValues<S, N> & { readonly version: number }

/** A field that at least one side of a conflict has changed. */
export interface ConflictingField<V> {
  /** Absent if the service no longer has the version that our changes are based on. */
  readonly base?: V
  readonly ours: V
  readonly theirs: V
  readonly verdict: Verdict
}

/** In the values of a conflict, a related record has only its id. */
type LoggedValue<V> = V extends readonly (infer Member)[]
  ? readonly LoggedValue<Member>[]
  : V extends { readonly $version: number }
    ? { readonly id: number }
    : V

/** Both sides of a conflict. */
export interface Conflict<S, N> {
  /** The record that our changes are based on; undefined if it is no longer known. */
  readonly base: ReadOf<S, N> | undefined
  readonly ours: UpdateValues<S, N>
  /** The record as it is now. */
  readonly theirs: ReadOf<S, N>
  /** The fields that either side has changed. */
  readonly fields: {
    readonly [K in keyof ReadOf<S, N>]?: ConflictingField<LoggedValue<ReadOf<S, N>[K]>>
  }
}

/** Returns the changes to save on the current record. Without an answer, the update is given up. */
export type ConflictFunction<S, N, C> = (
  conflict: Conflict<S, N>,
) => Maybe<CheckedChanges<S, N, C>> | Promise<Maybe<CheckedChanges<S, N, C>>>

/** A stored record by its id, or a record that an earlier request of the batch creates. */
export type RecordOrRef = number | { readonly $ref: string }

/** The requests of a batch by `op`. */
export interface BatchRequests<S, N> {
  readonly create: {
    readonly op: 'create'
    readonly model: N
    readonly data: CreateValues<S, N>
    /** A name by which later requests refer to the record: `{ $ref: name }`. */
    readonly ref?: string | undefined
  }
  readonly update: {
    readonly op: 'update'
    readonly model: N
    readonly id: RecordOrRef
    readonly version: number
    readonly data: UpdateValues<S, N>
  }
  readonly delete: {
    readonly op: 'delete'
    readonly model: N
    readonly id: RecordOrRef
    readonly version?: number | undefined
  }
  /** The record must still be at this version. */
  readonly assert: {
    readonly op: 'assert'
    readonly model: N
    readonly id: RecordOrRef
    readonly version: number
  }
}

interface BatchResults<S, N> {
  readonly create: ReadOf<S, N>
  readonly update: ReadOf<S, N>
  /** The id of the deleted record. */
  readonly delete: number
  readonly assert: { readonly id: number; readonly version: number }
}

export type BatchOp = keyof BatchResults<unknown, unknown>

/** A request whose model is not written yet. The types of all models together would stop an editor for minutes. */
interface AnyRequestOf<N> {
  readonly op: BatchOp
  readonly model: N
  readonly id?: RecordOrRef
  readonly version?: number
  readonly data?: object
  readonly ref?: string
}

/** Infers Q, a request as it is written, and checks it by its `op` and `model`. */
export type CheckedRequest<S, Q> = [Q] extends [never]
  ? Q
  : Q extends { readonly op: infer O extends BatchOp; readonly model: infer N }
    ? [ModelName<S>] extends [N]
      ? AnyRequestOf<N>
      : BatchRequests<S, N>[O]
    : never

/** The result of a request of a batch. */
export type BatchResult<S, Q> = Q extends { readonly op: infer O extends BatchOp; readonly model: infer N }
  ? BatchResults<S, N>[O]
  : never
