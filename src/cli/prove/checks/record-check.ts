// Checks the operations on one record against its chain of tokens: the final tokens, or the longest observed list if it
// was removed.
import type { ObservedState } from '../adapters/adapter.js'
import type { ClientOperation } from './operation.js'
import { buildChain, findEarliest, type TokenChain, type TokenUpdate } from './chain.js'
import { checkRealTime } from './real-time-check.js'
import { createViolation, type Violation } from './violation.js'

export function* checkRecord(
  record: string,
  operations: readonly ClientOperation[],
  final: ObservedState | undefined,
): Generator<Violation> {
  const chain = buildChain(operations, final)
  for (const violation of [
    ...checkChain(chain),
    ...checkUpdates(chain),
    ...checkAnswers(chain),
    ...checkFinalState(chain),
    ...checkRealTime(chain),
  ])
    yield { ...violation, message: `record ${record}: ${violation.message}` }
}

/**
 * Each token was sent once, based on the version before it. A write without a response therefore took effect fully or
 * not at all.
 */
function* checkChain({ tokens, updates }: TokenChain): Generator<Violation> {
  const seen = new Map<string, number>()
  for (const [index, token] of tokens.entries()) {
    const update = updates.get(token)
    const first = seen.get(token)
    if (first !== undefined)
      yield createViolation(
        'token-twice',
        `${token} is the token of version ${first + 1} and of version ${index + 1}`,
      )
    else if (!update)
      yield createViolation('unknown-token', `no client sent ${token}, the token of version ${index + 1}`)
    else if (update.named !== index)
      yield createViolation(
        'wrong-base',
        `${token} is based on version ${update.named}, but was applied to version ${index}`,
      )
    if (first === undefined) seen.set(token, index)
  }
}

function* checkUpdates({ tokens, updates }: TokenChain): Generator<Violation> {
  const stored = new Set(tokens)
  const owners = new Map<number, string>()
  for (const { token, named, operations } of updates.values()) {
    const answers = new Set(operations.map(({ outcome }) => outcome))
    const versions = new Set(operations.flatMap((each) => (each.outcome === 'ok' ? [each.version] : [])))
    if (versions.size > 1)
      yield createViolation(
        'duplicate',
        `the responses to ${token} have the versions ${[...versions].join(' and ')}`,
      )
    if (answers.has('ok') && answers.has('conflict'))
      yield createViolation(
        'duplicate',
        `one response to ${token} acknowledges it, another reports a conflict`,
      )
    if (answers.has('ok') && !stored.has(token))
      yield createViolation(
        'lost-update',
        `${token} was acknowledged as version ${[...versions].join()}, but it is not stored`,
      )
    if (!answers.has('ok') && !answers.has('unknown') && stored.has(token))
      yield createViolation(
        'refused-but-there',
        `${token} was rejected (${[...answers].join(', ')}), but it is stored`,
      )
    for (const version of versions) {
      if (version === undefined) continue
      if (version !== named + 1)
        yield createViolation(
          'wrong-version',
          `${token} is based on version ${named}, but its response has version ${version}`,
        )
      const other = owners.get(version)
      if (other !== undefined)
        yield createViolation(
          'version-twice',
          `the responses to ${other} and ${token} have the same version ${version}`,
        )
      owners.set(version, token)
    }
  }
}

/**
 * Checks that responses show the tokens of their version, that each conflict had a winner, and that each missing record
 * had a removal.
 */
function* checkAnswers({ operations, tokens, final, updates }: TokenChain): Generator<Violation> {
  const verified = new Set<readonly string[]>()
  // A record that exists at the end was never removed.
  const removals = final ? [] : operations.filter(isPossibleRemoval)
  const removedMs = findEarliest(removals.map(({ invokedMs }) => invokedMs))
  for (const { kind, outcome, version, tokens: shown, named, token, answeredMs } of operations) {
    if (outcome === 'ok' && shown) {
      if (version !== shown.length)
        yield createViolation(
          'wrong-tokens',
          `a response has version ${version ?? 'none'}, but ${shown.length} tokens`,
        )
      if (!verified.has(shown) && !shown.every((each, index) => each === tokens[index]))
        yield createViolation(
          'wrong-tokens',
          `a response has other tokens for version ${version ?? 'none'} than the stored ones`,
        )
      if (kind === 'update' && shown.at(-1) !== token)
        yield createViolation(
          'wrong-tokens',
          `the response that acknowledges ${token ?? ''} does not end in it`,
        )
      verified.add(shown)
    }
    if (outcome === 'missing' && !(removedMs < answeredMs))
      yield createViolation('missing', `a ${kind} did not find it, but no client had deleted it`)
    if (outcome === 'conflict' && named !== undefined) {
      const winner =
        updates.get(tokens[named] ?? '') ?? (final ? undefined : findPossibleWinner(updates, named))
      if (!winner || winner.invokedMs >= answeredMs)
        yield createViolation(
          'false-conflict',
          `${token ?? `a ${kind}`} is based on version ${named} and got a conflict, but no other update came first`,
        )
    }
  }
}

/** The last version of a removed record may come from a write without a response, so its token was never observed. */
function findPossibleWinner(updates: TokenChain['updates'], named: number): TokenUpdate | undefined {
  const isOpen = (update: TokenUpdate) => update.operations.some(({ outcome }) => outcome === 'unknown')
  return [...updates.values()].find((update) => update.named === named && isOpen(update))
}

function isPossibleRemoval({ kind, outcome }: ClientOperation): boolean {
  return kind === 'remove' && (outcome === 'ok' || outcome === 'unknown')
}

function* checkFinalState({ operations, tokens, final, updates }: TokenChain): Generator<Violation> {
  const stored = new Set(tokens)
  const done = [...updates.values()].filter(
    (update) => stored.has(update.token) || update.operations.some(({ outcome }) => outcome === 'ok'),
  ).length
  if (final && (final.version !== final.tokens.length || final.version !== done))
    yield createViolation(
      'final-version',
      `the final version is ${final.version} with ${final.tokens.length} tokens, after ${done} updates`,
    )
  const removals = operations.filter(({ kind, outcome }) => kind === 'remove' && outcome === 'ok')
  if (new Set(removals.map(({ key }, index) => key ?? index)).size > 1)
    yield createViolation('removed', 'two deletes of it were acknowledged')
  const [removal] = removals
  if (removal && final) yield createViolation('removed', 'its delete was acknowledged, but it exists')
  if (removal?.named !== undefined && removal.named < tokens.length)
    yield createViolation(
      'removed',
      `its delete is based on version ${removal.named}, but it was at version ${tokens.length}`,
    )
  const wasMade = operations.some(({ kind, outcome }) => kind === 'create' && outcome === 'ok')
  if (!final && wasMade && !operations.some(isPossibleRemoval))
    yield createViolation('missing', 'it was created and never deleted, but it does not exist')
}
