// App, Context and hooks. Their types refer to each other, so they share a file.
import type { Logger } from 'pino'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Database } from '../../store/engine/database.js'
import type { Referrer } from '../../store/records/references.js'
import type { StagingArea } from '../../store/engine/staging.js'
import type { SearchPlans } from '../../store/find/search-plan.js'
import type { TableSizes } from '../../store/find/table-sizes.js'
import type { Tables } from '../../store/sql/table.js'
import type { ScopeOwner } from './hook-scope.js'
import type { SessionCache } from './session-cache.js'
import type { ChangeWaiters } from './change-waiters.js'
import type { Authorizer } from './authorizer.js'
import type { Settings } from './settings.js'
import type { EgressOptions } from '../egress/call.js'
import type { Principal } from './principal.js'
import type { ReadinessSources } from './readiness.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { Draft } from '../../model/write/draft.js'
import type { GroupableWrite, Queryable, Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import type { SaveOptions, WireRecord } from '../../wire.js'

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
  readonly tableSizes: TableSizes
  readonly searchPlans: SearchPlans
  /** Schema snapshots by model name, as of the start of this node. */
  readonly snapshots: ReadonlyMap<string, string>
  /** Relations of stored models that are not in the catalog of this node. */
  readonly undeclaredReferrers: readonly Referrer[]
  readonly authorizer: Authorizer
  readonly sessionCache: SessionCache
  readonly changeWaiters: ChangeWaiters
  /** Warnings and facts for the body of `/readyz`. */
  readonly readiness: ReadinessSources
  /** Holds large answers in files while clients read them. */
  readonly staging: StagingArea
  /** Options for calls to webhook receivers. */
  readonly outgoing: EgressOptions
  readonly hooks: Hooks
  readonly planWrite: WritePlanner
  readonly clock: Clock
  readonly log: Logger
  /**
   * Resolves when the `afterCommit` hooks have run for every change that was committed before; failed ones wait for a retry. For tests. At
   * once if this process runs no background work.
   */
  settleHooks(): Promise<void>
  /** Stops the delivery of webhooks, hooks after the commit and schedules, so that another App can continue them at once. */
  stopBackgroundWork(): Promise<void>
  close(): Promise<void>
}

/** The first argument of the functions of the service: who acts, on which database handle, and when. */
export interface Context {
  readonly app: App
  readonly principal: Principal
  /** The reader, a snapshot, or the transaction. */
  readonly db: Queryable
  /** The time of the request, or of the attempt of its transaction. Every record that an attempt writes gets its timestamp. */
  readonly now: string
}

/** One attempt of a transaction. */
export interface WriteContext extends Context {
  readonly tx: Transaction
  readonly attempt: TransactionAttempt
  /** The hooks that led to this write, the outermost first. Absent for a write of a request. */
  readonly hookChain?: readonly RunningHook[]
  /** The hash of the session that survives when all other sessions of its user end. */
  readonly keptSessionHash?: string | undefined
}

export interface RunningHook {
  readonly owner: ScopeOwner
  /** True after the hook has returned, or was refused. Its calls end soon. */
  readonly hasEnded: boolean
}

export interface TransactionAttempt {
  /** 1 for the first attempt. */
  readonly number: number
  /** The errors that hooks have reported so far. The attempt goes on, so that the client gets the errors of all records. */
  errors: FieldErrors | undefined
  /** False if an error of this attempt is all that the client can get: every record was checked, or a hook has refused. */
  mayHaveMoreErrors: boolean
  /** The time of all hooks so far, in milliseconds. */
  hookMs: number
}

/** The stages that the write of one draft needs. A plain record needs none of them. */
export interface WritePlan {
  /** Locks the records that the draft names in one order, and reads the record under a lock. */
  readonly locks: boolean
  /** Compares related records and inverse relations that the client sent back with the stored ones. */
  readonly sentBack: boolean
  /** Applies merge patches to the stored values. */
  readonly patches: boolean
  /** Saves the related records inside the draft. */
  readonly related: boolean
  /** Locks the records that its values refer to, and the owners of lists that it leaves or joins. */
  readonly references: boolean
  /** Writes owned lists. */
  readonly lists: boolean
  /** Releases the files that it replaces, and logs them. */
  readonly files: boolean
  /** Checks the permissions on the record before and after the write. */
  readonly permissions: boolean
  /** Takes the next numbers of sequences. */
  readonly sequences: boolean
  readonly hooks: boolean
  /** Reads the record again for the Change and the answer. */
  readonly readsBack: boolean
  /** True without any of these stages: one guarded statement writes the row, and the Change is built from memory. */
  readonly isPlain: boolean
  /** Undefined for a write that needs a transaction of its own. */
  readonly groupable: GroupableWrite | undefined
}

