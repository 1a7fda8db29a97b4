// The rules of one record. Its chain of tokens is the truth: what is there at the end, or what was there when it was removed.
import type { State } from './adapter.js'
import type { Operation } from './journal.js'
import { chainOf, earliest, type Chain, type Update } from './chain.js'
import { checkRealTime } from './real-time-check.js'
import { fault, type Violation } from './violation.js'

export function* checkRecord(
  record: string,
  operations: readonly Operation[],
  final: State | undefined,
): Generator<Violation> {
  const chain = chainOf(operations, final)
  for (const violation of [
    ...checkChain(chain),
    ...checkUpdates(chain),
    ...checkAnswers(chain),
    ...checkEnd(chain),
    ...checkRealTime(chain),
  ])
    yield { ...violation, message: `record ${record}: ${violation.message}` }
}

/** Every token was sent, once, from the version before it. So a write without an answer is there as a whole, or not at all. */
function* checkChain({ tokens, updates }: Chain): Generator<Violation> {
  const seen = new Map<string, number>()
  for (const [index, token] of tokens.entries()) {
    const update = updates.get(token)
    const first = seen.get(token)
    if (first !== undefined)
      yield fault('token-twice', `${token} made version ${first + 1} and version ${index + 1}`)
    else if (!update) yield fault('unknown-token', `nobody sent ${token}, which made version ${index + 1}`)
    else if (update.named !== index)
      yield fault('wrong-base', `${token} was made from version ${update.named} and put on ${index}`)
    if (first === undefined) seen.set(token, index)
  }
}

function* checkUpdates({ tokens, updates }: Chain): Generator<Violation> {
  const there = new Set(tokens)
  const owners = new Map<number, string>()
  for (const { token, named, operations } of updates.values()) {
    const answers = new Set(operations.map(({ outcome }) => outcome))
    const versions = new Set(operations.flatMap((each) => (each.outcome === 'ok' ? [each.version] : [])))
    if (versions.size > 1)
      yield fault('duplicate', `${token} was answered with the versions ${[...versions].join(' and ')}`)
    if (answers.has('ok') && answers.has('conflict'))
      yield fault('duplicate', `${token} was acknowledged, and told of a conflict when it was repeated`)
    if (answers.has('ok') && !there.has(token))
      yield fault('lost-update', `${token} was acknowledged as version ${[...versions].join()} and is lost`)
    if (!answers.has('ok') && !answers.has('unknown') && there.has(token))
      yield fault('refused-but-there', `${token} was refused (${[...answers].join(', ')}) and is there`)
    for (const version of versions) {
      if (version === undefined) continue
      if (version !== named + 1)
        yield fault('wrong-version', `${token} named version ${named} and was answered with ${version}`)
      const other = owners.get(version)
      if (other !== undefined)
        yield fault('version-twice', `${other} and ${token} were both answered with version ${version}`)
      owners.set(version, token)
    }
  }
}

/** What was shown of a version is what it holds; who was refused was overtaken; who found nothing came behind a removal. */
function* checkAnswers({ operations, tokens, final, updates }: Chain): Generator<Violation> {
  const right = new Set<readonly string[]>()
  // A record that is there at the end was there all the time.
  const removals = final ? [] : operations.filter(mayHaveRemoved)
  const removedMs = earliest(removals.map(({ invokedMs }) => invokedMs))
  for (const { kind, outcome, version, tokens: shown, named, token, answeredMs } of operations) {
    if (outcome === 'ok' && shown) {
      if (version !== shown.length)
        yield fault('wrong-tokens', `version ${version ?? 'none'} was shown with ${shown.length} tokens`)
      if (!right.has(shown) && !shown.every((each, index) => each === tokens[index]))
        yield fault('wrong-tokens', `version ${version ?? 'none'} was shown otherwise than it came to be`)
      if (kind === 'update' && shown.at(-1) !== token)
        yield fault('wrong-tokens', `${token ?? ''} was acknowledged with an answer that does not end in it`)
      right.add(shown)
    }
    if (outcome === 'missing' && !(removedMs < answeredMs))
      yield fault('missing', `a ${kind} did not find it, and nobody had removed it`)
    if (outcome === 'conflict' && named !== undefined) {
      const faster = updates.get(tokens[named] ?? '') ?? (final ? undefined : perhapsFaster(updates, named))
      if (!faster || faster.invokedMs >= answeredMs)
        yield fault(
          'false-conflict',
          `${token ?? `a ${kind}`} named version ${named} and was told of a conflict, but nobody had been faster`,
        )
    }
  }
}

/** Of a record that is gone nobody may have been told what made its last version: a write without an answer. */
function perhapsFaster(updates: Chain['updates'], named: number): Update | undefined {
  const isOpen = (update: Update) => update.operations.some(({ outcome }) => outcome === 'unknown')
  return [...updates.values()].find((update) => update.named === named && isOpen(update))
}

function mayHaveRemoved({ kind, outcome }: Operation): boolean {
  return kind === 'remove' && (outcome === 'ok' || outcome === 'unknown')
}

function* checkEnd({ operations, tokens, final, updates }: Chain): Generator<Violation> {
  const there = new Set(tokens)
  const done = [...updates.values()].filter(
    (update) => there.has(update.token) || update.operations.some(({ outcome }) => outcome === 'ok'),
  ).length
  if (final && (final.version !== final.tokens.length || final.version !== done))
    yield fault(
      'final-version',
      `it ends at version ${final.version} with ${final.tokens.length} tokens, after ${done} updates`,
    )
  const removals = operations.filter(({ kind, outcome }) => kind === 'remove' && outcome === 'ok')
  if (new Set(removals.map(({ key }, index) => key ?? index)).size > 1)
    yield fault('removed', 'two removals of it were acknowledged')
  const [removal] = removals
  if (removal && final) yield fault('removed', 'its removal was acknowledged, and it is there')
  if (removal?.named !== undefined && removal.named < tokens.length)
    yield fault('removed', `its removal named version ${removal.named}, and it was at ${tokens.length}`)
  const wasMade = operations.some(({ kind, outcome }) => kind === 'create' && outcome === 'ok')
  if (!final && wasMade && !operations.some(mayHaveRemoved))
    yield fault('missing', 'it was made and never removed, and it is gone')
}
