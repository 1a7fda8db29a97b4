import type { Model } from '../../model/definition/model.js'
import type { Hooks, ModelHooks, TransactionHooks } from './app.js'

/** Transaction hooks run in the order of the list, on every node: they lock rows, so another order could deadlock. */
export function composeHooks(
  models: readonly (readonly [string, ModelHooks])[],
  transaction: readonly TransactionHooks[],
): Hooks {
  const transactionModels = new Set(transaction.flatMap((hooks) => hooks.models))
  const hookedModels = new Set([...models.map(([name]) => name), ...transactionModels])
  return { models: new Map(models), transaction, transactionModels, hookedModels }
}

/**
 * True if hooks check records of this model. Such a record is written only at the version that the client names, never merged, because the
 * checks before the transaction read the stored record.
 */
export function hasRules({ models, transactionModels }: Hooks, { name }: Model): boolean {
  const hooks = models.get(name)
  return hooks?.validate !== undefined || hooks?.beforeSave !== undefined || transactionModels.has(name)
}
