// The JSON bodies of the service, and the verbs that both doors offer: HTTP, and a program that embeds it.
import type { UserReference } from './model/definition.js'
import type { FieldMerge } from './model/merge.js'
import type { Query, SearchRequest } from './model/search.js'
import type { Wanted } from './model/selection.js'
import type { Value } from './model/value.js'

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
  readonly data: readonly WireRecord[]
}

export interface WriteOptions {
  /** The same key with the same request gives the first answer again. */
  readonly idempotencyKey?: string
}

export interface UpdateOptions extends WriteOptions {
  /** The version of `If-Match`. */
  readonly ifMatch?: number
}

export interface RemoveOptions extends UpdateOptions {
  readonly version?: number
}

/** An answer to a write, and whether it was given before. */
export interface Written<T> {
  readonly data: T
  readonly replayed: boolean
}

export interface Records {
  find(model: string, query?: Query): Promise<Page>
  search(model: string, request?: SearchRequest): Promise<Page>
  read(model: string, id: number): Promise<WireRecord>
  /** A part of a record, and what is wanted of its neighbours. */
  fetch(model: string, id: number, wanted?: Wanted): Promise<WireRecord>
  create(model: string, data: unknown, options?: WriteOptions): Promise<Written<WireRecord>>
  update(model: string, id: number, data: unknown, options?: UpdateOptions): Promise<Written<WireRecord>>
  remove(model: string, id: number, options?: RemoveOptions): Promise<Written<number>>
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
  readonly changedOn: string
}

export interface Account {
  readonly id: number
  readonly version: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
}
