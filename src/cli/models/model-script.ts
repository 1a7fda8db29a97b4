// Detects from its text whether a script defines models. Other scripts are never run.

/** Name of the package that model files import. */
export const PACKAGE_NAME = 'verso-records'

const MODEL_FUNCTION = /\b(?:defineModel|extendModel|defineHooks)\b/
const PACKAGE_IMPORT = new RegExp(
  `\\bimport\\b(?!\\s*type(?:\\s*[{*]|\\s+(?!from\\b)[\\w$]))([^;"()]*)\\bfrom\\s*"${PACKAGE_NAME}"`,
  'g',
)
/** A type-only name in an import list. */
const TYPE_NAME = /([{,]\s*)type\s+(?!as\b|,|\})[\w$]+/g
const PACKAGE_CALL = new RegExp(`\\b(?:require|import)\\s*\\(\\s*"${PACKAGE_NAME}"\\s*\\)`)

/**
 * Returns true if the script imports `defineModel`, `extendModel` or `defineHooks` from the package. Mentions in comments
 * and strings are ignored.
 */
export function importsModelFunctions(text: string): boolean {
  if (!text.includes(PACKAGE_NAME) || !MODEL_FUNCTION.test(text)) return false
  const code = stripCommentsAndStrings(text)
  const imported = [...code.matchAll(PACKAGE_IMPORT)].map(([, names = '']) => names.replace(TYPE_NAME, '$1'))
  if (imported.some((names) => MODEL_FUNCTION.test(names))) return true
  // A namespace import, such as `import * as verso from 'verso-records'`.
  return (
    (imported.some((names) => !names.includes('{')) || PACKAGE_CALL.test(code)) && MODEL_FUNCTION.test(code)
  )
}

const SCRIPT_TOKEN = new RegExp(
  [
    String.raw`(?<comment>\/\/[^\n]*|\/\*[^]*?\*\/|^#![^\n]*)`,
    String.raw`(?<text>"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*')`,
    String.raw`(?<word>[\w$]+)`,
    String.raw`(?<mark>[^])`,
  ].join('|'),
  'y',
)
const REGULAR_EXPRESSION = /\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y
const TEMPLATE_LITERAL = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{|$)/y
/** A slash after one of these words starts a regular expression; after any other word it divides. */
const VALUE_KEYWORD = /^(?:return|typeof|case|in|of|void|delete|throw|new|else|do|await|yield)$/

/** Removes comments and empties string literals, except the name of the package. */
function stripCommentsAndStrings(source: string): string {
  let code = ''
  let previous = ''
  /** For each open template literal: the number of open braces in its expression. */
  const templates: number[] = []
  let offset = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = offset
    const found = pattern.exec(source)
    if (found) offset = pattern.lastIndex
    return found
  }
  const takeTemplate = () => {
    if (take(TEMPLATE_LITERAL)?.[0].endsWith('${') === true) templates.push(0)
    code += '""'
    previous = '"'
  }
  while (offset < source.length) {
    const isValueNext = !/[\w$)\]}"]$/.test(previous) || VALUE_KEYWORD.test(previous)
    const { comment, text, word, mark } = take(SCRIPT_TOKEN)?.groups ?? {}
    if (comment !== undefined) code += ' '
    else if (text !== undefined) {
      code += text.slice(1, -1) === PACKAGE_NAME ? `"${PACKAGE_NAME}"` : '""'
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
        offset--
        if (!take(REGULAR_EXPRESSION)) offset++
      }
      code += mark
      if (mark.trim() !== '') previous = mark
    }
  }
  return code
}
