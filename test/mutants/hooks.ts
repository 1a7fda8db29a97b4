// Mutants of the hooks of models.
import type { Hooks, ModelHooks } from '../../src/service/context/app.js'
import { composeHooks } from '../../src/service/context/hooks.js'

/** Runs the hooks of a record after the commit instead of inside the transaction. */
export function runOutsideTransaction({ models, transaction }: Hooks): Hooks {
  const pending: (() => unknown)[] = []
  const defer =
    <Input extends unknown[]>(hook: ((...input: Input) => unknown) | undefined) =>
    (...input: Input): undefined => {
      if (hook) pending.push(() => hook(...input))
    }
  const deferred = [...models].map(([name, hooks]): [string, ModelHooks] => [
    name,
    {
      ...hooks,
      beforeSave: defer(hooks.beforeSave),
      afterSave: defer(hooks.afterSave),
      beforeRemove: defer(hooks.beforeRemove),
      afterRemove: defer(hooks.afterRemove),
    },
  ])
  const runDeferred = async () => {
    for (const run of pending.splice(0)) await run()
  }
  return composeHooks(deferred, [...transaction, { models: [...models.keys()], afterCommit: runDeferred }])
}

/** Runs no hook. */
export function runWithoutHooks(): Hooks {
  return composeHooks([], [])
}

/** Runs every hook of a record twice. */
export function runHooksTwice({ models, transaction }: Hooks): Hooks {
  const twice = [...models].flatMap(([name, hooks]) => {
    const repeated = Object.fromEntries(Object.entries(hooks).filter(([hook]) => !hook.startsWith('prepare')))
    return [[name, hooks] as const, [name, repeated] as const]
  })
  return composeHooks(twice, transaction)
}
