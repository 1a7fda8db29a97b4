// The hooks of an application in its models: their types, and the check of their names.
import { didYouMean } from '../values/did-you-mean.js'
import { isObject } from '../values/value.js'
import type { AnyDefinition, RecordFieldOf, StateOf, UpdateValuesOf } from './record-types.js'
import type { UntypedDefinition } from './untyped-definition.js'
import type { RecordsHandle, TransactionRecords } from './typed-records.js'

/** A user, as hooks and routes see it. */
export interface UserSummary {
  readonly id: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
  /** True if everything is permitted. */
  readonly isAdmin: boolean
}

/** The properties that every hook in the transaction gets. */
interface TransactionCall {
  /** The name of the model. */
  readonly model: string
  /** Null for the service itself, the command line and an import. */
  readonly user: UserSummary | null
  /** The time of the request, which every record of it gets. */
  readonly now: string
  /** 1 in the first attempt of the transaction, 2 if it is retried. */
  readonly attempt: number
  /** Reads and writes in the transaction, with the permissions of the user. `records.asSystem()` permits everything. */
  readonly records: TransactionRecords
}

/** The call of a hook before a record is created or updated. */
export interface PendingSaveCall<M extends AnyDefinition = UntypedDefinition> extends TransactionCall {
  /** Undefined for a new record. */
  readonly id: number | undefined
  /** The stored record; undefined for a new record. */
  readonly before: StateOf<M> | undefined
  /** The record as it will be stored. A list that the request writes is still the stored one. */
  readonly after: StateOf<M>
  /** The fields whose values change, computed fields excepted. */
  readonly changed: ReadonlySet<RecordFieldOf<M>>
}

/** The call of a hook after a record was created or updated, with its owned lists. */
export interface SaveCall<M extends AnyDefinition = UntypedDefinition> extends PendingSaveCall<M> {
  readonly id: number
}

export interface RemoveCall<M extends AnyDefinition = UntypedDefinition> extends TransactionCall {
  readonly id: number
  /** The record that is removed. */
  readonly before: StateOf<M>
}

/** The call of a hook for a committed change. */
export interface CommitCall<M extends AnyDefinition = UntypedDefinition> {
  readonly model: string
  readonly id: number
  readonly action: 'create' | 'update' | 'delete'
  /** The version of the record after the change. */
  readonly version: number
  /** The number of the change in the change log. The same change always has the same number. */
  readonly seq: number
  /** The time of the change. */
  readonly on: string
  /** Undefined after a create, and where the change log no longer has it. */
  readonly before: StateOf<M> | undefined
  /** The record at the version of the change, which may be older than the current one; undefined after a delete. */
  readonly after: StateOf<M> | undefined
  readonly changed: ReadonlySet<RecordFieldOf<M>>
  /** The author of the change. Null for the service itself, the command line, an import, and an account that was deleted. */
  readonly user: UserSummary | null
  /** 1 in the first attempt, higher after failures. */
  readonly attempt: number
  /** Reads and writes with the current permissions of the author. `records.asSystem()` permits everything. */
  readonly records: RecordsHandle
  /** Aborts when the run has ended, also because its time is over or the service stops. From then on, `records` refuse every call. */
  readonly signal: AbortSignal
}

/** Messages by field, such as `{ end: 'must not be before the start' }`. */
export type FieldMessages<M extends AnyDefinition = UntypedDefinition> = {
  readonly [K in RecordFieldOf<M>]?: string | undefined
}

type MaybePromise<T> = T | Promise<T>

export type CommitHook<M extends AnyDefinition = UntypedDefinition> = (
  call: CommitCall<M>,
) => MaybePromise<unknown>

/**
 * The hooks of a model. All but `afterCommit` run in the transaction of the write: they await nothing but `records`, have one second, may run
 * again when the transaction is retried, and refuse the whole write if they throw.
 */
