// The JSON bodies of the service, and the verbs that both doors offer: HTTP, and a program that embeds it.
import type { UserReference } from './model/definition/define-model.js'
import type { FieldMerge } from './model/write/merge.js'
import type { FindQuery, SearchRequest } from './model/query/search.js'
import type { FieldSelection } from './model/query/selection.js'
import type { Value, Values } from './model/values/value.js'

/** A record as answered: `id`, `version`, the fields that are shown. */
export interface WireRecord {
  readonly id: number
  readonly version: number
  readonly [field: string]: unknown
}

export interface Page {
  readonly offset: number
  readonly limit: number
  /** Every match, not the length of the page. */
  readonly total: number
  /** The number of the last Change that the page shows: whoever follows the feed from here misses nothing. */
  readonly seq: number
  readonly data: readonly WireRecord[]
  /** Of a find: what to ask for beside the same question to get the next page, if there is one. */
  readonly next?: NextPage | undefined
}

export interface NextPage {
  readonly offset: number
  /** Whatever is written meanwhile, no record is left out and none comes twice. Absent where what is sorted by is too long. */
  readonly after?: string | undefined
}

export interface WriteOptions {
  /** The same key with the same request gives the first answer again. */
  readonly idempotencyKey?: string
}

export interface SaveOptions extends WriteOptions {
  /** What the answer is to show of each record; all of it if absent. */
  readonly wanted?: FieldSelection
  /**
   * Of a version that is no longer the current one: `fields` writes on top of what others wrote since, if they changed nothing of
   * what is sent. Else, and if absent, it is a conflict.
   */
  readonly merge?: 'fields'
}

/** Of a batch: `merge` is for its updates. */
export type BatchOptions = Omit<SaveOptions, 'wanted'>

export interface UpdateOptions extends SaveOptions {
  /** The version of `If-Match`. */
  readonly ifMatch?: number
  /** Objects that are sent for json fields change what is there, as RFC 7396 says, instead of taking its place. */
  readonly patch?: boolean
}

export interface RemoveOptions extends WriteOptions {
  readonly ifMatch?: number
  readonly version?: number
}

/** A record that is removed, and the version that it had. */
export interface RemovedRecord {
  readonly id: number
  readonly version: number
}

/** What is to be set, and in which records. */
export interface MassUpdate {
  /** As in a search: `criteria` and `operator`, `_domain` … It must name a condition. */
  readonly data?: unknown
  readonly values?: unknown
  /** How many records the sender believes to match: with another number nothing is written. */
  readonly expected?: unknown
}

export interface SearchOptions {
  /** Instead of the greatest limit of the settings. */
  readonly maxLimit?: number
}

/** A file that is sent, and the record that is to hold it. */
export interface Upload {
  /** With the id and the version of a record that is there; without an id one is made. Other fields may come along. */
  readonly data?: unknown
  /** The binary field. Not needed where the model has only one. */
  readonly field?: string | undefined
  /** What the file is called where it comes from. */
  readonly name?: string | undefined
  readonly content: AsyncIterable<Uint8Array>
}

/** A file as it is kept. Read the content to its end, or stop reading: what is only held stays open. */
export interface Download {
  readonly name: string
  /** By its first bytes. */
  readonly type: string
  readonly size: number
  readonly sha256: string
  readonly content: AsyncIterable<Uint8Array>
}

/** An answer to a write, and whether it was given before. */
export interface WriteResult<T> {
  readonly data: T
  readonly replayed: boolean
}

