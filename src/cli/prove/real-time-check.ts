// What had ended before something else began came before it: the order that everybody can see on a clock.
import type { Operation } from './journal.js'
import { earliest, type Chain } from './chain.js'
import { fault, type Violation } from './violation.js'

interface Sighting {
  readonly operation: Operation
  /** The record was at this version, or past it, when it was answered. */
  readonly version: number
}

export function* checkRealTime(chain: Chain): Generator<Violation> {
  const sightings = chain.operations.flatMap(sightingOf)
  yield* checkOrder(sightings)
  yield* checkFuture(chain, sightings)
  yield* checkRemoval(chain)
}

/** A conflict says that the version behind the named one is there. */
function sightingOf(operation: Operation): Sighting[] {
  const { kind, outcome, version, named } = operation
  if (outcome === 'ok' && kind !== 'remove' && version !== undefined) return [{ operation, version }]
  if (outcome === 'conflict' && named !== undefined) return [{ operation, version: named + 1 }]
  return []
}

function* checkOrder(sightings: readonly Sighting[]): Generator<Violation> {
  const asked = [...sightings].sort((a, b) => a.operation.invokedMs - b.operation.invokedMs)
  const answered = [...sightings].sort((a, b) => a.operation.answeredMs - b.operation.answeredMs)
  let [next, highest] = [0, -1]
  for (const { operation, version } of asked) {
    for (
      let before = answered[next];
      before && before.operation.answeredMs < operation.invokedMs;
      before = answered[++next]
    )
      highest = Math.max(highest, before.version)
    if (operation.outcome !== 'ok') continue
    // An update that was acknowledged made its version: nobody can have seen it before, unless it is a repeat.
    const isNew = operation.kind === 'update' && operation.key === undefined
    // The answer to a repeat is the first one again, however old it is.
    const isRepeat = operation.key !== undefined
    if (!isRepeat && (version < highest || (isNew && version === highest)))
      yield fault(
        'went-back',
        `${operation.client} was shown version ${version} after version ${highest} had been shown`,
      )
  }
}

function* checkFuture({ tokens, updates }: Chain, sightings: readonly Sighting[]): Generator<Violation> {
  for (const { operation, version } of sightings) {
    const maker = updates.get(tokens[version - 1] ?? '')
    if (operation.outcome === 'ok' && maker && operation.answeredMs < maker.invokedMs)
      yield fault(
        'from-the-future',
        `${operation.client} was shown version ${version} before ${maker.token} was sent`,
      )
  }
}

function* checkRemoval({ operations }: Chain): Generator<Violation> {
  const removals = operations.filter(({ kind, outcome }) => kind === 'remove' && outcome === 'ok')
  const removedMs = earliest(removals.map(({ answeredMs }) => answeredMs))
  for (const { kind, key, outcome, invokedMs, client } of operations)
    if (
      (kind === 'read' || kind === 'update') &&
      key === undefined &&
      outcome === 'ok' &&
      invokedMs > removedMs
    )
      yield fault('removed', `${client} could still ${kind} it after its removal was acknowledged`)
}
