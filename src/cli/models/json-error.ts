// Finds the line and column where a text stops being JSON. JSON.parse names a position for some errors only.

const JSON_TOKEN =
  /(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*")|(?<word>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)|(?<mark>[{}[\],:])/iuy
const JSON_WHITESPACE = /[ \t\r\n]*/y

/** Describes the error that JSON.parse raised on this text as `line 3, column 14: …`. */
export function describeJsonError(text: string, error: Error): string {
  const reportedOffset = /at position (\d+)/.exec(error.message)?.[1]
  const offset = reportedOffset === undefined ? findErrorOffset(text) : Number(reportedOffset)
  const before = text.slice(0, offset).split('\n')
  const what = error.message.replace(/ in JSON at position.*$|,? \.{0,3}".*$/s, '')
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}: ${what}`
}

/** Finds errors without a position: unexpected end, unknown word, or punctuation in place of a value. */
function findErrorOffset(text: string): number {
  let previous = ','
  for (let offset = skipWhitespace(text, 0); ; offset = skipWhitespace(text, JSON_TOKEN.lastIndex)) {
    JSON_TOKEN.lastIndex = offset
    const groups = JSON_TOKEN.exec(text)?.groups
    if (!groups) return offset
    const mark = groups['mark'] ?? ''
    const isEmptyList = previous === '[' && mark === ']'
    if (':,['.includes(previous) && '}],:'.includes(mark) && mark !== '' && !isEmptyList) return offset
    previous = mark === '' ? 'a value' : mark
  }
}

function skipWhitespace(text: string, offset: number): number {
  JSON_WHITESPACE.lastIndex = offset
  JSON_WHITESPACE.exec(text)
  return JSON_WHITESPACE.lastIndex
}