export interface Records {
  find(model: string, query?: FindQuery): Promise<Page>
  search(model: string, request?: SearchRequest, options?: SearchOptions): Promise<Page>
  read(model: string, id: number): Promise<WireRecord>
  /** The record as it was at a version, or at a moment: RFC 3339, or a date for its beginning in UTC. */
  readAt(model: string, id: number, asOf: unknown): Promise<WireRecord>
  /** The Changes of a record, the newest first, also of one that is gone. */
  history(model: string, id: number, query?: Pick<FindQuery, 'offset' | 'limit'>): Promise<HistoryPage>
  /** A part of a record, and what is wanted of its neighbours. */
  fetch(model: string, id: number, fields?: FieldSelection): Promise<WireRecord>
  /** An unsaved record that holds the same, ready to be created. */
  copy(model: string, id: number): Promise<Values>
  /** Refuses where the record, or one inside of it, is no longer at the version that is named. */
  verify(model: string, data: unknown): Promise<void>
  /** Changes in commit order, after one that was seen. */
  changes(query?: FeedQuery): Promise<ChangePage>
  create(model: string, data: unknown, options?: SaveOptions): Promise<WriteResult<WireRecord>>
  update(model: string, id: number, data: unknown, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** Makes those without an id and changes the others: all of them or none. */
  save(
    model: string,
    records: readonly unknown[],
    options?: SaveOptions,
  ): Promise<WriteResult<readonly WireRecord[]>>
  /** The same change in all records that match; answers how many were changed. */
  updateMass(model: string, request: MassUpdate, options?: WriteOptions): Promise<WriteResult<number>>
  remove(model: string, id: number, options?: RemoveOptions): Promise<WriteResult<number>>
  /** `{version, to}`: an update that makes a record hold what it held; of one that was deleted, its return. */
  revert(model: string, id: number, data: unknown, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** Each is `{id}` or `{id, version}`: all of them are removed, or none. */
  removeAll(
    model: string,
    records: readonly unknown[],
    options?: WriteOptions,
  ): Promise<WriteResult<readonly RemovedRecord[]>>
  /**
   * Each is `{op, model, id, version, data, ref}`: makes, changes, removes or only asserts a record, of whichever model. What one of
   * them makes, later ones name by its ref. All of it is done, or nothing. One answer for each: the record, the id of what is removed, `{id, version}` of what is asserted.
   */
  batch(
    requests: readonly unknown[],
    options?: BatchOptions,
  ): Promise<WriteResult<readonly (WireRecord | number)[]>>
  /** Puts a file into a binary field: an update of a record under its version, or a new record. */
  upload(model: string, upload: Upload, options?: UpdateOptions): Promise<WriteResult<WireRecord>>
  /** What a binary field holds; undefined if it is empty. */
  download(model: string, id: number, field: string): Promise<Download | undefined>
  /** Empties a binary field: an update, too, which names its version. */
  clear(model: string, id: number, field: string, options: RemoveOptions): Promise<WriteResult<WireRecord>>
}

export type Action = 'create' | 'update' | 'delete'

/** One committed change of one record. */
export interface Change {
  readonly seq: number
  readonly model: string
  readonly id: number
  /** The version it made. */
  readonly version: number
  readonly action: Action
  readonly on: string
  readonly by: UserReference | null
  readonly changes: Readonly<Record<string, { readonly before: Value; readonly after: Value }>>
  /** Its values are gone for good: `changes` does not tell them. */
  readonly purged?: true
}

export interface HistoryPage extends Omit<Page, 'data' | 'next'> {
  /** Fewer than were asked for, where they are large. */
  readonly data: readonly Change[]
  /** Where the next page begins, if there is one. */
  readonly next?: number | undefined
}

/** What a reader of the feed may say. Numbers may also be texts, as in a query string. */
export interface FeedQuery {
  /** The last number that was seen; 0 for the beginning. */
  readonly since?: unknown
  readonly limit?: unknown
  /** Seconds to wait for the next Change, if there is none. */
  readonly wait?: unknown
  /** One model or several. */
  readonly model?: unknown
}

/** Changes in commit order. */
export interface ChangePage {
  readonly data: readonly Change[]
  /** Where to go on. */
  readonly next: number
  /** Whether there was nothing after it. */
  readonly isLast: boolean
}

/** How far a webhook has come. */
export interface WebhookState {
  readonly id: number
  readonly paused: boolean
  /** The number of the last Change that was delivered, or was not to be. */
  readonly position: number
  /** The number of the last Change there is. */
  readonly last: number
  readonly lag: number
  /** In a row. */
  readonly failures: number
  /** Null where the last call has arrived, and while it is paused. */
  readonly nextAttemptOn: string | null
}

/** One call of a webhook. */
export interface Delivery {
  /** The `webhook-id` it was sent with: the same for all attempts to deliver the same. */
  readonly message: string
  readonly on: string
  readonly ms: number
  readonly attempt: number
  /** How many there were, and the numbers of the first and the last of them. */
  readonly changes: number
  readonly first: number | null
  readonly last: number | null
  /** Of the answer; null where there was none. */
  readonly status: number | null
  /** Null where it has arrived. */
  readonly error: string | null
}

/** What a refused update says, so that its sender can go on. */
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
  /** Null where it may not be read. */
  readonly changedOn: string | null
}

export interface Account {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
}
