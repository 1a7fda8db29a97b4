// Where a text stops being JSON. The engine says it for some faults, and only as a number of characters.

const TOKEN =
  /(?<text>"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*")|(?<word>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)|(?<mark>[{}[\],:])/iuy
const SPACE = /[ \t\r\n]*/y

/** `line 3, column 14: …` for the error that JSON.parse raised on this text. */
export function describeJsonFault(text: string, error: Error): string {
  const told = /at position (\d+)/.exec(error.message)?.[1]
  const offset = told === undefined ? offsetOfFault(text) : Number(told)
  const before = text.slice(0, offset).split('\n')
  const what = error.message.replace(/ in JSON at position.*$|,? \.{0,3}".*$/s, '')
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}: ${what}`
}

/** What the engine does not place: the end, an unknown word, or a mark where a value should stand. */
function offsetOfFault(text: string): number {
  let previous = ','
  for (let offset = afterSpace(text, 0); ; offset = afterSpace(text, TOKEN.lastIndex)) {
    TOKEN.lastIndex = offset
    const groups = TOKEN.exec(text)?.groups
    if (!groups) return offset
    const mark = groups['mark'] ?? ''
    const isEmptyList = previous === '[' && mark === ']'
    if (':,['.includes(previous) && '}],:'.includes(mark) && mark !== '' && !isEmptyList) return offset
    previous = mark === '' ? 'a value' : mark
  }
}

function afterSpace(text: string, offset: number): number {
  SPACE.lastIndex = offset
  SPACE.exec(text)
  return SPACE.lastIndex
}
