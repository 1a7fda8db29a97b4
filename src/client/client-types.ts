// The interface of the client, with the types of the models.
import type { Change, ChangePage, HistoryPage, NextPage, WireRecord } from '../wire.js'
import type { Verdict } from '../model/write/merge.js'
import type { CallOptions } from './call-scope.js'
import type { CheckedFilter, FieldPath, Found, ListFields, SortPath } from './query-types.js'
import type { AnyModels, CreateValues, FileField, ModelName, ReadOf, UpdateValues } from './schema-types.js'

/** Options of a write. */
export interface WriteOptions extends CallOptions {
  /** Repeats an earlier write: with the same key it takes effect at most once. By default each call has its own key. */
  readonly idempotencyKey?: string | undefined
}

interface PageQuery {
  readonly offset?: number | undefined
  readonly limit?: number | undefined
}

/** The parameters of a find. `P`, `X` and `K` are inferred: the fields, the filter and the sort keys as written. */
export interface FindQuery<S, N, P extends string, X, K extends string> extends PageQuery {
  /** The fields besides `id` and `version`, such as `['title', 'owner.name']`. By default the list fields of the model. */
  readonly fields?: readonly FieldPath<S, N, P>[] | undefined
  /** A condition, as an object or in the filter language. */
  readonly filter?: string | CheckedFilter<S, N, X> | undefined
  /** The sort keys, such as `['-createdOn', 'title']`. `-` means descending. */
  readonly sortBy?: readonly SortPath<S, N, K>[] | undefined
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: string | undefined
  /** The cursor of the previous page: `next.after`. */
  readonly after?: string | undefined
  /** Includes archived records. */
  readonly archived?: boolean | undefined
  /** A time: the list as it was then. */
  readonly asOf?: string | undefined
}

/** The body of a search. */
export interface SearchQuery<S, N, P extends string, X, K extends string> extends PageQuery {
  readonly fields?: readonly FieldPath<S, N, P>[] | undefined
  readonly filter?: string | CheckedFilter<S, N, X> | undefined
  readonly sortBy?: readonly SortPath<S, N, K>[] | undefined
  /** Conditions of the protocol: `criteria` and `operator`, `_domain` … */
  readonly data?: Readonly<Record<string, unknown>> | undefined
}

/** One page of records. */
export interface Page<R> {
  readonly data: readonly R[]
  readonly offset: number
  /** The number of all matching records; absent with `count: 'none'`. */
  readonly total?: number | undefined
  /** The number of the last change that the page reflects. Follow the changes from here to miss nothing. */
  readonly seq: number
  /** The parameters of the next page, if there is one. */
  readonly next?: NextPage | undefined
}

/** One page of records with the number of all matching records. */
export interface CountedPage<R> extends Page<R> {
  readonly total: number
}

/** A field on both sides of a conflict. */
export interface FieldConflict<V> {
  /** Absent if the service no longer has the earlier version. */
  readonly base?: V
  readonly ours: V
  readonly theirs: V
  readonly verdict: Verdict
}

/** Two sides that changed the same field of a record. */
export interface Conflict<S, N> {
  /** The record that our changes are based on; undefined if it is no longer known. */
  readonly base: ReadOf<S, N> | undefined
  /** Our changes. */
  readonly ours: UpdateValues<S, N>
  /** The record as it is now. */
  readonly theirs: ReadOf<S, N>
  /** All fields that either side changed. */
  readonly fields: { readonly [K in keyof ReadOf<S, N>]?: FieldConflict<ReadOf<S, N>[K]> }
}

export interface UpdateOptions<S, N> extends WriteOptions {
  /**
   * Resolves a conflict: returns the changes to save on the current record. `'retry'` calls the function of the update again with the
   * newest record. Without it, the update rejects with a ConflictError.
   */
  readonly onConflict?:
    'retry' | ((conflict: Conflict<S, N>) => UpdateValues<S, N> | Promise<UpdateValues<S, N>>) | undefined
}

/** The changes of an update as a function of the record. */
export type ChangeFunction<S, N> = (record: ReadOf<S, N>) => UpdateValues<S, N> | Promise<UpdateValues<S, N>>

/** The changes of an update and the version that they are based on. */
export type VersionedChanges<S, N> = UpdateValues<S, N> & { readonly version: number }

/** A record that an earlier request of the batch creates. */
export interface BatchRef {
  readonly $ref: string
}

/** A request of a batch. */
export type BatchRequest<S, N> =
  | { readonly op: 'create'; readonly model: N; readonly data: CreateValues<S, N>; readonly ref?: string }
  | {
      readonly op: 'update'
      readonly model: N
      readonly id: number | BatchRef
      readonly version: number
      readonly data: UpdateValues<S, N>
    }
  | { readonly op: 'delete'; readonly model: N; readonly id: number | BatchRef; readonly version?: number }
  | { readonly op: 'assert'; readonly model: N; readonly id: number | BatchRef; readonly version: number }

export interface BatchResult<S, N> {
  readonly create: ReadOf<S, N>
  readonly update: ReadOf<S, N>
  readonly delete: number
  readonly assert: { readonly id: number; readonly version: number }
}

