// The errors of rules beside other errors: if sent data is invalid, `validate` still runs, so that a client gets all errors at once.
import { VersoError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { InvalidDraftError, listAllDrafts, type Draft } from '../../model/write/draft.js'
import type { Values } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import { createAttempt, withTransaction, type Context } from '../context/context.js'
import { WriteState } from '../write/write-state.js'

/** Reads sent data, or writes drafts. If they are invalid, the error also contains the errors of the rules. */
export async function withRuleErrors<T>(
  context: Context,
  run: () => Promise<T>,
  drafts?: readonly Draft[],
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw await addRuleErrors(context, error, drafts)
  }
}

/** Returns the error with those of the rules, unless it contains them already. `written` are the drafts of a write. */
export async function addRuleErrors(
  context: Context,
  error: unknown,
  written: readonly Draft[] = [],
): Promise<unknown> {
  const isDraftError = error instanceof InvalidDraftError
  if (!isDraftError && !(error instanceof VersoError && error.details.isPartial)) return error
  const { app } = context
  const drafts = (isDraftError ? error.drafts : written)
    .flatMap(listAllDrafts)
    .filter(({ model }) => app.hooks.models.get(model.name)?.validate)
  if (drafts.length === 0) return error
  const errors = new FieldErrors()
  errors.addAll(error)
  // Hooks need a transaction. The error at its end rolls it back.
  return app.db
    .transaction(async (tx): Promise<never> => {
      const state = new WriteState(withTransaction(context, tx, createAttempt(1, errors)))
      for (const draft of drafts) await addErrorsOfDraft(state, draft, errors)
      throw errors.toError(isDraftError ? error.model : undefined)
    })
    .catch((thrown: unknown) => (thrown instanceof VersoError && thrown.kind === 'invalid' ? thrown : error))
}

/** A value that is invalid is absent from the draft, so a hook may fail. The client gets the errors of the data in any case. */
async function addErrorsOfDraft(state: WriteState, draft: Draft, errors: FieldErrors): Promise<void> {
  const { context, access, hooks } = state
  const { model, key } = draft
  const { permissions } = context.principal
  if (permissions && !permissions.of(model).can(key ? 'update' : 'create')) return
  const table = context.app.tables.of(model)
  const before = key && (await store.readById(context.tx, table, key.id))
  if (key && (before?.version !== key.version || !(await access.evaluate('update', table, key.id)).isVisible))
    return
  const { beforeSave, validate } = hooks.find(model) ?? {}
  const found = new FieldErrors()
  try {
    const save = { draft, values: withoutInvalid(draft, errors), before }
    const values = (await beforeSave?.(hooks.hookContext, save)) ?? save.values
    await validate?.(hooks.hookContext, { ...save, values }, found)
  } catch {
    // The errors of the data explain why the record is not written.
  }
  if (found.hasHidden) errors.addHidden()
  for (const [field, message] of found) if (!isOwnerField(state, draft, field)) errors.add(field, message)
}

/** Rules get no value that the client gets an error for, such as a reference to a record that the user may not see. */
function withoutInvalid({ values, path }: Draft, errors: FieldErrors): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !errors.has(path + name)))
}

/** True for the reference of a list member to its owner, which is not known before the owner is written. */
function isOwnerField({ context }: WriteState, { model, path }: Draft, name: string): boolean {
  const field = model.fields.get(name.slice(path.length))
  return path !== '' && field !== undefined && context.app.catalog.findOwner(model, field) !== undefined
}
