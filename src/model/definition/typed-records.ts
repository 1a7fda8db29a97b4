// The types of the record functions of one model, for programs that embed the service, for hooks and for routes.
import type { FieldOrPath, RecordFilter } from './record-filter.js'
import type {
  AnyDefinition,
  CreateValuesOf,
  ListFieldOf,
  FullRecordOf,
  UpdateValuesOf,
} from './record-types.js'
import type { AnyRecord, IsUntyped, UntypedDefinition } from './untyped-definition.js'

export interface RecordQuery<M extends AnyDefinition, P extends string = string> {
  readonly filter?: RecordFilter<M> | undefined
  /** The fields besides `id` and `version`. By default the list fields of the model. */
  readonly fields?: readonly P[] | undefined
  /** The sort keys, such as `['-createdOn', 'title']`. `-` means descending. By id by default. */
  readonly sortBy?: readonly string[] | undefined
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: string | undefined
  readonly offset?: number | undefined
  /** The maximum number of records; 40 by default. */
  readonly limit?: number | undefined
  /** Includes archived records. */
  readonly archived?: boolean | undefined
}

/** A found record: id, version and the selected fields. The value of a path over relations has no type. */
export type SelectedRecordOf<M extends AnyDefinition, P extends string> =
  IsUntyped<M> extends true ? AnyRecord : SelectedRecord<FullRecordOf<M>, P>

type SelectedRecord<R extends AnyKeys, P extends string> = Pick<R, 'id' | 'version' | (P & keyof R)> & {
  readonly [K in Exclude<P, keyof R>]: unknown
}

interface AnyKeys {
  readonly id: number
  readonly version: number
}

export interface SelectedPage<R> {
  readonly data: readonly R[]
  readonly offset: number
  /** The number of all matching records. */
  readonly total: number
}

/** The values of an update, with the version that they are based on. */
export type VersionedUpdate<M extends AnyDefinition> = UpdateValuesOf<M> & { readonly version: number }

export interface RemoveTarget {
  /** The record must have this version. By default any version is removed. */
  readonly version?: number | undefined
}

/** The functions of one model that a transaction offers. */
export interface TransactionModelRecords<M extends AnyDefinition> {
  find<const P extends FieldOrPath<M> = ListFieldOf<M> & FieldOrPath<M>>(
    query?: RecordQuery<M, P>,
  ): Promise<SelectedPage<SelectedRecordOf<M, P>>>
  /** Reads a record with all its fields. Throws `not-found` if it does not exist. */
  read(id: number): Promise<FullRecordOf<M>>
  /** Reads a record and locks it: nobody else can change it until the transaction ends. */
  lock(id: number): Promise<FullRecordOf<M>>
  create(data: CreateValuesOf<M>): Promise<FullRecordOf<M>>
  update(id: number, data: VersionedUpdate<M>): Promise<FullRecordOf<M>>
  remove(id: number, target?: RemoveTarget): Promise<void>
}

/** Reads and writes in one transaction, for one user. */
export interface TransactionRecords {
  /** The functions of a model, given by its definition or by its name. */
  of<M extends AnyDefinition>(model: M): TransactionModelRecords<M>
  of(model: string): TransactionModelRecords<UntypedDefinition>
  /** Returns records of this transaction with all permissions. The user stays the author of changes. */
  asSystem(): TransactionRecords
}

/** The functions of one model for one user. Each call is a transaction of its own. */
export interface ModelRecords<M extends AnyDefinition> extends Omit<TransactionModelRecords<M>, 'lock'> {
  /** Lists the changes of a record, the newest first. Works for deleted records, too. */
  history(
    id: number,
    page?: HistoryRange,
  ): Promise<{ readonly data: readonly RecordChange[]; readonly total: number }>
  /** Restores the values of an earlier version, also of a deleted record. */
  revert(id: number, target: { readonly version: number; readonly to: number }): Promise<FullRecordOf<M>>
}

export interface HistoryRange {
  readonly offset?: number
  /** The maximum number of changes; 40 by default. */
  readonly limit?: number
}

/** A committed change of a record. */
export interface RecordChange {
  readonly seq: number
  readonly model: string
  readonly id: number
  readonly version: number
  readonly action: 'create' | 'update' | 'delete'
  readonly on: string
  readonly by: { readonly id: number; readonly name: string | null } | null
  readonly changes: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>
}

/** The record functions for one user. */
export interface RecordsHandle {
  /** The functions of a model, given by its definition or by its name. */
  of<M extends AnyDefinition>(model: M): ModelRecords<M>
  of(model: string): ModelRecords<UntypedDefinition>
  /** Returns records with all permissions. The user stays the author of changes. */
  asSystem(): RecordsHandle
  /** Runs the work in one transaction. It may run again when the transaction is retried, so it awaits nothing but `records`. */
  transaction<T>(work: (records: TransactionRecords) => Promise<T>): Promise<T>
}
