// The hooks of the application, as hooks of the record pipeline.
import { VersoError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import {
  TRANSACTION_HOOK_NAMES,
  type HooksOf,
  type TransactionHookName,
} from '../../model/definition/hooks.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject, type Values } from '../../model/values/value.js'
import { readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import type { FinishedSave, HookContext, ModelHooks, PendingSave, Removal } from '../context/app.js'
import { findCheckErrors } from './record-checks.js'
import { WriteState } from '../write/write-state.js'
import {
  buildPendingCall,
  buildRemoveCall,
  buildSaveCall,
  readPendingState,
  type CallContext,
} from './hook-calls.js'
import { concealSystemError } from './system-errors.js'
import { runWithRecords } from './transaction-records.js'

/** Hooks that write records run the hooks of those, at most to this depth. */
const MAX_HOOK_DEPTH = 8
/** The limit for all hooks of one transaction together: on SQLite other writers wait for it. */
const ALL_HOOKS_TIMEOUT_MS = 10_000
const NOTHING_CHANGED = '; nothing was changed'

/** Adapts the hooks of all models that have some, and their declarative checks. */
export function createDefinitionHooks({ storedModels }: Catalog): (readonly [string, ModelHooks])[] {
  return storedModels.filter(runsInTransaction).map((model) => [model.name, adaptHooks(model)] as const)
}

function runsInTransaction({ hooks, checks }: Model): boolean {
  return checks.length > 0 || TRANSACTION_HOOK_NAMES.some((name) => hooks.some((set) => set[name]))
}

function adaptHooks(model: Model): ModelHooks {
  const { hooks } = model
  const has = (name: TransactionHookName) => hooks.some((set) => set[name])
  return {
    ...(has('beforeSave') ? { beforeSave: (context, save) => runBeforeSave(context, hooks, save) } : {}),
    ...(has('validate') || model.checks.length > 0
      ? { validate: (context, save, errors) => runValidate(context, hooks, save, errors) }
      : {}),
    ...(has('afterSave') ? { afterSave: (context, save) => runAfterSave(context, hooks, save) } : {}),
    ...(has('beforeRemove')
      ? { beforeRemove: (context, removal) => runRemoveHooks(context, hooks, removal, 'beforeRemove') }
      : {}),
    ...(has('afterRemove')
      ? { afterRemove: (context, removal) => runRemoveHooks(context, hooks, removal, 'afterRemove') }
      : {}),
  }
}

/** Each hook sees the values of the one before. */
async function runBeforeSave(
  context: HookContext,
  hooks: readonly HooksOf[],
  save: PendingSave,
): Promise<Values | undefined> {
  const { draft } = save
  let values: Values | undefined
  for (const { beforeSave } of hooks) {
    if (!beforeSave) continue
    const current = values ? { ...save, values } : save
    const set = await runHook(context, draft.model, 'beforeSave', (call) =>
      whilePending(call, draft.key?.id, () => beforeSave(buildPendingCall(call, current))),
    )
    if (set) values = { ...current.values, ...readSetValues(context, save, set) }
  }
  return values
}

/** Reads the values that a hook returns, as the service itself: the permissions of the user do not limit them. */
function readSetValues(context: HookContext, { draft }: PendingSave, set: unknown): Values {
  const { app, now } = context
  const { model } = draft
  if (!isObject(set))
    throw new Error(`${model.name}.beforeSave must return an object of values, or nothing to change nothing`)
  const unknown = Object.keys(set).find((name) => !model.fields.has(name))
  if (unknown !== undefined)
    throw new Error(
      `${model.name}.beforeSave must return values for fields of the model, not for "${unknown}"${didYouMean(unknown, [...model.fields.keys()])}`,
    )
  try {
    const key = { id: draft.key?.id ?? 1, version: 0 }
    const { values, lists, related } = readUpdateDraft(app.catalog, model, { data: set, key }, now)
    const password = Object.keys(values).find((name) => model.fields.get(name)?.secret === 'password')
    if (password !== undefined)
      throw new Error(
        `${model.name}.beforeSave cannot return ${password}: passwords are hashed before the transaction`,
      )
    const [list] = [...lists.keys(), ...related.keys()]
    const ignored = Object.keys(set).find(
      (name) => !Object.hasOwn(values, name) && !lists.has(name) && !related.has(name),
    )
    if (ignored !== undefined)
      throw new Error(`${model.name}.beforeSave cannot set ${ignored}: the service sets it, or it is a file`)
    if (list === undefined) return values
    throw new Error(
      `${model.name}.beforeSave cannot return ${list}: return a reference as { id }, and write members of a list with records in afterSave`,
    )
  } catch (error) {
    const invalid = error instanceof VersoError ? error.details.errors : undefined
    if (!invalid) throw error
    const errors = new FieldErrors()
    for (const message of Object.entries(invalid)) addMessage(context, draft, message, errors)
    const shown = errors.toError(model)
    shown.origin = { hook: `${model.name}.beforeSave`, isThrown: false }
    throw shown
  }
}

async function runValidate(
  context: HookContext,
  hooks: readonly HooksOf[],
  save: PendingSave,
  errors: FieldErrors,
): Promise<void> {
  const { draft } = save
  const { model } = draft
  for (const { validate } of hooks) {
    if (!validate) continue
    const messages = await runHook(context, model, 'validate', (call) =>
      whilePending(call, draft.key?.id, () => validate(buildPendingCall(call, save))),
    )
    for (const [field, message] of readMessages(model, messages))
      addMessage(context, draft, [field, message], errors)
  }
  if (model.checks.length === 0) return
  for (const { field, message } of await findCheckErrors(context, model, readPendingState(context, save)))
    addMessage(context, draft, [field, message], errors)
}

/** The error about a field that the principal may not see does not name it. */
function addMessage(
  { principal: { permissions } }: HookContext,
  { model, path }: Draft,
  [name, message]: readonly [string, string],
  errors: FieldErrors,
): void {
  const field = model.fields.get(name.replace(/[.[].*$/s, ''))
  if (!field) errors.add(path + name, message)
  else if (!permissions || permissions.isVisible(model, field))
    errors.addOfRule({ model, field, path: path + name, message })
  else errors.addHidden()
}

function readMessages(model: Model, messages: unknown): (readonly [string, string])[] {
  if (messages === undefined || messages === null) return []
  if (!isObject(messages))
    throw new Error(`${model.name}.validate must return messages by field, or nothing if all is well`)
  return Object.entries(messages).flatMap(([field, message]): (readonly [string, string])[] => {
    if (message === undefined) return []
    if (!model.fields.has(field) || typeof message !== 'string' || message === '')
      throw new Error(
        `${model.name}.validate must return a string for a field of the model, not for "${field}"${didYouMean(field, [...model.fields.keys()])}`,
      )
    return [[field, message]]
  })
}

async function runAfterSave(
  context: HookContext,
  hooks: readonly HooksOf[],
  save: FinishedSave,
): Promise<void> {
  const { draft, id } = save
  for (const { afterSave } of hooks) {
    if (!afterSave) continue
    // An earlier hook may have changed the record.
    const record = await requireState(context).readRecord(draft.model, id)
    await runHook(context, draft.model, 'afterSave', (call) => afterSave(buildSaveCall(call, save, record)))
  }
}

async function runRemoveHooks(
  context: HookContext,
  hooks: readonly HooksOf[],
  removal: Removal,
  name: 'beforeRemove' | 'afterRemove',
): Promise<void> {
  for (const { [name]: hook } of hooks)
    if (hook) await runHook(context, removal.model, name, (call) => hook(buildRemoveCall(call, removal)))
}

async function whilePending<T>(
  { context, model }: CallContext,
  id: number | undefined,
  run: () => T | Promise<T>,
): Promise<T> {
  return requireState(context).whilePending(model, id, async () => run())
}

/** Runs one hook with records of its own. */
async function runHook<T>(
  context: HookContext,
  model: Model,
  name: TransactionHookName,
  run: (call: CallContext) => T | Promise<T>,
): Promise<T> {
  const hook = `${model.name}.${name}`
  const chain = [...(context.hookChain ?? []).map(({ owner }) => owner.name), hook]
  refuseHook(context, chain)
  // A hook may read other records, which no lock separates from the members of a group commit.
  context.tx.requireExclusive()
  return runWithRecords(
    requireState(context),
    { name: hook, kind: 'hook' },
    (records) => run({ context, model, records }),
    (error, isOfCall) => {
      context.attempt.mayHaveMoreErrors = false
      return translateHookError(context, hook, { error, isOfCall })
    },
  )
}

interface HookFailure {
  readonly error: unknown
  readonly isOfCall: boolean
}

/** Returns the error as the request fails with it. */
function translateHookError(
  { principal }: HookContext,
  hook: string,
  { error, isOfCall }: HookFailure,
): unknown {
  const isVersoError = error instanceof VersoError
  if (isVersoError) error.origin ??= { hook, isThrown: !isOfCall }
  // A malformed call is a mistake of the hook, not of the client.
  const isDefect = !isVersoError || (error.kind === 'bad-request' && error.origin?.isThrown === false)
  if (isDefect) return new Error(`${hook} failed`, { cause: error })
  return concealSystemError(error, principal, NOTHING_CHANGED)
}

/** Refuses a hook that is too deep, whose caller was refused, or whose request has used up the time of all its hooks. */
function refuseHook({ hookChain = [], attempt }: HookContext, chain: readonly string[]): void {
  if (chain.length > MAX_HOOK_DEPTH)
    throw new VersoError(
      'hook-failed',
      `Hooks write records whose hooks write records, more than ${MAX_HOOK_DEPTH} levels deep: ${chain.join(' → ')}; nothing was changed`,
    )
  if (attempt.hookMs >= ALL_HOOKS_TIMEOUT_MS)
    throw new VersoError(
      'hook-failed',
      `The hooks of this request did not finish within ${ALL_HOOKS_TIMEOUT_MS / 1_000} s. Write fewer records in one request; nothing was changed`,
    )
  const ended = hookChain.find(({ hasEnded }) => hasEnded)
  if (ended) throw new Error(`${ended.owner.name} has ended, and its calls with it`)
}

function requireState({ state }: HookContext): WriteState {
  if (state instanceof WriteState) return state
  throw new Error('a hook runs without the state of its transaction')
}
