// Copies of the built service with one mistake in the rules of hooks.
import type { Mistake } from './program.js'

export const HOOK_MISTAKES = {
  'a second write of a record makes another version': {
    file: 'service/write/write-rows.js',
    from: 'if (isAgain)',
    to: 'if (false)',
  },
  'a hook may wait for anything': {
    file: 'service/context/hook-scope.js',
    from: 'idleChecks * ACTIVITY_CHECK_MS >= HOOK_IDLE_LIMIT_MS',
    to: 'false',
  },
  'a hook has no time limit': {
    file: 'service/context/hook-scope.js',
    from: 'HOOK_TIMEOUT_MS = 1_000',
    to: 'HOOK_TIMEOUT_MS = 1e9',
  },
  'a hook that computes has no time limit': {
    file: 'service/context/hook-scope.js',
    from: 'activity.usedMs += performance.now() - startMs',
    to: '',
  },
  'a hook that computes after a call has no time limit': {
    file: 'service/context/hook-scope.js',
    from: 'Math.max(LONGEST_COUNTED_PAUSE_MS, (user + system) / 1_000)',
    to: 'LONGEST_COUNTED_PAUSE_MS',
  },
  'a list of the request removes what hooks have added': {
    file: 'service/write/owned-lists.js',
    from: '!seen.has(member) || wasMember(member) === false',
    to: 'false',
  },
  'a hook sets fields that do not exist': {
    file: 'service/hooks/definition-hooks.js',
    from: 'unknown !== undefined',
    to: 'false',
  },
  'a malformed call of a hook is a mistake of the client': {
    file: 'service/hooks/definition-hooks.js',
    from: "error.kind === 'bad-request'",
    to: 'false',
  },
  'hooks run before references are checked': {
    file: 'service/write/lock-order.js',
    from: 'isRecordVisible(context, { model, id })',
    to: 'true',
  },
  'hooks may call each other without end': {
    file: 'service/hooks/definition-hooks.js',
    from: 'chain.length > MAX_HOOK_DEPTH',
    to: 'chain.length > 100',
  },
  'a hook may use records of outside': {
    file: 'service/context/hook-scope.js',
    from: 'if (!scope || scope.hasEnded)',
    to: 'if (true)',
  },
  'a hook may catch the error of a write': {
    file: 'service/hooks/transaction-session.js',
    from: 'if (!isHarmless(error))',
    to: 'if (false)',
  },
  'a hook may return before its calls have ended': {
    file: 'service/hooks/transaction-session.js',
    from: 'if (this.#hasReturnedEarly)',
    to: 'if (false)',
  },
  'a hook may write the record that is about to be saved': {
    file: 'service/hooks/transaction-calls.js',
    from: 'this.parent.refusePending(each.model, each.key?.id);',
    to: '',
  },
  'a save that changes nothing runs hooks': {
    file: 'service/write/record-writer.js',
    from: 'const hooks = isChanged ? modelHooks : undefined;',
    to: 'const hooks = modelHooks;',
  },
  'a restore runs hooks': {
    file: 'service/write/record-writer.js',
    from: 'const hooks = restored ? undefined : this.#findHooks(model, plan);',
    to: 'const hooks = this.#findHooks(model, plan);',
  },
  'validate gets the values before beforeSave': {
    file: 'service/write/run-hooks.js',
    from: 'this.#validate(hooks.validate, { ...save, values })',
    to: 'this.#validate(hooks.validate, save)',
  },
  'the first record with errors ends the request': {
    file: 'service/write/run-hooks.js',
    from: 'if (isNested)',
    to: 'if (true)',
  },
  'an error of a reference is reported without the rules of lines': {
    file: 'service/write/transaction.js',
    from: 'isPartial: true',
    to: 'isPartial: false',
  },
  'the request cannot write what a hook has written': {
    file: 'service/write/write-state.js',
    from: 'if (done === undefined || this.findBeforeHooks(model, id))',
    to: 'if (done === undefined)',
  },
  'a long call does not count for the time limit': {
    file: 'service/context/hook-scope.js',
    from: 'isSame && activity.mayWaitForLock',
    to: 'activity.isCalling',
  },
  'a removed record is checked again at the end': {
    file: 'service/write/write-state.js',
    from: 'for (const access of this.#listAccess())\n            await access.checkRecord(model, id);',
    to: 'await this.access.checkRecord(model, id);',
  },
  'invalid data is reported without the rules': {
    file: 'service/records/rule-errors.js',
    from: 'const isDraftError = error instanceof InvalidDraftError;',
    to: 'const isDraftError = false;',
  },
  'records of a hook have all permissions': {
    file: 'service/hooks/transaction-records.js',
    from: 'return bind(context.principal)',
    to: 'return bind(withAllPermissions(context.principal))',
  },
  'a hook can change the record in its call': {
    file: 'service/hooks/hook-calls.js',
    from: 'return deepFreeze(toValues(model, { ...lists, ...old, ...values, ...computed }));',
    to: 'return toValues(model, { ...lists, ...old, ...values, ...computed });',
  },
  'an extension runs before its model': {
    file: 'model/definition/extend-model.js',
    from: '[...(before.hooks ? [before.hooks].flat() : []), hooks]',
    to: '[hooks, ...(before.hooks ? [before.hooks].flat() : [])]',
  },
} as const satisfies Readonly<Record<string, Mistake>>

export type HookMistake = keyof typeof HOOK_MISTAKES
