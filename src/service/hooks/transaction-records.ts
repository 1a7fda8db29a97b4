// Runs a hook, or the work of a program, with records that read and write in its transaction.
import type { AnyDefinition } from '../../model/definition/record-types.js'
import type { TransactionRecords } from '../../model/definition/typed-records.js'
import type { Context } from '../context/context.js'
import { runInScope, type ScopeOwner } from '../context/hook-scope.js'
import type { Principal } from '../context/principal.js'
import { writeInTransaction } from '../write/transaction.js'
import { WriteState } from '../write/write-state.js'
import { markSystemErrors } from './system-errors.js'
import { TransactionCalls } from './transaction-calls.js'
import { TransactionSession } from './transaction-session.js'

const PROGRAM: ScopeOwner = { name: 'The transaction', kind: 'transaction' }

/** Runs the work of a program in one transaction, with the permissions of the principal. */
export async function runInTransaction<T>(
  context: Context,
  work: (records: TransactionRecords) => Promise<T>,
): Promise<T> {
  let result: { readonly value: T } | undefined
  await writeInTransaction(context, { action: 'batch' }, {}, async ({ context: writing, changes }) => {
    // The errors of its calls reach the program as they are: there are no further records whose rules could add errors.
    writing.attempt.mayHaveMoreErrors = false
    const state = new WriteState(writing)
    result = { value: await runWithRecords(state, PROGRAM, work) }
    const finish = () => state.finish()
    changes.push(...(await (writing.principal.permissions ? finish() : markSystemErrors(finish))))
    return null
  })
  if (!result) throw new Error('a transaction was committed without a result')
  return result.value
}

/**
 * Runs a hook, or the work of a program, with records of its own. Waits for its calls, and refuses further ones. `translate` gets its error;
 * `isOfCall` is true for the error of a call of its records.
 */
export async function runWithRecords<T>(
  state: WriteState,
  owner: ScopeOwner,
  run: (records: TransactionRecords) => T | Promise<T>,
  translate: (error: unknown, isOfCall: boolean) => unknown = (error) => error,
): Promise<T> {
  const session = new TransactionSession(owner, state.context)
  const records = createTransactionRecords(state, session)
  try {
    const result = await runInScope(owner, session, () => session.watchReturn(run(records)))
    await session.end()
    return result
  } catch (error) {
    // The database may retry the transaction, even if the owner has thrown another error.
    if (session.engineFailure) throw session.engineFailure.error
    throw translate(error, session.hasFailedWith(error))
  } finally {
    await session.close()
    // The time of a hook includes that of the hooks of its calls.
    if (owner.kind === 'hook' && !state.context.hookChain) state.context.attempt.hookMs += session.usedMs
  }
}

function createTransactionRecords(parent: WriteState, session: TransactionSession): TransactionRecords {
  const { context } = parent
  const chain = session.owner.kind === 'hook' ? { hookChain: [...(context.hookChain ?? []), session] } : {}
  const bind = (principal: Principal): TransactionRecords => {
    const calls = new TransactionCalls({ ...context, ...chain, principal }, parent)
    const of = (model: AnyDefinition | string) => calls.bindModel(session, readModelName(model))
    return { of, asSystem: () => bind(withAllPermissions(principal)) }
  }
  return bind(context.principal)
}

/** The user stays the author of changes. Without a permissions version, an answer with all fields is never replayed to the user. */
export function withAllPermissions(principal: Principal): Principal {
  return { ...principal, permissions: undefined, permissionsVersion: undefined }
}

/** Reads the name of a model that is given by its definition or by its name. */
export function readModelName(model: AnyDefinition | string): string {
  const name: unknown =
    typeof model === 'string' ? model : (model as Partial<AnyDefinition> | undefined)?.name
  if (typeof name === 'string') return name
  throw new TypeError('of() takes a model that defineModel returned, or the name of a model')
}
