// The history of one record: its tokens in order, and the updates that clients sent.
import type { ObservedState } from '../adapters/adapter.js'
import type { ClientOperation } from './operation.js'

/** One update with all requests that sent it. */
export interface TokenUpdate {
  readonly token: string
  readonly named: number
  /** Time of the first request. */
  readonly invokedMs: number
  readonly operations: readonly ClientOperation[]
}

export interface TokenChain {
  readonly operations: readonly ClientOperation[]
  readonly tokens: readonly string[]
  /** Undefined if the record is gone. */
  readonly final: ObservedState | undefined
  readonly updates: ReadonlyMap<string, TokenUpdate>
}

export function buildChain(
  operations: readonly ClientOperation[],
  final: ObservedState | undefined,
): TokenChain {
  const tokens = final?.tokens ?? findLongestTokens(operations)
  return { operations, tokens, final, updates: groupUpdates(operations) }
}

/** Infinity for an empty list. */
export function findEarliest(times: readonly number[]): number {
  return times.reduce((first, time) => Math.min(first, time), Infinity)
}

function findLongestTokens(operations: readonly ClientOperation[]): readonly string[] {
  let last: readonly string[] = []
  for (const { outcome, tokens = [], theirs } of operations) {
    const observed = outcome === 'ok' ? tokens : (theirs?.tokens ?? [])
    if (observed.length > last.length) last = observed
  }
  return last
}

function groupUpdates(operations: readonly ClientOperation[]): Map<string, TokenUpdate> {
  const updates = new Map<string, TokenUpdate & { operations: ClientOperation[] }>()
  for (const operation of operations) {
    const { kind, token, named, invokedMs } = operation
    if (kind !== 'update' || token === undefined || named === undefined) continue
    const earlier = updates.get(token)
    updates.set(token, {
      token,
      named,
      invokedMs: Math.min(earlier?.invokedMs ?? Infinity, invokedMs),
      operations: earlier ? [...earlier.operations, operation] : [operation],
    })
  }
  return updates
}
