// Runs the hooks of models. A model without hooks costs one lookup and no await.
import { summarizeError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { hasNestedDrafts, mapDraftsAsync, type Draft } from '../../model/write/draft.js'
import type { Values } from '../../model/values/value.js'
import type { NewChange } from '../../store/log/log.js'
import type {
  Context,
  FinishedSave,
  HookContext,
  ModelHooks,
  PendingSave,
  SharedWriteState,
  TransactionHooks,
  WriteContext,
} from '../context/app.js'

/** Prepares drafts and the drafts inside them. One VersoError contains the errors of all. */
export async function prepareDrafts(
  context: Context,
  model: Model,
  drafts: readonly Draft[],
): Promise<readonly Draft[]> {
  const { models } = context.app.hooks
  if (!drafts.some((draft) => hasNestedDrafts(draft) || models.get(draft.model.name)?.prepare)) return drafts
  const errors = new FieldErrors()
  const prepare = async (draft: Draft) =>
    (await models.get(draft.model.name)?.prepare?.(context, draft, errors)) ?? draft
  const prepared: Draft[] = []
  for (const draft of drafts) prepared.push(await mapDraftsAsync(draft, prepare))
  errors.refuseIfAny(model)
  return prepared
}

/** The hooks of records in one attempt of a transaction, for one principal. */
export class RecordHooks {
  #hookContext: HookContext | undefined

  constructor(
    private readonly state: SharedWriteState,
    /** Receives the Changes that hooks add. */
    private readonly addedChanges: NewChange[],
  ) {}

  find({ name }: Model): ModelHooks | undefined {
    return this.state.context.app.hooks.models.get(name)
  }

  /** Runs the hooks before a save. Returns the values to write. */
  async runBeforeSave(hooks: ModelHooks, save: PendingSave): Promise<Values> {
    const values = (await hooks.beforeSave?.(this.hookContext, save)) ?? save.values
    if (hooks.validate) await this.#validate(hooks.validate, { ...save, values })
    return values
  }

  /** Runs no hook after a record with errors: the transaction is rolled back, and the hook would work with values that are not valid. */
  async runAfterSave(hooks: ModelHooks, save: FinishedSave): Promise<void> {
    const { errors } = this.state.context.attempt
    if (!errors || errors.count === 0) await hooks.afterSave?.(this.hookContext, save)
  }

  /** The errors of a record that a hook writes are not those of the request, so they end the hook at once. */
  async #validate(validate: Required<ModelHooks>['validate'], save: PendingSave): Promise<void> {
    const { isNested, context } = this.state
    const errors = isNested ? new FieldErrors() : (context.attempt.errors ??= new FieldErrors())
    await validate(this.hookContext, save, errors)
    if (isNested) errors.refuseIfAny(save.draft.model)
  }

  /** True for the writes of a hook, or of a transaction of a program. */
  get areNested(): boolean {
    return this.state.isNested
  }

  /** The context that hooks get. */
  get hookContext(): HookContext {
    return (this.#hookContext ??= this.#createHookContext())
  }

  #createHookContext(): HookContext {
    const addChange = (change: NewChange) => {
      this.addedChanges.push(change)
    }
    return { ...this.state.context, state: this.state, addChange }
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
