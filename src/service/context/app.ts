import type { Logger } from 'pino'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Database } from '../../store/engine/database.js'
import type { Referrer } from '../../store/records/references.js'
import type { StagingArea } from '../../store/engine/staging.js'
import type { Tables } from '../../store/sql/table.js'
import type { SessionCache } from './session-cache.js'
import type { ChangeWaiters } from './change-waiters.js'
import type { Authorizer } from './authorizer.js'
import type { Settings } from './settings.js'
import type { EgressOptions } from '../egress/call.js'

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds of a monotonic clock with any origin. `performance.now` by default. */
  elapsed?(): number
}

/** The dependencies of the service, passed as an argument. `createApp` builds it. */
export interface App {
  readonly settings: Settings
  readonly catalog: Catalog
  readonly db: Database
  readonly tables: Tables
  /** Schema snapshots by model name, as of the start of this node. */
  readonly snapshots: ReadonlyMap<string, string>
  /** Relations of stored models that are not in the catalog of this node. */
  readonly undeclaredReferrers: readonly Referrer[]
  readonly authorizer: Authorizer
  readonly sessionCache: SessionCache
  readonly changeWaiters: ChangeWaiters
  /** Holds large answers in files while clients read them. */
  readonly staging: StagingArea
  /** Options for calls to webhook receivers. */
  readonly outgoing: EgressOptions
  readonly clock: Clock
  readonly log: Logger
  close(): Promise<void>
}
