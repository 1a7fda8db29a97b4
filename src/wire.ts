// Types of the JSON bodies, and the operations that both HTTP and an embedding program use.
import type { FileMetadata } from './model/catalog/file-metadata.js'
import type { UserReference } from './model/definition/record-types.js'
import type { FieldMerge } from './model/write/merge.js'
import type { FindQuery, SearchRequest } from './model/query/search.js'
import type { FieldSelection } from './model/query/selection.js'
import type { Value, Values } from './model/values/value.js'

/** A record in an answer: `id`, `version` and the selected fields. */
export interface WireRecord {
  readonly id: number
  readonly version: number
  readonly [field: string]: unknown
}

export interface Page extends UncountedPage {
  /** The number of all matching records. */
  readonly total: number
}

/** A page of a search with `count: 'none'`. */
export interface UncountedPage {
  readonly offset: number
  readonly limit: number
  /** The sequence number of the last change that the page reflects. A client that follows the feed from here misses nothing. */
  readonly seq: number
  readonly data: readonly WireRecord[]
  /** For a find: the parameters of the next page, if there is one. */
  readonly next?: NextPage | undefined
}

export interface NextPage {
  readonly offset: number
  /** The cursor. With it, concurrent writes cause neither gaps nor repeated records. Absent if the sort values are too long. */
  readonly after?: string | undefined
}

/** Asks for a page without a total, so that the database need not count the matches. */
export interface Uncounted {
  readonly count: 'none'
}

export interface WriteOptions {
  /** A repeated request with the same key gets the first answer again. */
  readonly idempotencyKey?: string
}

export interface SaveOptions extends WriteOptions {
  /** The fields that the answer contains for each record; all by default. */
  readonly returning?: FieldSelection
  /**
   * How to handle an outdated version. `fields` writes over the changes of others if they did not change the sent fields. Otherwise, and
   * by default, the write is a conflict.
   */
  readonly merge?: 'fields'
}

/** In a batch, `merge` applies to its updates. */
export type BatchOptions = Omit<SaveOptions, 'returning'>

export interface UpdateOptions extends SaveOptions {
  /** The version from the `If-Match` header. */
  readonly ifMatch?: number
  /** Objects for JSON fields are merge patches (RFC 7396) of the stored values instead of replacements. */
  readonly patch?: boolean
}

export interface RemoveOptions extends WriteOptions {
  readonly ifMatch?: number
  readonly version?: number
}

/** A deleted record and its last version. */
export interface RemovedRecord {
  readonly id: number
  readonly version: number
}

/** The values to set and the records to change. */
export interface MassUpdate {
  /** The condition as in a search: `criteria` and `operator`, `_domain` … It must not be empty. */
  readonly data?: unknown
  readonly values?: unknown
  /** The number of records that the client expects to match. Nothing is written if it differs. */
  readonly expected?: unknown
}

export interface SearchOptions {
  /** Overrides the maximum limit of the settings. */
  readonly maxPageSize?: number
}

/** A file and the record to store it in. */
export interface Upload {
  /** The id and the version of the record to update, or no id to create one. May contain other fields. */
  readonly data?: unknown
  /** The binary field. Optional if the model has only one. */
  readonly field?: string | undefined
  /** The file name of the client. */
  readonly name?: string | undefined
  readonly content: AsyncIterable<Uint8Array>
}

/** A stored file. Read the content to its end, or stop the iteration: otherwise the file stays open. */
export interface Download extends FileMetadata {
  /** The part of the file in `content`; absent for the whole file. */
  readonly range?: ByteRange | undefined
  readonly content: AsyncIterable<Uint8Array>
}

/** Bytes of a file: the first and the last one, counted from 0. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

export interface DownloadOptions {
  /** Chooses the part of the file to read; undefined for the whole file. The part must be within the file. */
  readonly chooseRange?: (file: FileMetadata) => ByteRange | undefined
}

/** The answer to a write. `replayed` is true if it repeats an earlier answer. */
export interface WriteResult<T> {
  readonly data: T
  readonly replayed: boolean
}