/** Plans the write of a draft. `hasAddition` is true if the transaction adds values to the draft. */
export type WritePlanner = (
  context: Context,
  draft: Draft,
  options: SaveOptions,
  hasAddition?: boolean,
) => WritePlan

/** The hooks of all models. `composeHooks` builds it. */
export interface Hooks {
  /** The hooks of each model, by the name of the model. */
  readonly models: ReadonlyMap<string, ModelHooks>
  /** The hooks that look at whole transactions, in the order in which they run. */
  readonly transaction: readonly TransactionHooks[]
  /** The names of all models that `transaction` is for. */
  readonly transactionModels: ReadonlySet<string>
  /** The names of all models that any hook is for. */
  readonly hookedModels: ReadonlySet<string>
}

/**
 * The hooks of one model. All but `prepare` run inside the transaction: they await nothing but the database, may run again when the
 * transaction is retried, and roll back the whole request if they throw. They run only for a record that changes, and not for one that is
 * restored.
 */
export interface ModelHooks {
  /**
   * Runs before the transaction and before passwords are hashed, once for each draft of the request. Adds errors of fields, or throws.
   * Returns the draft to write, which may have other values.
   */
  readonly prepare?: (context: Context, draft: Draft, errors: FieldErrors) => Promise<Draft>
  /** The fields that `prepare` checks. A mass update cannot set them, because it does not call `prepare`. */
  readonly preparedFields?: readonly string[]
  /** Runs after the related records were saved, and before anything of this record is. Returns the values to write instead of the sent ones. */
  readonly beforeSave?: (
    context: HookContext,
    save: PendingSave,
  ) => Values | undefined | Promise<Values | undefined>
  /** Runs after `beforeSave`, with the values to write. Adds errors of fields, or throws. */
  readonly validate?: (context: HookContext, save: PendingSave, errors: FieldErrors) => Promise<void>
  /** Runs after the row and the owned lists were written. */
  readonly afterSave?: (context: HookContext, save: FinishedSave) => void | Promise<void>
  /** Runs while the record is locked and still exists. */
  readonly beforeRemove?: (context: HookContext, removal: Removal) => void | Promise<void>
  /** Runs after the row and the members of the owned lists were deleted. */
  readonly afterRemove?: (context: HookContext, removal: Removal) => void | Promise<void>
}

/** Hooks that get all Changes of a transaction to records of some models. They do not run if there are none, or if an answer is replayed. */
export interface TransactionHooks {
  readonly models: readonly string[]
  /** Runs inside the transaction, after everything is written and before the Changes are appended to the Log. */
  readonly beforeCommit?: (context: WriteContext, changes: readonly NewChange[]) => Promise<void>
  /** Runs after the commit. An error is logged and does not change the answer. */
  readonly afterCommit?: (context: Context, changes: readonly NewChange[]) => void | Promise<void>
}

/** The state that all writes of a transaction share. `WriteState` implements it. */
export interface SharedWriteState {
  readonly context: WriteContext
  /** True for the writes of a hook, or of a transaction of a program. */
  readonly isNested: boolean
}

export interface HookContext extends WriteContext {
  readonly state: SharedWriteState
  /** Appends a Change of another record, which the hook has written, to the Log with those of the request. */
  readonly addChange: (change: NewChange) => void
}

/** A record that is about to be created or updated. */
export interface PendingSave {
  readonly draft: Draft
  /** The values of the draft, with the references to related records that were saved before. */
  readonly values: Values
  /** The stored record; undefined for a create. */
  readonly before: WireRecord | undefined
}

/** A record that was created or updated. */
export interface FinishedSave {
  readonly draft: Draft
  readonly id: number
  /** The record before the update; undefined for a create. */
  readonly before: WireRecord | undefined
  /** The values that differ from the stored ones. A password always does. */
  readonly changed: Values
}

export interface Removal {
  readonly model: Model
  readonly record: WireRecord
}
