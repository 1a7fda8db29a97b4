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
  /** Milliseconds since any moment, which nobody puts forward or back; those of the process if absent. */
  elapsed?(): number
}

/** Everything that the functions of the service need, as an argument. `create-app.ts` puts it together. */
export interface App {
  readonly settings: Settings
  readonly catalog: Catalog
  readonly db: Database
  readonly tables: Tables
  /** What the tables looked like when this node started. */
  readonly snapshots: ReadonlyMap<string, string>
  /** The relations of stored models that this node does not know. */
  readonly undeclaredReferrers: readonly Referrer[]
  readonly authorizer: Authorizer
  readonly sessionCache: SessionCache
  /** Those who wait for the next Change. */
  readonly changeWaiters: ChangeWaiters
  /** Where large answers wait for their clients. */
  readonly staging: StagingArea
  /** How others are called. */
  readonly outgoing: EgressOptions
  readonly clock: Clock
  readonly log: Logger
  close(): Promise<void>
}