/** A file to store. */
export interface Upload<S, N> {
  readonly version: number
  readonly field: FileField<S, N>
  readonly content: Blob | Uint8Array | ReadableStream<Uint8Array>
  readonly name: string
}

/** The calls of one model. */
export interface ModelClient<S = AnyModels, N = string> {
  /** Finds a page of records. */
  find<
    const P extends string = ListFields,
    const X = unknown,
    const K extends string = never,
    C extends 'none' = never,
  >(
    query?: FindQuery<S, N, P, X, K> & { readonly count?: C | undefined },
    options?: CallOptions,
  ): Promise<[C] extends [never] ? CountedPage<Found<S, N, P>> : Page<Found<S, N, P>>>
  /** Reads all matching records, page by page. */
  all<const P extends string = ListFields, const X = unknown, const K extends string = never>(
    query?: FindQuery<S, N, P, X, K>,
    options?: CallOptions,
  ): AsyncIterable<Found<S, N, P>>
  /** Reads a record with all its fields, or as it was at a version or time. */
  read(
    id: number,
    query?: { readonly asOf?: string | number | undefined },
    options?: CallOptions,
  ): Promise<ReadOf<S, N>>
  create(data: CreateValues<S, N>, options?: WriteOptions): Promise<ReadOf<S, N>>
  /** Changes a record. Merges with the changes of others where no field clashes. */
  update(
    id: number,
    changes: ChangeFunction<S, N> | VersionedChanges<S, N>,
    options?: UpdateOptions<S, N>,
  ): Promise<ReadOf<S, N>>
  /** Deletes a record; with a version, only if the record is still at it. */
  remove(id: number, options?: WriteOptions & { readonly version?: number | undefined }): Promise<void>
  /** Finds a page of records by a request body, which may be longer than a URL. */
  search<const P extends string = ListFields, const X = unknown, const K extends string = never>(
    query?: SearchQuery<S, N, P, X, K>,
    options?: CallOptions,
  ): Promise<CountedPage<Found<S, N, P>>>
  /** Reads selected fields of a record and of its related records. */
  fetch(
    id: number,
    selection?: {
      readonly fields?: readonly string[]
      readonly related?: Readonly<Record<string, readonly string[]>>
    },
    options?: CallOptions,
  ): Promise<WireRecord>
  /** Lists the changes of a record, the newest first. */
  history(id: number, query?: PageQuery, options?: CallOptions): Promise<HistoryPage>
  /** Restores the values of an earlier version. */
  revert(
    id: number,
    target: { readonly to: number; readonly version?: number | undefined },
    options?: WriteOptions,
  ): Promise<ReadOf<S, N>>
  /** Lists changes of this model in commit order. */
  changes(query?: Omit<ChangesQuery<S>, 'model'>, options?: CallOptions): Promise<ChangePage>
  /** Follows the changes of this model. Continues after a lost connection. */
  follow(options?: FollowOptions): AsyncIterable<Change>
  /** Stores a file in a field of a record. */
  upload(id: number, upload: Upload<S, N>, options?: WriteOptions): Promise<ReadOf<S, N>>
  /** Reads the file of a field; undefined if the field is empty. */
  download(
    id: number,
    field: FileField<S, N>,
    options?: CallOptions & { readonly range?: readonly [from: number, to: number] },
  ): Promise<Response | undefined>
  /** Empties a file field. */
  clear(
    id: number,
    field: FileField<S, N>,
    options: WriteOptions & { readonly version: number },
  ): Promise<ReadOf<S, N>>
}

export interface ChangesQuery<S> {
  /** The number of the last change that the program has seen; 0 for the beginning. */
  readonly since?: number | undefined
  readonly model?: ModelName<S> | readonly ModelName<S>[] | undefined
  readonly limit?: number | undefined
  /** Seconds to wait for the next change if there is none. */
  readonly wait?: number | undefined
}

export interface FollowOptions {
  /** The number of the last change that the program has seen. By default only new changes are returned. */
  readonly since?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A connection to a service. */
export interface Client<S = AnyModels> {
  /** The calls of a model. */
  model<N extends ModelName<S>>(name: N): ModelClient<S, N>
  /** Runs requests of several models in one transaction. Returns one result for each. */
  batch<
    const N extends readonly ModelName<S>[],
    const O extends { readonly [I in keyof N]: keyof BatchResult<S, N[I]> },
  >(
    requests: { readonly [I in keyof N]: BatchRequest<S, N[I]> & { readonly op: O[I & keyof O] } },
    options?: WriteOptions,
  ): Promise<{ readonly [I in keyof N]: BatchResult<S, N[I]>[O[I & keyof O] & keyof BatchResult<S, N[I]>] }>
  changes(query?: ChangesQuery<S>, options?: CallOptions): Promise<ChangePage>
  follow(options?: FollowOptions & Pick<ChangesQuery<S>, 'model'>): AsyncIterable<Change>
  login(options?: CallOptions): Promise<void>
  logout(options?: CallOptions): Promise<void>
}
