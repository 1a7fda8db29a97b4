// Reads off the text of a script if it defines models. A script that does not is never run.

/** The name that model files import from. */
export const PACKAGE = 'verso'

const FUNCTION = /\b(?:defineModel|extendModel)\b/
const IMPORT = new RegExp(
  `\\bimport\\b(?!\\s*type(?:\\s*[{*]|\\s+(?!from\\b)[\\w$]))([^;"()]*)\\bfrom\\s*"${PACKAGE}"`,
  'g',
)
/** One name of an import that is only for types. */
const TYPE_NAME = /([{,]\s*)type\s+(?!as\b|,|\})[\w$]+/g
const CALL = new RegExp(`\\b(?:require|import)\\s*\\(\\s*"${PACKAGE}"\\s*\\)`)

/** Whether it imports `defineModel` or `extendModel` from the package. Comments and texts that only mention it do not count. */
export function importsModelFunctions(text: string): boolean {
  if (!text.includes(PACKAGE) || !FUNCTION.test(text)) return false
  const code = withoutTexts(text)
  const imported = [...code.matchAll(IMPORT)].map(([, names = '']) => names.replace(TYPE_NAME, '$1'))
  if (imported.some((names) => FUNCTION.test(names))) return true
  // All of the package under one name, as in `import * as verso from 'verso'`.
  return (imported.some((names) => !names.includes('{')) || CALL.test(code)) && FUNCTION.test(code)
}

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>\/\/[^\n]*|\/\*[^]*?\*\/|^#![^\n]*)`,
    String.raw`(?<text>"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*')`,
    String.raw`(?<word>[\w$]+)`,
    String.raw`(?<mark>[^])`,
  ].join('|'),
  'y',
)
const REGULAR_EXPRESSION = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y
const TEMPLATE = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{|$)/y
/** Behind one of these words a slash begins a regular expression; behind any other it divides. */
const BEFORE_VALUES = /^(?:return|typeof|case|in|of|void|delete|throw|new|else|do|await|yield)$/

/** The code with its comments left out, and its texts empty but for the name of the package. */
function withoutTexts(source: string): string {
  let code = ''
  let previous = ''
  /** Of each template that is open, how many braces its expression has open. */
  const templates: number[] = []
  let position = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = position
    const found = pattern.exec(source)
    if (found) position = pattern.lastIndex
    return found
  }
  const takeTemplate = () => {
    if (take(TEMPLATE)?.[0].endsWith('${') === true) templates.push(0)
    code += '""'
    previous = '"'
  }
  while (position < source.length) {
    const isValueNext = !/[\w$)\]}"]$/.test(previous) || BEFORE_VALUES.test(previous)
    const { comment, text, word, mark } = take(TOKEN)?.groups ?? {}
    if (comment !== undefined) code += ' '
    else if (text !== undefined) {
      code += text.slice(1, -1) === PACKAGE ? `"${PACKAGE}"` : '""'
      previous = '"'
    } else if (word !== undefined) {
      code += word
      previous = word
    } else if (mark === '`') takeTemplate()
    else if (mark !== undefined) {
      const open = templates.at(-1)
      if (mark === '}' && open === 0) {
        templates.pop()
        takeTemplate()
        continue
      }
      if (open !== undefined && (mark === '{' || mark === '}'))
        templates[templates.length - 1] = open + (mark === '{' ? 1 : -1)
      if (mark === '/' && isValueNext) {
        position--
        if (!take(REGULAR_EXPRESSION)) position++
      }
      code += mark
      if (mark.trim() !== '') previous = mark
    }
  }
  return code
}
