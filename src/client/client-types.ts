// The interface of the client. S are the types of the models, and N is the name of a model.
import type { Account, Change, HistoryPage, NextPage } from '../wire.js'
import type { JsonAnswer } from './answer.js'
import type { CallOptions } from './call-scope.js'
import type { CheckedRelated, Fetched } from './types/fetch.js'
import type { FileContent, FileDownload, FileRange } from './files.js'
import type { CheckedFilter } from './types/filter.js'
import type { DefaultFields, FieldPath, Found, RelatedPath, SortPath } from './types/path.js'
import type {
  AnyModels,
  CreateValues,
  FileFieldName,
  ModelName,
  ReadOf,
  UpdateValues,
} from './types/schema.js'
import type { QueryValues } from './transport.js'
import type {
  BatchOp,
  BatchResult,
  ChangeFunction,
  CheckedRequest,
  ConflictFunction,
  VersionedChanges,
} from './types/write.js'

/** Options of a write. */
export interface ClientWriteOptions extends CallOptions {
  /** Repeats an earlier write: with the same key and the same data it takes effect at most once. Each call has its own key by default. */
  readonly idempotencyKey?: string | undefined
}

export interface ClientUpdateOptions<S, N, C> extends ClientWriteOptions {
  /**
   * Resolves a conflict. `'retry'` calls the function of the update again with the current record; values with a version have no
   * function, so it is a TypeError there. Without this option the update rejects with a ConflictError.
   */
  readonly onConflict?: 'retry' | ConflictFunction<S, N, C> | undefined
  /** False if changes of other fields by others are a conflict, too. */
  readonly merge?: boolean | undefined
}

export interface PageQuery {
  /** The number of records to skip; 0 by default. */
  readonly offset?: number | undefined
  /** The maximum number of records; 40 by default. */
  readonly limit?: number | undefined
}

/** The parameters of a search. P, X and K are inferred: the fields, the filter and the sort keys as they are written. */
export interface SearchParameters<S, N, P extends string, X, K extends string> extends PageQuery {
  /** The fields besides `id` and `version`, such as `['title', 'owner.name']`. By default the list fields of the model. */
  readonly fields?: readonly FieldPath<S, N, P>[] | undefined
  /** A condition: an object such as `{ state: 'open', 'owner.name': { like: 'a%' } }`, or a text in the filter language. */
  readonly filter?: string | CheckedFilter<S, N, X> | undefined
  /** The sort keys, such as `['-createdOn', 'title']`. `-` means descending. */
  readonly sortBy?: readonly SortPath<S, N, K>[] | undefined
}

/** The parameters of a find. */
export interface FindParameters<S, N, P extends string, X, K extends string> extends SearchParameters<
  S,
  N,
  P,
  X,
  K
> {
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: string | undefined
  /** The cursor of the previous page: `next.after`. */
  readonly after?: string | undefined
  /** Includes archived records. */
  readonly archived?: boolean | undefined
  /** A time: the list as it was then. */
  readonly asOf?: string | undefined
}

/** One page of records. */
export interface RecordPage<R> {
  readonly data: readonly R[]
  readonly offset: number
  /** The number of all matching records; absent with `count: 'none'`. */
  readonly total?: number | undefined
  /** The number of the last change that the page reflects. A program that follows the changes from here misses nothing. */
  readonly seq: number
  /** The parameters of the next page, if there is one. */
  readonly next?: NextPage | undefined
}

/** One page of records with the number of all matching records. */
export interface CountedPage<R> extends RecordPage<R> {
  readonly total: number
}

type PageOf<R, Count> = [Count] extends [never] ? CountedPage<R> : RecordPage<R>

/** A file to store in a field of a record. */
export interface FileUpload<S, N> {
  readonly content: FileContent
  readonly name: string
  /** The field; optional if the model has only one that holds a file. */
  readonly field?: FileFieldName<S, N> | undefined
  /** The version of the record. */
  readonly version?: number | undefined
  /** Other values to set. */
  readonly data?: UpdateValues<S, N> | undefined
}

/** The parameters of a find of deleted records. */
export interface DeletedFindQuery {
  /** The maximum number of records; 40 by default. */
  readonly limit?: number | undefined
  /** The `next` of the previous page. */
  readonly before?: number | undefined
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: string | undefined
}

/** The changes that deleted records, the newest first. */
export interface DeletedList {
  /** May have fewer changes than the limit, also if there are more pages. */
  readonly data: readonly Change[]
  /** The value of `before` for the next page, if there is one. */
  readonly next?: number | undefined
}

export interface ChangesQuery {
  /** The number of the last change that the program has seen; 0 for the beginning. */
  readonly since?: number | undefined
  readonly limit?: number | undefined
  /** The seconds to wait for the next change if there is none. */
  readonly wait?: number | undefined
}

export interface FollowOptions {
  /** The number of the last change that the program has seen. By default only new changes are returned. */
  readonly since?: number | undefined
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined
}

/** Limits changes to models. */
export interface ModelOption<S> {
  readonly model?: ModelName<S> | readonly ModelName<S>[] | undefined
}

/** Changes in commit order. */
export interface ChangeList {
  readonly data: readonly Change[]
  /** The value of `since` for the next request. */
  readonly next: number
}

