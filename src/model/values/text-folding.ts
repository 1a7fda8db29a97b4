// Folds text for search: removes case and accents. PostgreSQL gets the same function, generated from the tables of this file.

export type CodePoints = readonly (readonly [first: number, last: number])[]

/** Combining accents. Vowel signs and voiced marks are not among them: they are letters of their scripts. */
export const ACCENT_MARKS = parseCodePoints('0300-036F 1AB0-1AFF 1DC0-1DFF 20D0-20FF FE20-FE2F')

/**
 * Code points that stay as they are, because the engines would fold them differently. Engines ship different versions of Unicode; all of
 * them know version 10.0 of 2017, and the letters of that version fold alike in every later one. The list holds:
 * - letters and marks that were added after 10.0;
 * - everything beyond the first plane, except scripts with case (Deseret, Osage, Old Hungarian, Warang Citi, Adlam) and compatibility
 *   ideographs;
 * - U+11A7, which PostgreSQL takes for the end of a Korean syllable.
 */
export const UNFOLDED_CODE_POINTS = parseCodePoints(
  '07FD 0897-089F 08CA-08D3 09FE 0C3C 0EBA 11A7 1715 1C89-1CBF 2C2F 2C5F A7B8-A7F6 A82C ' +
    '10000-103FF 10450-104AF 104FC-10C7F 10CF3-1189F 118E0-1E8FF 1E94B-2F7FF 2FA1E-10FFFF',
)

/** Lower-case letters that Unicode does not decompose, and the final sigma. */
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

/** Up to here, at the end of Cyrillic, each character folds independently: without accents, none combines with the next one. */
export const LAST_SIMPLE_CODE_POINT = 0x052f

const LITERAL_SEPARATOR = '\0'
const NOT_PRINTABLE_ASCII = /[^ -~]/
/** A `%` behind an even number of backslashes. */
const ENDS_IN_WILDCARD = /(?<!\\)(?:\\\\)*%$/
const NOT_SIMPLE = new RegExp(`[^\\0-${escapeCodePoint(LAST_SIMPLE_CODE_POINT)}]`, 'u')
const FOLDABLE = new RegExp(`[^${buildCharacterClass(UNFOLDED_CODE_POINTS)}]+`, 'gu')
const ACCENT_PATTERN = new RegExp(`[${buildCharacterClass(ACCENT_MARKS)}]+`, 'gu')
const LETTER_PATTERN = new RegExp(`[${[...LETTER_FOLDS.keys()].join('')}]`, 'gu')
const SIMPLE_FOLDS = Array.from({ length: LAST_SIMPLE_CODE_POINT + 1 }, (_, point) =>
  foldRun(String.fromCodePoint(point)),
)

/** Texts that differ only in case or accents fold to the same text. Folding is idempotent. */
export function foldText(text: string): string {
  if (!NOT_PRINTABLE_ASCII.test(text)) return text.toLowerCase()
  return NOT_SIMPLE.test(text) ? text.replace(FOLDABLE, foldRun) : foldSimple(text)
}

/** Gives the same result as `foldRun` at a third of its cost. SQLite calls it for each row. */
function foldSimple(text: string): string {
  let folded = ''
  for (let index = 0; index < text.length; index++) folded += SIMPLE_FOLDS[text.charCodeAt(index)] ?? ''
  return folded
}

/** Replaces letters last: ẞ, ǽ and ǿ match only after lower-casing and removal of accents. */
function foldRun(run: string): string {
  const unaccented = run.normalize('NFD').replace(ACCENT_PATTERN, '').normalize('NFC')
  return unaccented.toLowerCase().replace(LETTER_PATTERN, (letter) => LETTER_FOLDS.get(letter) ?? letter)
}

/**
 * Builds the pattern that matches folded text with `like ? escape '\'`. In the value, `%` and `_` are wildcards, and `\%`, `\_` and `\\`
 * stand for these characters; any other backslash is literal. A value that, folded, neither starts nor ends with `%` matches anywhere in
 * the text.
 */
export function buildLikePattern(value: string): string {
  const isPlain = !value.includes('\\') && !NOT_PRINTABLE_ASCII.test(value)
  const pattern = isPlain ? value.toLowerCase() : foldLiterals(value)
  return pattern.startsWith('%') || ENDS_IN_WILDCARD.test(pattern) ? pattern : `%${pattern}%`
}

/**
 * Splitting by a capture group puts literals at the odd indexes and wildcards at the even ones. Folds all literals in one call, which
 * costs a quarter of folding each alone; the separator keeps them from combining.
 */
function foldLiterals(value: string): string {
  const parts = value.split(/((?:\\[%_\\]|[^%_])+)/)
  const literals = escapeLiteral(parts.filter((_, index) => index % 2 === 1).join(LITERAL_SEPARATOR)).split(
    LITERAL_SEPARATOR,
  )
  return parts.map((part, index) => (index % 2 === 1 ? (literals[(index - 1) / 2] ?? '') : part)).join('')
}

/** Escapes after folding, so that no character produced by folding acts as a wildcard. */
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
