// Checks real-time order: an operation that ended before another began must take effect before it.
import type { ClientOperation } from './operation.js'
import { findEarliest, type TokenChain } from './chain.js'
import { createViolation, type Violation } from './violation.js'

interface Observation {
  readonly operation: ClientOperation
  /** The record had reached this version when the response was sent. */
  readonly version: number
}

export function* checkRealTime(chain: TokenChain): Generator<Violation> {
  const observations = chain.operations.flatMap(toObservations)
  yield* checkVersionOrder(observations)
  yield* checkNoFutureVersion(chain, observations)
  yield* checkAfterRemoval(chain)
}

/** A conflict proves that the version after the named one exists. */
function toObservations(operation: ClientOperation): Observation[] {
  const { kind, outcome, version, named } = operation
  if (outcome === 'ok' && kind !== 'remove' && version !== undefined) return [{ operation, version }]
  if (outcome === 'conflict' && named !== undefined) return [{ operation, version: named + 1 }]
  return []
}

function* checkVersionOrder(observations: readonly Observation[]): Generator<Violation> {
  const byInvocation = [...observations].sort((a, b) => a.operation.invokedMs - b.operation.invokedMs)
  const byAnswer = [...observations].sort((a, b) => a.operation.answeredMs - b.operation.answeredMs)
  let [next, highest] = [0, -1]
  for (const { operation, version } of byInvocation) {
    for (
      let before = byAnswer[next];
      before && before.operation.answeredMs < operation.invokedMs;
      before = byAnswer[++next]
    )
      highest = Math.max(highest, before.version)
    if (operation.outcome !== 'ok') continue
    // An acknowledged update without a key made its version, so no earlier response can show that version.
    const isNew = operation.kind === 'update' && operation.key === undefined
    // A repeated request gets the first response again, which may show an older version.
    const isRepeat = operation.key !== undefined
    if (!isRepeat && (version < highest || (isNew && version === highest)))
      yield createViolation(
        'went-back',
        `${operation.client} got version ${version} after a response with version ${highest}`,
      )
  }
}

function* checkNoFutureVersion(
  { tokens, updates }: TokenChain,
  observations: readonly Observation[],
): Generator<Violation> {
  for (const { operation, version } of observations) {
    const maker = updates.get(tokens[version - 1] ?? '')
    if (operation.outcome === 'ok' && maker && operation.answeredMs < maker.invokedMs)
      yield createViolation(
        'from-the-future',
        `${operation.client} got version ${version} before ${maker.token} was sent`,
      )
  }
}

function* checkAfterRemoval({ operations }: TokenChain): Generator<Violation> {
  const removals = operations.filter(({ kind, outcome }) => kind === 'remove' && outcome === 'ok')
  const removedMs = findEarliest(removals.map(({ answeredMs }) => answeredMs))
  for (const { kind, key, outcome, invokedMs, client } of operations)
    if (
      (kind === 'read' || kind === 'update') &&
      key === undefined &&
      outcome === 'ok' &&
      invokedMs > removedMs
    )
      yield createViolation('removed', `${client} could still ${kind} it after its delete was acknowledged`)
}