export interface Records {
  find(model: string, query: FindQuery & Uncounted): Promise<UncountedPage>
  find(model: string, query?: FindQuery): Promise<Page>
  search(model: string, request: SearchRequest & Uncounted, options?: SearchOptions): Promise<UncountedPage>
  search(model: string, request?: SearchRequest, options?: SearchOptions): Promise<Page>
  read(model: string, id: number): Promise<WireRecord>
  /** Reads the record at a version or a point in time: RFC 3339, or a date, which means midnight UTC. */
  readAt(model: string, id: number, asOf: unknown): Promise<WireRecord>
  /** Lists the changes of a record, the newest first. Works for deleted records, too. */
  history(model: string, id: number, query?: Pick<FindQuery, 'offset' | 'limit'>): Promise<HistoryPage>
  /** Finds deleted records by the changes that deleted them, the newest first. */
  deleted(model: string, query?: DeletedQuery): Promise<DeletedPage>
  /** Reads selected fields of a record and of its related records. */
  fetch(model: string, id: number, fields?: FieldSelection): Promise<WireRecord>
  /** Returns the values of the record for a create. */
  copy(model: string, id: number): Promise<Values>
  /** Fails if the record, or a related record in the data, is no longer at the given version. */
  verify(model: string, data: unknown): Promise<void>
  /** Lists changes in commit order, after a given sequence number. */
  changes(query?: FeedQuery): Promise<ChangePage>
  create(model: string, data: unknown, options?: SaveOptions): Promise<WriteResult<WireRecord>>
  update(model: string, id: number, data: unknown, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** Creates records without an id and updates the others, in one transaction. */
  save(
    model: string,
    records: readonly unknown[],
    options?: SaveOptions,
  ): Promise<WriteResult<readonly WireRecord[]>>
  /** Makes the same change in all matching records. Returns their number. */
  updateMass(model: string, request: MassUpdate, options?: WriteOptions): Promise<WriteResult<number>>
  remove(model: string, id: number, options?: RemoveOptions): Promise<WriteResult<number>>
  /** Restores the values of an earlier version: `{version, to}`. Restores a deleted record, too. */
  revert(model: string, id: number, data: unknown, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** Deletes records, each given as `{id}` or `{id, version}`, in one transaction. */
  removeAll(
    model: string,
    records: readonly unknown[],
    options?: WriteOptions,
  ): Promise<WriteResult<readonly RemovedRecord[]>>
  /**
   * Runs requests `{op, model, id, version, data, ref}` of any models in one transaction. Each creates, updates, deletes or asserts a
   * record; later requests refer to a created record by its ref. Returns one result for each: the record, the id of a deleted record,
   * or `{id, version}` of an asserted one.
   */
  batch(
    requests: readonly unknown[],
    options?: BatchOptions,
  ): Promise<WriteResult<readonly (WireRecord | number)[]>>
  /** Stores a file in a binary field: updates a record at its version, or creates one. */
  upload(model: string, upload: Upload, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** Reads the file of a binary field; undefined if it is empty. */
  download(model: string, id: number, field: string, options?: DownloadOptions): Promise<Download | undefined>
  /** Empties a binary field. This is an update and needs the version. */
  clear(model: string, id: number, field: string, options: RemoveOptions): Promise<WriteResult<WireRecord>>
}

export type Action = 'create' | 'update' | 'delete'

/** One committed change of one record. */
export interface Change {
  readonly seq: number
  readonly model: string
  readonly id: number
  /** The version of the record after the change. */
  readonly version: number
  readonly action: Action
  readonly on: string
  readonly by: UserReference | null
  readonly changes: Readonly<Record<string, { readonly before: Value; readonly after: Value }>>
  /** The values were purged: `changes` does not contain them. */
  readonly purged?: true
}

export interface HistoryPage extends Omit<Page, 'data' | 'next'> {
  /** May have fewer entries than the limit if they are large. */
  readonly data: readonly Change[]
  /** The offset of the next page, if there is one. */
  readonly next?: number | undefined
}

/** The parameters of a find of deleted records. Numbers may be texts, as in a query string. */
export interface DeletedQuery {
  readonly limit?: unknown
  /** The sequence number of a change: only earlier ones are found. */
  readonly before?: unknown
  /** Search words. Each must occur in at least one text field that a list shows. */
  readonly q?: unknown
}

/** Changes that deleted records, the newest first. Each record is deleted now, and occurs once. */
export interface DeletedPage {
  /** May have fewer entries than the limit, also if there are more pages. */
  readonly data: readonly Change[]
  /** The value of `before` for the next page, if there is one. */
  readonly next?: number | undefined
}

/** The parameters of the feed. Numbers may be texts, as in a query string. */
export interface FeedQuery {
  /** The last sequence number that the client has seen; 0 for the beginning. */
  readonly since?: unknown
  readonly limit?: unknown
  /** Seconds to wait for the next change if there is none. */
  readonly wait?: unknown
  /** One model or several. */
  readonly model?: unknown
}

/** Changes in commit order. */
export interface ChangePage {
  readonly data: readonly Change[]
  /** The value of `since` for the next request. */
  readonly next: number
  /** True if there were no further changes. */
  readonly isLast: boolean
}

/** The progress of a webhook. */
export interface WebhookState {
  readonly id: number
  readonly paused: boolean
  /** The sequence number of the last change that was delivered or skipped. */
  readonly position: number
  /** The sequence number of the last change in the log. */
  readonly last: number
  readonly lag: number
  /** The number of consecutive failures. */
  readonly failures: number
  /** Null if the last delivery succeeded, and while the webhook is paused. */
  readonly nextAttemptOn: string | null
}

/** One attempt to deliver changes to a webhook. */
export interface Delivery {
  /** The `webhook-id` header, which is the same for all attempts of a delivery. */
  readonly message: string
  readonly on: string
  readonly ms: number
  readonly attempt: number
  /** The number of changes, with the sequence numbers of the first and the last of them. */
  readonly changes: number
  readonly first: number | null
  readonly last: number | null
  /** The HTTP status of the answer; null if there was none. */
  readonly status: number | null
  /** Null if the delivery succeeded. */
  readonly error: string | null
}

/** The details of a conflict, with which the client can resolve it. */
export interface ConflictData {
  readonly entityName: string
  readonly entityId: number
  readonly expected: number
  readonly current: number
  readonly theirs: WireRecord
  readonly baseKnown: boolean
  readonly fields: Readonly<Record<string, FieldMerge>>
  readonly mergeable: boolean
  readonly changedBy: UserReference | null
  /** Null if the user may not read it. */
  readonly changedOn: string | null
}

export interface Account {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
}
