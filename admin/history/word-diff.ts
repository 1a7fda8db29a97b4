// Finds the words that differ between two texts. Long texts are compared line by line, and very different ones as a whole, so that the
// cost stays small for texts of any length.

export interface TextPart {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** The number of differing words up to which a text is compared word by word; the cost grows with its square. */
const MAX_DIFFERENCES = 600
/** Texts with more tokens than this between the first and the last difference are compared by lines. */
const MAX_TOKENS = 40_000

/** Scripts without spaces between words. Each of their characters counts as a word. */
const SPACELESS = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]`
const WORDS = new RegExp(String.raw`\s+|${SPACELESS}|(?:(?!${SPACELESS})[\p{L}\p{M}\p{N}_])+|[^]`, 'gu')
const LINES = /[^\n]*\n|[^\n]+/g

/** Splits two texts into parts. `same` and `removed` parts are the text before, `same` and `added` parts the text after. */
export function diffWords(before: string, after: string): readonly TextPart[] {
  if (before === after) return toParts([['same', before]])
  return diffTokens(before, after, WORDS) ?? diffTokens(before, after, LINES) ?? diffEnds(before, after)
}

type Step = readonly [TextPart['kind'], string]

/** Undefined if the texts have too many tokens, or differ too much. */
function diffTokens(before: string, after: string, pattern: RegExp): readonly TextPart[] | undefined {
  const old = before.match(pattern) ?? []
  const young = after.match(pattern) ?? []
  const start = countEqual(old, young, (tokens, index) => tokens[index])
  const rest = { old: old.slice(start), young: young.slice(start) }
  const end = countEqual(rest.old, rest.young, (tokens, index) => tokens[tokens.length - 1 - index])
  const middle = {
    old: rest.old.slice(0, rest.old.length - end),
    young: rest.young.slice(0, rest.young.length - end),
  }
  if (middle.old.length + middle.young.length > MAX_TOKENS) return undefined
  const steps = findSteps(middle.old, middle.young)
  if (!steps) return undefined
  return toParts([
    ['same', old.slice(0, start).join('')],
    ...steps,
    ['same', rest.old.slice(rest.old.length - end).join('')],
  ])
}

type Pick = (tokens: ArrayLike<string>, index: number) => string | undefined

function countEqual(old: ArrayLike<string>, young: ArrayLike<string>, pick: Pick): number {
  const length = Math.min(old.length, young.length)
  let count = 0
  while (count < length && pick(old, count) === pick(young, count)) count++
  return count
}

/**
 * The greedy algorithm of Myers, "An O(ND) Difference Algorithm". `reached[k]` is the furthest position in the old text on diagonal k,
 * where a diagonal is the position in the old text minus that in the new one. A copy for each round leads back to the start.
 */
function findSteps(old: readonly string[], young: readonly string[]): readonly Step[] | undefined {
  const limit = Math.min(old.length + young.length, MAX_DIFFERENCES)
  const middle = limit + 1
  const reached = new Int32Array(2 * limit + 3)
  const rounds: Int32Array[] = []
  for (let round = 0; round <= limit; round++) {
    rounds.push(reached.slice(middle - round - 1, middle + round + 2))
    for (let diagonal = -round; diagonal <= round; diagonal += 2) {
      const at = middle + diagonal
      let position = isAddition(reached, at, round, diagonal)
        ? (reached[at + 1] ?? 0)
        : (reached[at - 1] ?? 0) + 1
      while (
        position < old.length &&
        position - diagonal < young.length &&
        old[position] === young[position - diagonal]
      )
        position++
      reached[at] = position
      if (position >= old.length && position - diagonal >= young.length) return walkBack(rounds, old, young)
    }
  }
  return undefined
}

/** Whether the best way to a diagonal adds a token, which comes from the diagonal above it. */
function isAddition(reached: Int32Array, at: number, round: number, diagonal: number): boolean {
  return diagonal === -round || (diagonal !== round && (reached[at - 1] ?? 0) < (reached[at + 1] ?? 0))
}

function walkBack(
  rounds: readonly Int32Array[],
  old: readonly string[],
  young: readonly string[],
): readonly Step[] {
  const steps: Step[] = []
  let position = old.length
  let diagonal = old.length - young.length
  for (let round = rounds.length - 1; round >= 0; round--) {
    const reached = rounds[round] ?? new Int32Array()
    const at = round + 1 + diagonal
    const isAdded = isAddition(reached, at, round, diagonal)
    const previous = isAdded ? (reached[at + 1] ?? 0) : (reached[at - 1] ?? 0)
    const begin = round === 0 ? 0 : isAdded ? previous : previous + 1
    while (position > begin) steps.push(['same', old[--position] ?? ''])
    if (round === 0) break
    if (isAdded) steps.push(['added', young[position - diagonal - 1] ?? ''])
    else steps.push(['removed', old[--position] ?? ''])
    diagonal += isAdded ? 1 : -1
  }
  return steps.reverse()
}

/** The common beginning and end, and all between them as replaced. */
function diffEnds(before: string, after: string): readonly TextPart[] {
  const length = Math.min(before.length, after.length)
  let start = 0
  while (start < length && before[start] === after[start]) start++
  // A line is the smallest part that is worth to be shown here, and never cuts a character in two.
  start = before.lastIndexOf('\n', start - 1) + 1
  return toParts([
    ['same', before.slice(0, start)],
    ['removed', before.slice(start)],
    ['added', after.slice(start)],
  ])
}

/** Joins neighbours of the same kind. Removed text comes before the text that replaces it. */
function toParts(steps: readonly Step[]): readonly TextPart[] {
  const parts: TextPart[] = []
  let removed = ''
  let added = ''
  const flush = () => {
    if (removed !== '') parts.push({ kind: 'removed', text: removed })
    if (added !== '') parts.push({ kind: 'added', text: added })
    removed = added = ''
  }
  const runs = joinRuns(steps)
  for (const [index, [kind, text]] of runs.entries()) {
    if (kind === 'removed') removed += text
    else if (kind === 'added') added += text
    else if (isBridge(text) && index > 0 && index < runs.length - 1) {
      // Spaces between replaced words belong to the replacement: marks around each word are harder to read.
      removed += text
      added += text
    } else {
      flush()
      parts.push({ kind, text })
    }
  }
  flush()
  return parts
}

function isBridge(text: string): boolean {
  return /^[^\S\n]+$/.test(text)
}

function joinRuns(steps: readonly Step[]): readonly Step[] {
  const texts: { readonly kind: TextPart['kind']; readonly pieces: string[] }[] = []
  for (const [kind, text] of steps) {
    if (text === '') continue
    const last = texts.at(-1)
    if (last?.kind === kind) last.pieces.push(text)
    else texts.push({ kind, pieces: [text] })
  }
  return texts.map(({ kind, pieces }) => [kind, pieces.join('')])
}
