// Text as a search compares it: without case and accents. PostgreSQL has the same as a function, made from the tables of this file.

export type CodePoints = readonly (readonly [first: number, last: number])[]

/** Accents and the like. Vowel signs and voiced marks stand elsewhere: they are letters of their scripts, and stay. */
export const ACCENT_MARKS = parseCodePoints('0300-036F 1AB0-1AFF 1DC0-1DFF 20D0-20FF FE20-FE2F')

/**
 * What is never folded, because engines would not agree. They come with Unicode of different years; 10.0, of 2017, is what all of
 * them know, and its letters fold alike for ever. So here are: the letters and marks that came later, all that lies beyond the
 * first plane but for what has case (Deseret, Osage, Old Hungarian, Warang Citi, Adlam) or is the same ideograph under a second
 * number, and U+11A7, which PostgreSQL takes for the end of a Korean syllable.
 */
export const UNFOLDED_CODE_POINTS = parseCodePoints(
  '07FD 0897-089F 08CA-08D3 09FE 0C3C 0EBA 11A7 1715 1C89-1CBF 2C2F 2C5F A7B8-A7F6 A82C ' +
    '10000-103FF 10450-104AF 104FC-10C7F 10CF3-1189F 118E0-1E8FF 1E94B-2F7FF 2FA1E-10FFFF',
)

/** Small letters that Unicode does not take apart, and the sigma that ends a word. */
export const LETTER_FOLDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ς: 'σ',
    ø: 'o',
    ł: 'l',
    đ: 'd',
    ħ: 'h',
    ŧ: 't',
    ı: 'i',
    ð: 'd',
    æ: 'ae',
    œ: 'oe',
    ß: 'ss',
    þ: 'th',
  }),
)

/** Up to here, at the end of Cyrillic, each character folds for itself: without accents none joins its neighbour. */
export const LAST_SIMPLE_CODE_POINT = 0x052f

const LITERAL_SEPARATOR = '\0'
const NOT_PLAIN = /[^ -~]/
const NOT_SIMPLE = new RegExp(`[^\\0-${escapeCodePoint(LAST_SIMPLE_CODE_POINT)}]`, 'u')
const FOLDABLE = new RegExp(`[^${buildCharacterClass(UNFOLDED_CODE_POINTS)}]+`, 'gu')
const ACCENT_PATTERN = new RegExp(`[${buildCharacterClass(ACCENT_MARKS)}]+`, 'gu')
const LETTER_PATTERN = new RegExp(`[${[...LETTER_FOLDS.keys()].join('')}]`, 'gu')
const SIMPLE_FOLDS = Array.from({ length: LAST_SIMPLE_CODE_POINT + 1 }, (_, point) =>
  foldRun(String.fromCodePoint(point)),
)

/** Equal for texts that differ only in case or accents. What was folded folds to itself. */
export function foldText(text: string): string {
  if (!NOT_PLAIN.test(text)) return text.toLowerCase()
  return NOT_SIMPLE.test(text) ? text.replace(FOLDABLE, foldRun) : foldSimple(text)
}

/** The same as `foldStretch`, at a third of its cost: SQLite calls it for each row. */
function foldSimple(text: string): string {
  let folded = ''
  for (let index = 0; index < text.length; index++) folded += SIMPLE_FOLDS[text.charCodeAt(index)] ?? ''
  return folded
}

/** The letters come last: ẞ, ǽ and ǿ are among them only once they are small and bare. */
function foldRun(run: string): string {
  const bare = run.normalize('NFD').replace(ACCENT_PATTERN, '').normalize('NFC')
  return bare.toLowerCase().replace(LETTER_PATTERN, (letter) => LETTER_FOLDS.get(letter) ?? letter)
}

/**
 * The pattern to match against folded text with `like ? escape '\'`. In the value `%` and `_` are wildcards and `\%`, `\_`, `\\`
 * are these characters; any other backslash is one. A value that neither starts nor ends with `%` is found anywhere in the text.
 */
export function buildLikePattern(value: string): string {
  const isPlain = !value.includes('\\') && !NOT_PLAIN.test(value)
  const [pattern, isOpenAtEnd] = isPlain ? [value.toLowerCase(), value.endsWith('%')] : foldLiterals(value)
  return value.startsWith('%') || isOpenAtEnd ? pattern : `%${pattern}%`
}

/**
 * Split by what it catches, the literals stand at the odd places and the wildcards between them. They are folded together: one by
 * one costs four times as much, and nothing joins its neighbour over a character that no text has.
 */
function foldLiterals(value: string): [pattern: string, isOpenAtEnd: boolean] {
  const parts = value.split(/((?:\\[%_\\]|[^%_])+)/)
  const literals = escapeLiteral(parts.filter((_, index) => index % 2 === 1).join(LITERAL_SEPARATOR)).split(
    LITERAL_SEPARATOR,
  )
  const folded = parts.map((part, index) => (index % 2 === 1 ? (literals[(index - 1) / 2] ?? '') : part))
  return [folded.join(''), parts.at(-1)?.endsWith('%') === true]
}

/** Escaped after folding, so that nothing that folding yields is taken for a wildcard. */
function escapeLiteral(literal: string): string {
  return foldText(literal.replace(/\\([%_\\])/g, '$1')).replace(/[%_\\]/g, '\\$&')
}

function parseCodePoints(list: string): CodePoints {
  return list.split(' ').map((range) => {
    const [first = '', last = first] = range.split('-')
    return [parseInt(first, 16), parseInt(last, 16)]
  })
}

function escapeCodePoint(point: number): string {
  return `\\u{${point.toString(16)}}`
}

function buildCharacterClass(points: CodePoints): string {
  return points.map(([first, last]) => `${escapeCodePoint(first)}-${escapeCodePoint(last)}`).join('')
}