/** The calls of one model. */
export interface ModelClient<S = AnyModels, N = string> {
  /** Finds a page of records. */
  find<
    const P extends string = DefaultFields,
    const X = unknown,
    const K extends string = never,
    const Count extends 'none' = never,
  >(
    query?: FindParameters<S, N, P, X, K> & { readonly count?: Count | undefined },
    options?: CallOptions,
  ): Promise<PageOf<Found<S, N, P>, Count>>
  /** Finds all matching records, page by page. */
  all<const P extends string = DefaultFields, const X = unknown, const K extends string = never>(
    query?: FindParameters<S, N, P, X, K>,
    options?: CallOptions,
  ): AsyncIterableIterator<Found<S, N, P>>
  /** Finds a page of records by a request body, which may be longer than a URL. */
  search<const P extends string = DefaultFields, const X = unknown, const K extends string = never>(
    query?: SearchParameters<S, N, P, X, K> & {
      /** Conditions as the protocol has them: `criteria` and `operator`, `_domain` … */
      readonly data?: Readonly<Record<string, unknown>> | undefined
    },
    options?: CallOptions,
  ): Promise<CountedPage<Found<S, N, P>>>
  /** Reads a record with all its fields; with `asOf`, as it was at a version or a time. */
  read(
    id: number,
    query?: { readonly asOf?: string | number | undefined },
    options?: CallOptions,
  ): Promise<ReadOf<S, N>>
  /** Reads selected fields of a record and of its related records. */
  fetch<const P extends string = DefaultFields, const R = unknown>(
    id: number,
    selection?: {
      /** Fields and paths over relations, such as `['title', 'notes.text']`. By default all fields. */
      readonly fields?: readonly RelatedPath<S, N, P>[] | undefined
      /** Fields of related records that the program wants to change: these records have a `version`. */
      readonly related?: CheckedRelated<S, N, R> | undefined
    },
    options?: CallOptions,
  ): Promise<Fetched<S, N, P, R>>
  create(data: CreateValues<S, N>, options?: ClientWriteOptions): Promise<ReadOf<S, N>>
  /** Changes a record. Changes of other fields by others are merged; a clash is a conflict. */
  update<const C = unknown, const D = unknown>(
    id: number,
    changes: ChangeFunction<S, N, C> | VersionedChanges<S, N>,
    options?: ClientUpdateOptions<S, N, D>,
  ): Promise<ReadOf<S, N>>
  /** Deletes a record; with a version, only if the record is still at it. */
  remove(id: number, options?: ClientWriteOptions & { readonly version?: number | undefined }): Promise<void>
  /** Lists the changes of a record, the newest first. */
  history(id: number, query?: PageQuery, options?: CallOptions): Promise<Omit<HistoryPage, 'limit' | 'next'>>
  /** Finds deleted records, the newest delete first. `revert` restores them. */
  deleted(query?: DeletedFindQuery, options?: CallOptions): Promise<DeletedList>
  /** Restores the values of an earlier version, also of a deleted record. */
  revert(
    id: number,
    target: { readonly to: number; readonly version?: number | undefined },
    options?: ClientWriteOptions,
  ): Promise<ReadOf<S, N>>
  /** Lists changes of this model in commit order. */
  changes(query?: ChangesQuery, options?: CallOptions): Promise<ChangeList>
  /** Follows the changes of this model. Continues after a lost connection. */
  follow(options?: FollowOptions): AsyncIterableIterator<Change>
  /** Stores a file. Without an id, creates a record for it. */
  upload(
    id: number | undefined,
    upload: FileUpload<S, N>,
    options?: ClientWriteOptions,
  ): Promise<ReadOf<S, N>>
  /** Reads a file; undefined if the field is empty. */
  download(
    id: number,
    field: FileFieldName<S, N>,
    options?: CallOptions & { readonly range?: FileRange | undefined },
  ): Promise<FileDownload | undefined>
  /** Empties a field that holds a file. */
  clear(
    id: number,
    field: FileFieldName<S, N>,
    options: ClientWriteOptions & { readonly version: number },
  ): Promise<ReadOf<S, N>>
}

/** A connection to a service. */
export interface Client<S = AnyModels> {
  model<N extends ModelName<S>>(name: N): ModelClient<S, N>
  /** Runs requests of several models in one transaction. Returns one result for each. */
  batch<const R extends readonly { readonly op: BatchOp; readonly model: ModelName<S> }[]>(
    requests: { readonly [I in keyof R]: CheckedRequest<S, R[I]> },
    options?: ClientWriteOptions & {
      /** Merges updates with the changes of other fields by others. */
      readonly merge?: boolean | undefined
    },
  ): Promise<{ readonly [I in keyof R]: BatchResult<S, R[I]> }>
  /** Lists changes in commit order. */
  changes(query?: ChangesQuery & ModelOption<S>, options?: CallOptions): Promise<ChangeList>
  /** Follows the changes of all models, or of some. Continues after a lost connection. */
  follow(options?: FollowOptions & ModelOption<S>): AsyncIterableIterator<Change>
  /** Logs in now, with a password; otherwise reads the account of the key or of the session. */
  login(options?: CallOptions): Promise<Account>
  /** Ends the session. A later call logs in again. */
  logout(options?: CallOptions): Promise<void>
  /** Sends any other request. A write is repeated after a lost connection only with an `idempotencyKey`. */
  request(method: string, path: string, options?: AnyRequest): Promise<JsonAnswer>
}

/** The parts of any request. */
export interface AnyRequest extends ClientWriteOptions {
  readonly query?: QueryValues | undefined
  /** Sent as JSON, unless it is FormData. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
}
