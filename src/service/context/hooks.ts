import type { Model } from '../../model/definition/model.js'
import type { Hooks, ModelHooks, TransactionHooks } from './app.js'

/** Transaction hooks run in the order of the list, on every node: they lock rows, so another order could deadlock. */
export function composeHooks(
  models: readonly (readonly [string, ModelHooks])[],
  transaction: readonly TransactionHooks[],
): Hooks {
  const transactionModels = new Set(transaction.flatMap((hooks) => hooks.models))
  const hookedModels = new Set([...models.map(([name]) => name), ...transactionModels])
  const composed = new Map<string, ModelHooks>()
  for (const [name, hooks] of models) {
    const before = composed.get(name)
    composed.set(name, before ? chainHooks(before, hooks) : hooks)
  }
  return { models: composed, transaction, transactionModels, hookedModels }
}

/** Runs the hooks of both, the first ones first. */
function chainHooks(first: ModelHooks, second: ModelHooks): ModelHooks {
  if (first.prepare && second.prepare) throw new Error('a model has two hooks that prepare its drafts')
  const chain =
    <A extends readonly unknown[]>(
      one: ((...args: A) => unknown) | undefined,
      other: ((...args: A) => unknown) | undefined,
    ) =>
    async (...args: A) => {
      await one?.(...args)
      await other?.(...args)
    }
  return {
    ...second,
    ...first,
    beforeSave: async (context, save) => {
      const values = (await first.beforeSave?.(context, save)) ?? save.values
      return (await second.beforeSave?.(context, { ...save, values })) ?? values
    },
    validate: chain(first.validate, second.validate),
    afterSave: chain(first.afterSave, second.afterSave),
    beforeRemove: chain(first.beforeRemove, second.beforeRemove),
    afterRemove: chain(first.afterRemove, second.afterRemove),
  }
}

/**
 * True if hooks check records of this model before the transaction. Such a record is written only at the version that the client names,
 * never merged, because these checks read the stored record.
 */
export function isCheckedBeforehand({ models, transactionModels }: Hooks, { name }: Model): boolean {
  return models.get(name)?.prepare !== undefined || transactionModels.has(name)
}