export interface HooksOf<M extends AnyDefinition = UntypedDefinition> {
  /** Runs first. Returns values to set, or nothing. */
  readonly beforeSave?: (call: PendingSaveCall<M>) => MaybePromise<UpdateValuesOf<M> | undefined>
  /** Runs after all `beforeSave`, on the record as it will be stored. Returns messages by field, or nothing. */
  readonly validate?: (call: PendingSaveCall<M>) => MaybePromise<FieldMessages<M> | undefined>
  /** Runs after the record and its owned lists were written. */
  readonly afterSave?: (call: SaveCall<M>) => MaybePromise<void>
  /** Runs while the record still exists. */
  readonly beforeRemove?: (call: RemoveCall<M>) => MaybePromise<void>
  /** Runs after the record and the members of its owned lists were removed. */
  readonly afterRemove?: (call: RemoveCall<M>) => MaybePromise<void>
  /**
   * Runs after the commit, from the change log: at least once, in order for each record, on one node, also after a crash. Several functions
   * need names: `{ sendMail: async (call) => … }`. The service remembers by name what has run.
   */
  readonly afterCommit?: CommitHook<M> | Readonly<Record<string, CommitHook<M>>>
}

export const TRANSACTION_HOOK_NAMES = [
  'beforeSave',
  'validate',
  'afterSave',
  'beforeRemove',
  'afterRemove',
] as const
export type TransactionHookName = (typeof TRANSACTION_HOOK_NAMES)[number]
export const HOOK_NAMES = [...TRANSACTION_HOOK_NAMES, 'afterCommit'] as const
export type HookName = (typeof HOOK_NAMES)[number]

/**
 * Checks the hooks of a definition: one set of them, or a list of sets if extensions have added some. Reports misnamed hooks, and hooks that
 * are not functions.
 */
export function checkHookSets(hooks: unknown, report: (error: string) => void): readonly HooksOf[] {
  const sets = hooks === undefined ? [] : [hooks].flat()
  for (const set of sets) checkHooks(set, report)
  const names = sets
    .filter((set): set is HooksOf => isObject(set))
    .flatMap(({ afterCommit }) => listCommitHooks(afterCommit).map(({ name }) => name))
  const repeated = names.find((name, index) => names.indexOf(name) < index)
  if (repeated !== undefined)
    report(
      `hooks: there are two afterCommit hooks with the name "${repeated}". Give one of them another name: afterCommit: { sendMail: (call) => … }`,
    )
  return sets as readonly HooksOf[]
}

/** The name of an `afterCommit` that is a single function. */
const ONLY_COMMIT_HOOK = 'afterCommit'

export interface NamedCommitHook {
  readonly name: string
  readonly run: CommitHook
}

/** Lists the functions of an `afterCommit` with their names. */
export function listCommitHooks(afterCommit: unknown): NamedCommitHook[] {
  if (typeof afterCommit === 'function') return [{ name: ONLY_COMMIT_HOOK, run: afterCommit as CommitHook }]
  if (!isObject(afterCommit)) return []
  return Object.entries(afterCommit).map(([name, run]) => ({ name, run: run as CommitHook }))
}

function checkHooks(hooks: unknown, report: (error: string) => void): void {
  if (!isObject(hooks)) {
    report('hooks must be an object such as { beforeSave: (call) => … }')
    return
  }
  for (const [name, hook] of Object.entries(hooks)) {
    if (!HOOK_NAMES.some((known) => known === name))
      report(`hooks: unknown hook "${name}"${didYouMean(name, HOOK_NAMES)}`)
    else if (name === 'afterCommit' && isObject(hook)) checkCommitHooks(hook, report)
    else if (hook !== undefined && typeof hook !== 'function')
      report(`hooks: ${name} must be a function${describeJsonHook(hook)}`)
  }
}

function checkCommitHooks(hooks: Readonly<Record<string, unknown>>, report: (error: string) => void): void {
  for (const [name, hook] of Object.entries(hooks)) {
    if (!/^[A-Za-z]\w{0,58}$/.test(name))
      report(`hooks: the name "${name}" in afterCommit must be a letter, followed by letters, digits or _`)
    if (typeof hook !== 'function')
      report(`hooks: afterCommit.${name} must be a function${describeJsonHook(hook)}`)
  }
}

function describeJsonHook(hook: unknown): string {
  return typeof hook === 'string'
    ? '. JSON and XML cannot hold functions: write extendModel({ name, hooks }) in a TypeScript file'
    : ''
}
