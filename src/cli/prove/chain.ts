// How a record came to be what it is, token by token, and who sent what.
import type { State } from './adapter.js'
import type { Operation } from './journal.js'

/** One update, however often it was sent. */
export interface Update {
  readonly token: string
  readonly named: number
  /** When it was first sent. */
  readonly invokedMs: number
  readonly operations: readonly Operation[]
}

export interface Chain {
  readonly operations: readonly Operation[]
  readonly tokens: readonly string[]
  /** Undefined: it is gone. */
  readonly final: State | undefined
  readonly updates: ReadonlyMap<string, Update>
}

export function chainOf(operations: readonly Operation[], final: State | undefined): Chain {
  const tokens = final?.tokens ?? lastSeen(operations)
  return { operations, tokens, final, updates: updatesOf(operations) }
}

/** Infinity if there is none. */
export function earliest(times: readonly number[]): number {
  return times.reduce((first, time) => Math.min(first, time), Infinity)
}

function lastSeen(operations: readonly Operation[]): readonly string[] {
  let last: readonly string[] = []
  for (const { outcome, tokens = [], theirs } of operations) {
    const shown = outcome === 'ok' ? tokens : (theirs?.tokens ?? [])
    if (shown.length > last.length) last = shown
  }
  return last
}

function updatesOf(operations: readonly Operation[]): Map<string, Update> {
  const updates = new Map<string, Update & { operations: Operation[] }>()
  for (const operation of operations) {
    const { kind, token, named, invokedMs } = operation
    if (kind !== 'update' || token === undefined || named === undefined) continue
    const known = updates.get(token)
    updates.set(token, {
      token,
      named,
      invokedMs: Math.min(known?.invokedMs ?? Infinity, invokedMs),
      operations: known ? [...known.operations, operation] : [operation],
    })
  }
  return updates
}
