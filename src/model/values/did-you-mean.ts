const MAX_DISTANCE = 3
const MAX_SUGGESTION_CHARACTERS = 64
const MAX_SHOWN_CHARACTERS = 100

/** Returns ` (did you mean "x"?)` for the candidate closest to the word, or an empty text if none is close. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  if (word.length > MAX_SUGGESTION_CHARACTERS) return ''
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    const isNear = distance <= Math.min(MAX_DISTANCE, Math.ceil(candidate.length / 2))
    if (isNear && (!best || distance < best.distance)) best = { candidate, distance }
  }
  return best ? ` (did you mean "${best.candidate}"?)` : ''
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const [above = 0, left = 0, corner = 0] = [previous[j], row[j - 1], previous[j - 1]]
      row.push(a[i - 1] === b[j - 1] ? corner : 1 + Math.min(above, left, corner))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}

/** Shortens a text that a client has sent, for a message. */
export function shortenForMessage(text: string): string {
  return text.slice(0, MAX_SHOWN_CHARACTERS)
}
