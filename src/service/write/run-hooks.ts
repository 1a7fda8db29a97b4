// Runs the hooks of models. A model without hooks costs one lookup and no await.
import { summarizeError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { hasNestedDrafts, mapDraftsAsync, type Draft } from '../../model/write/draft.js'
import type { NewChange } from '../../store/log/log.js'
import type { Context, HookContext, ModelHooks, TransactionHooks, WriteContext } from '../context/app.js'

/** Validates drafts and the drafts inside them. One VersoError contains the errors of all. */
export async function validateDrafts(
  context: Context,
  model: Model,
  drafts: readonly Draft[],
): Promise<readonly Draft[]> {
  const { models } = context.app.hooks
  if (!drafts.some((draft) => hasNestedDrafts(draft) || models.get(draft.model.name)?.validate)) return drafts
  const errors = new FieldErrors()
  const validate = async (draft: Draft) =>
    (await models.get(draft.model.name)?.validate?.(context, draft, errors)) ?? draft
  const validated: Draft[] = []
  for (const draft of drafts) validated.push(await mapDraftsAsync(draft, validate))
  errors.refuseIfAny(model)
  return validated
}

/** The hooks of records in one attempt of a transaction, and the Changes that they add. */
export class RecordHooks {
  readonly addedChanges: NewChange[] = []
  #hookContext: HookContext | undefined

  constructor(private readonly context: WriteContext) {}

  find({ name }: Model): ModelHooks | undefined {
    return this.context.app.hooks.models.get(name)
  }

  /** The context that hooks get. */
  get hookContext(): HookContext {
    return (this.#hookContext ??= this.#createHookContext())
  }

  #createHookContext(): HookContext {
    const { app, principal, db, now, tx, keptSessionHash } = this.context
    const addChange = (change: NewChange) => {
      this.addedChanges.push(change)
    }
    return { app, principal, db, now, tx, keptSessionHash, addChange }
  }
}

export async function runBeforeCommit(context: WriteContext, changes: readonly NewChange[]): Promise<void> {
  for (const { hooks, own } of findTransactionHooks(context, changes))
    await hooks.beforeCommit?.(context, own)
}

/** The answer is decided: the error of a hook is only logged. */
export async function runAfterCommit(context: Context, changes: readonly NewChange[]): Promise<void> {
  for (const { hooks, own } of findTransactionHooks(context, changes)) {
    try {
      await hooks.afterCommit?.(context, own)
    } catch (error) {
      context.app.log.error(
        summarizeError(error),
        'a hook failed after the commit; the write remains committed',
      )
    }
  }
}

interface MatchingHooks {
  readonly hooks: TransactionHooks
  /** The Changes to the models that the hooks are for. */
  readonly own: readonly NewChange[]
}

function findTransactionHooks({ app }: Context, changes: readonly NewChange[]): MatchingHooks[] {
  return app.hooks.transaction
    .map((hooks) => ({ hooks, own: changes.filter(({ model }) => hooks.models.includes(model)) }))
    .filter(({ own }) => own.length > 0)
}
