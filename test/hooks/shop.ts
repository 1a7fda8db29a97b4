// Models with every hook. The hooks note their calls, write a record in the transaction, and fail on demand.
import { VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { TRANSACTION_HOOK_NAMES, type HookName, type HooksOf } from '../../src/model/definition/hooks.js'
import type { ModelSource } from '../../src/model/catalog/catalog.js'

export const ORDER = 'shop.Order'
export const LINE = 'shop.Line'
export const TRACE = 'shop.Trace'

export interface HookRun {
  readonly model: string
  readonly hook: HookName
  readonly id: number | undefined
  readonly attempt: number
}

export type Failure = 'refuse' | 'crash'

/** The calls of hooks of one service, and the hook that fails. */
export class HookLog {
  runs: HookRun[] = []
  failing: { readonly call: string; readonly how: Failure } | undefined

  /** The calls such as `shop.Order beforeSave`, without those after the commit. */
  get inTransaction(): string[] {
    return this.runs.filter(({ hook }) => hook !== 'afterCommit').map(({ model, hook }) => `${model} ${hook}`)
  }

  get afterCommit(): string[] {
    return this.runs.filter(({ hook }) => hook === 'afterCommit').map(({ model }) => model)
  }

  note(run: HookRun): void {
    this.runs.push(run)
    const call = `${run.model} ${run.hook}`
    if (this.failing?.call !== call) return
    if (this.failing.how === 'crash') throw new TypeError(`${call} crashes`)
    throw new VersoError('forbidden', `${call} refuses`)
  }

  clear(): void {
    this.runs = []
    this.failing = undefined
  }
}

/** Every hook leaves a record of shop.Trace in its transaction. */
function hooksOf(log: HookLog, model: string): HooksOf {
  const note =
    (hook: HookName) =>
    async (
      call: Parameters<Required<HooksOf>['validate']>[0] | { readonly id: number },
    ): Promise<undefined> => {
      const { id } = call
      if ('records' in call) {
        // A write before the hook fails shows whether the transaction is rolled back.
        await call.records.of(TRACE).create({ text: `${model} ${hook}` })
        log.note({ model, hook, id, attempt: call.attempt })
      }
      return undefined
    }
  const inTransaction = Object.fromEntries(TRANSACTION_HOOK_NAMES.map((hook) => [hook, note(hook)]))
  return {
    ...inTransaction,
    afterCommit: ({ id, attempt }) => {
      log.note({ model, hook: 'afterCommit', id, attempt })
    },
  }
}

export function createShop(log: HookLog): readonly ModelSource[] {
  const definitions = [
    defineModel({
      name: ORDER,
      fields: {
        title: { type: 'string' },
        note: { type: 'string' },
        picture: { type: 'binary' },
        lines: { type: 'one-to-many', target: LINE, mappedBy: 'order', owned: true },
      },
      hooks: hooksOf(log, ORDER),
    }),
    defineModel({
      name: LINE,
      fields: { product: { type: 'string' }, order: { type: 'many-to-one', target: ORDER } },
      hooks: hooksOf(log, LINE),
    }),
    defineModel({ name: TRACE, fields: { text: { type: 'string' } } }),
  ]
  return definitions.map((definition) => ({ file: 'shop.ts', definition }))
}
