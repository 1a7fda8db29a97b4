// The rules of a text besides its length: a pattern, and the formats of e-mail addresses and URLs.
import { createContext, Script, type Context } from 'node:vm'
import { isObject } from './value.js'

export const FORMAT_NAMES = ['email', 'url'] as const
export type FormatName = (typeof FORMAT_NAMES)[number]

/** A rule of a checked field. The message continues a sentence that starts with the name of the field. */
export interface FieldRule<Name extends string = string> {
  /** The pattern or the name of the format, as the definition spells it. */
  readonly value: Name
  readonly message: string
  /** Returns the message if the text breaks the rule. */
  readonly validate: (text: string) => string | undefined
}

const FORMATS: Readonly<
  Record<FormatName, { readonly message: string; readonly test: (text: string) => boolean }>
> = {
  email: { message: 'must be an e-mail address', test: isEmailAddress },
  url: { message: 'must be a URL that begins with http:// or https://', test: isWebUrl },
}

export function createFormatRule(value: FormatName, ownMessage?: string): FieldRule<FormatName> {
  const format = FORMATS[value]
  const message = ownMessage ?? format.message
  return { value, message, validate: (text) => (format.test(text) ? undefined : message) }
}

/** Compiles the pattern. Throws a SyntaxError if it is not a regular expression. */
export function createPatternRule(value: string, ownMessage?: string): FieldRule {
  // The group around the pattern would hide some errors, such as those of `a)(b`.
  new RegExp(value, 'u')
  const expression = new RegExp(`^(?:${value})$`, 'u')
  const message = ownMessage ?? `must match ${value}`
  const isSimple = isSimplePattern(value)
  return {
    value,
    message,
    validate: (text) => {
      if (isSimple && text.length <= MAX_SIMPLE_LENGTH) return expression.test(text) ? undefined : message
      const result = compareWithin(expression, text)
      if (result === 'refused')
        return `was not compared with the pattern ${value}, because other values took too long: send fewer or shorter values`
      if (result === 'too slow')
        return `takes more than ${PATTERN_LIMIT_MS} ms to compare with the pattern ${value}: send a shorter value`
      return result ? undefined : message
    },
  }
}

const PATTERN_LIMIT_MS = 50
// A request is read in one turn of the event loop, whatever number of values it has. So slow comparisons share a limit for each turn.
const SLOW_TURN_MS = 100
const MAX_TURN_MS = 500
/** The limit of a comparison after slow ones in the same turn. Values of other requests pass: a careful pattern needs far less. */
const SHORT_LIMIT_MS = 5
/** A comparison of a careful pattern takes less, and does not count. */
const FREE_MS = 1
/** Two quantifiers need at most the square of this number of steps. */
const MAX_SIMPLE_LENGTH = 1_000
const MAX_SIMPLE_QUANTIFIERS = 2
const ESCAPE = /\\(?:[pPu]\{[^}]*\}|k<[^>]*>|.)/gsu
const BACKREFERENCE = /\\[1-9k]/u
const CHARACTER_CLASS = /\[[^\]]*\]/g
const REPEATED_GROUP = /\)[*+?{]/
/** Not the question mark after a parenthesis, which begins the name or the kind of a group. */
const VARIABLE_QUANTIFIER = /(?:[*+]|\{\d+,\d*\}|(?<!\()\?)\??/g

/** True if no text can make the engine try exponentially many ways to match: no repeated group, no backreference, few quantifiers. */
function isSimplePattern(source: string): boolean {
  const escapes = source.match(ESCAPE) ?? []
  if (escapes.some((escape) => BACKREFERENCE.test(escape))) return false
  const plain = source.replace(ESCAPE, 'x').replace(CHARACTER_CLASS, 'x')
  const quantifiers = plain.match(VARIABLE_QUANTIFIER) ?? []
  return !REPEATED_GROUP.test(plain) && quantifiers.length <= MAX_SIMPLE_QUANTIFIERS
}

interface PatternSandbox {
  readonly context: Context & { expression?: RegExp | undefined; text?: string | undefined }
  readonly script: Script
}

let sandbox: PatternSandbox | undefined

let spentMs = 0

function spend(ms: number): void {
  if (spentMs === 0)
    setImmediate(() => {
      spentMs = 0
    })
  spentMs += ms
}

function compareWithin(expression: RegExp, text: string): boolean | 'too slow' | 'refused' {
  if (spentMs >= MAX_TURN_MS) return 'refused'
  const limitMs = spentMs < SLOW_TURN_MS ? PATTERN_LIMIT_MS : SHORT_LIMIT_MS
  const startMs = performance.now()
  // A pause of the whole process can use up the limit. It does not happen twice in a row.
  const isMatch = testWithin(expression, text, limitMs) ?? testWithin(expression, text, limitMs)
  const ms = performance.now() - startMs
  if (ms > FREE_MS) spend(ms)
  return isMatch ?? (limitMs === PATTERN_LIMIT_MS ? 'too slow' : 'refused')
}

/**
 * Tests the expression with a time limit: a text can make a careless pattern such as `(a+)+` run for years, and with it the whole process.
 * Only a script of this module can be interrupted. It costs some 70 µs. Returns undefined after the limit.
 */
function testWithin(expression: RegExp, text: string, limitMs: number): boolean | undefined {
  sandbox ??= { context: createContext({}), script: new Script('expression.test(text)') }
  const { context, script } = sandbox
  Object.assign(context, { expression, text })
  try {
    return script.runInContext(context, { timeout: limitMs }) as boolean
  } catch (error) {
    // The error may belong to the context, so it need not be an instance of our Error.
    if (isObject(error) && error['code'] === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  } finally {
    context.text = undefined
  }
}

const MAX_EMAIL_CHARACTERS = 254
const MAX_LOCAL_CHARACTERS = 64
const MAX_LABEL_CHARACTERS = 63
const LOCAL_PART = /^[^\s\p{C}"(),:;<>@[\\\]]+$/u
const DOMAIN_LABEL = /^[\p{L}\p{M}\p{N}-]+$/u

/** Accepts the addresses that people have, not all that RFC 5322 permits: no quotes, comments or IP addresses. */
function isEmailAddress(text: string): boolean {
  // Before all else, because a text may be a megabyte long.
  if (text.length > MAX_EMAIL_CHARACTERS) return false
  const [local = '', domain = '', ...rest] = text.split('@')
  if (rest.length > 0 || local.length > MAX_LOCAL_CHARACTERS || !LOCAL_PART.test(local)) return false
  return domain.split('.').every(isDomainLabel)
}

function isDomainLabel(label: string): boolean {
  return (
    label.length <= MAX_LABEL_CHARACTERS &&
    DOMAIN_LABEL.test(label) &&
    !label.startsWith('-') &&
    !label.endsWith('-')
  )
}

/** The URL parser alone would also accept `http:host` and remove white space. */
function isWebUrl(text: string): boolean {
  return /^https?:\/\/[^/\\]/i.test(text) && !/[\s\p{Cc}]/u.test(text) && URL.canParse(text)
}
