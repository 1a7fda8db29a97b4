// Text as a search compares it: without case and accents. PostgreSQL has the same as a function, made from the tables of this file.

export type CodePoints = readonly (readonly [first: number, last: number])[]

/** Accents and the like. Vowel signs and voiced marks stand elsewhere: they are letters of their scripts, and stay. */
export const MARKS = parseCodePoints('0300-036F 1AB0-1AFF 1DC0-1DFF 20D0-20FF FE20-FE2F')

/**
 * What is never folded, because engines would not agree. They come with Unicode of different years; 10.0, of 2017, is what all of
 * them know, and its letters fold alike for ever. So here are: the letters and marks that came later, all that lies beyond the
 * first plane but for what has case (Deseret, Osage, Old Hungarian, Warang Citi, Adlam) or is the same ideograph under a second
 * number, and U+11A7, which PostgreSQL takes for the end of a Korean syllable.
 */
export const LEFT_ALONE = parseCodePoints(
  '07FD 0897-089F 08CA-08D3 09FE 0C3C 0EBA 11A7 1715 1C89-1CBF 2C2F 2C5F A7B8-A7F6 A82C ' +
    '10000-103FF 10450-104AF 104FC-10C7F 10CF3-1189F 118E0-1E8FF 1E94B-2F7FF 2FA1E-10FFFF',
)

/** Small letters that Unicode does not take apart, and the sigma that ends a word. */
export const LETTERS: ReadonlyMap<string, string> = new Map(
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
export const LAST_SIMPLE = 0x052f

const NO_TEXT = '\0'
const NOT_PLAIN = /[^ -~]/
const NOT_SIMPLE = new RegExp(`[^\\0-${spell(LAST_SIMPLE)}]`, 'u')
const FOLDABLE = new RegExp(`[^${classOf(LEFT_ALONE)}]+`, 'gu')
const MARK = new RegExp(`[${classOf(MARKS)}]+`, 'gu')
const LETTER = new RegExp(`[${[...LETTERS.keys()].join('')}]`, 'gu')
const SIMPLE = Array.from({ length: LAST_SIMPLE + 1 }, (_, point) => foldStretch(String.fromCodePoint(point)))

/** Equal for texts that differ only in case or accents. What was folded folds to itself. */
export function fold(text: string): string {
  if (!NOT_PLAIN.test(text)) return text.toLowerCase()
  return NOT_SIMPLE.test(text) ? text.replace(FOLDABLE, foldStretch) : foldSimple(text)
}

/** The same as `foldStretch`, at a third of its cost: SQLite calls it for each row. */
function foldSimple(text: string): string {
  let folded = ''
  for (let index = 0; index < text.length; index++) folded += SIMPLE[text.charCodeAt(index)] ?? ''
  return folded
}

/** The letters come last: ẞ, ǽ and ǿ are among them only once they are small and bare. */
function foldStretch(stretch: string): string {
  const bare = stretch.normalize('NFD').replace(MARK, '').normalize('NFC')
  return bare.toLowerCase().replace(LETTER, (letter) => LETTERS.get(letter) ?? letter)
}

/**
 * The pattern to match against folded text with `like ? escape '\'`. In the value `%` and `_` are wildcards and `\%`, `\_`, `\\`
 * are these characters; any other backslash is one. A value that neither starts nor ends with `%` is found anywhere in the text.
 */
export function likePattern(value: string): string {
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
  const literals = literalPattern(parts.filter((_, index) => index % 2 === 1).join(NO_TEXT)).split(NO_TEXT)
  const folded = parts.map((part, index) => (index % 2 === 1 ? (literals[(index - 1) / 2] ?? '') : part))
  return [folded.join(''), parts.at(-1)?.endsWith('%') === true]
}

/** Escaped after folding, so that nothing that folding yields is taken for a wildcard. */
function literalPattern(literal: string): string {
  return fold(literal.replace(/\\([%_\\])/g, '$1')).replace(/[%_\\]/g, '\\$&')
}

function parseCodePoints(list: string): CodePoints {
  return list.split(' ').map((range) => {
    const [first = '', last = first] = range.split('-')
    return [parseInt(first, 16), parseInt(last, 16)]
  })
}

function spell(point: number): string {
  return `\\u{${point.toString(16)}}`
}

function classOf(points: CodePoints): string {
  return points.map(([first, last]) => `${spell(first)}-${spell(last)}`).join('')
}
