// Splits filter text into tokens. Invalid text becomes a token, too, so that the parser reports the first error in the text.
import { VersoError } from '../../errors.js'

export interface Token {
  readonly kind: 'word' | 'number' | 'text' | 'parameter' | 'sign' | 'error' | 'end'
  /** A text without its quotes, a parameter without its colon, an error message; otherwise the source text. */
  readonly text: string
  readonly column: number
}

type TokenContent = Pick<Token, 'kind' | 'text'>

const KEYWORDS = new Set([
  ...['and', 'or', 'not', 'like', 'in', 'between', 'member', 'of', 'is'],
  ...['null', 'empty', 'true', 'false', 'select'],
])

/** Hints for operators of other languages. */
const ALTERNATIVE_SIGNS = new Map([
  ['==', 'use ='],
  ['=>', 'use >='],
  ['=<', 'use <='],
  ['&&', 'use and'],
  ['&', 'use and'],
  ['||', 'use or'],
  ['|', 'use or'],
  ['!', 'use not, or !='],
])

const MAX_QUOTED_TOKEN_CHARACTERS = 40
const WHITE_SPACE = /\s*/y

// Each pattern matches greedily and the reader validates the match: "1e5" is one invalid number.
const TOKEN_READERS: readonly (readonly [RegExp, (raw: string) => TokenContent])[] = [
  [/[A-Za-z_]\w*/y, (raw) => ({ kind: 'word', text: raw })],
  [/[+-]?\d[\w.]*/y, readNumber],
  [/:[\w.$]*/y, readParameter],
  [/==|=>|=<|!=|<>|<=|>=|&&|\|\||[=<>!&|()[\],.+\-*/%]/y, (raw) => ({ kind: 'sign', text: raw })],
]

function readNumber(raw: string): TokenContent {
  const [integer = '', ...fractions] = raw.replace(/^[+-]/, '').split('.')
  const isNumber = fractions.length <= 1 && [integer, ...fractions].every((digits) => /^\d+$/.test(digits))
  if (isNumber) return { kind: 'number', text: raw }
  return {
    kind: 'error',
    text: `"${raw.slice(0, MAX_QUOTED_TOKEN_CHARACTERS)}" is not a number such as 12 or -12.5`,
  }
}

function readParameter(raw: string): TokenContent {
  const path = raw.slice(1)
  if (path.split(/[.$]/).every((part) => /^[A-Za-z_]\w*$/.test(part)))
    return { kind: 'parameter', text: path }
  return {
    kind: 'error',
    text: `"${raw.slice(0, MAX_QUOTED_TOKEN_CHARACTERS)}" is not a parameter such as :name or :name.part`,
  }
}

function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = []
  let position = 0
  while (true) {
    position += matchAt(WHITE_SPACE, text, position).length
    const column = position + 1
    if (position >= text.length) return [...tokens, { kind: 'end', text: '', column }]
    const { piece, length } = readToken(text, position)
    tokens.push({ ...piece, column })
    if (piece.kind === 'error') return tokens
    position += length
  }
}

function readToken(text: string, position: number): { piece: TokenContent; length: number } {
  const character = String.fromCodePoint(text.codePointAt(position) ?? 0)
  if (character === "'" || character === '"') return readQuoted(text, position, character)
  for (const [pattern, read] of TOKEN_READERS) {
    const raw = matchAt(pattern, text, position)
    if (raw !== '') return { piece: read(raw), length: raw.length }
  }
  const code = text.codePointAt(position)?.toString(16).toUpperCase().padStart(4, '0') ?? ''
  // The message includes the code point, because some characters are invisible.
  const error = `unexpected character ${JSON.stringify(character)} (U+${code})`
  return { piece: { kind: 'error', text: error }, length: character.length }
}

function readQuoted(text: string, position: number, quote: string): { piece: TokenContent; length: number } {
  let content = ''
  let from = position + 1
  while (true) {
    const close = text.indexOf(quote, from)
    if (close < 0) return { piece: { kind: 'error', text: 'this text has no closing quote' }, length: 0 }
    content += text.slice(from, close)
    if (text[close + 1] !== quote) {
      return { piece: { kind: 'text', text: content }, length: close + 1 - position }
    }
    content += quote
    from = close + 2
  }
}

function matchAt(pattern: RegExp, text: string, position: number): string {
  pattern.lastIndex = position
  return pattern.exec(text)?.[0] ?? ''
}

export function isWord(token: Token, word: string): boolean {
  return token.kind === 'word' && token.text.toLowerCase() === word
}

export function isKeyword(token: Token): boolean {
  return token.kind === 'word' && KEYWORDS.has(token.text.toLowerCase())
}

export function isSign(token: Token, sign: string): boolean {
  return token.kind === 'sign' && token.text === sign
}

export class TokenCursor {
  readonly #tokens: readonly Token[]
  #position = 0

  constructor(
    text: string,
    readonly name: string,
  ) {
    this.#tokens = tokenize(text)
  }

  get token(): Token {
    return this.peek(0)
  }

  peek(count: number): Token {
    // The last token is an end or an error. Peeking beyond it returns it again.
    return this.#tokens[this.#position + count] ?? this.#tokens.at(-1) ?? { kind: 'end', text: '', column: 1 }
  }

  next(): Token {
    const token = this.token
    this.#position++
    return token
  }

  takeWord(word: string): boolean {
    const isThere = isWord(this.token, word)
    if (isThere) this.#position++
    return isThere
  }

  takeSign(sign: string): boolean {
    const isThere = isSign(this.token, sign)
    if (isThere) this.#position++
    return isThere
  }

  /** Consumes the closing parenthesis of `open`. */
  close(open: Token, expected: string): void {
    if (this.takeSign(')')) return
    throw this.token.kind === 'end'
      ? this.createError(open, 'this parenthesis has no closing ")"')
      : this.createUnexpectedError(expected)
  }

  describePosition(token: Token): string {
    return `${this.name}, column ${token.column}`
  }

  createError(token: Token, message: string): VersoError {
    return new VersoError('bad-request', `${this.describePosition(token)}: ${message}`)
  }

  /** Explains why the current token is invalid: by a known mistake, or else by what the grammar expects. */
  createUnexpectedError(expected: string, hint = ''): VersoError {
    const { token } = this
    if (token.kind === 'error') return this.createError(token, token.text)
    const select = isSign(token, '(') ? this.peek(1) : token
    if (isWord(select, 'select')) return this.createError(select, 'subqueries are not supported')
    const isFunction = token.kind === 'word' && !isKeyword(token) && isSign(this.peek(1), '(')
    if (isFunction) return this.createError(token, 'functions are not supported')
    const isArithmetic = (token.kind === 'sign' || token.kind === 'number') && /^[-+*/%]/.test(token.text)
    if (isArithmetic) return this.createError(token, 'arithmetic is not supported (put a date in quotes)')
    const instead = token.kind === 'sign' ? ALTERNATIVE_SIGNS.get(token.text) : undefined
    const reason = instead ? `${instead} instead of ${describeToken(token)}` : undefined
    return this.createError(token, reason ?? `expected ${expected}, found ${describeToken(token)}${hint}`)
  }
}

function describeToken(token: Token): string {
  if (token.kind === 'end') return 'the end'
  if (token.kind === 'text') return 'a text'
  const quoted =
    token.text.length > MAX_QUOTED_TOKEN_CHARACTERS
      ? `${token.text.slice(0, MAX_QUOTED_TOKEN_CHARACTERS)}…`
      : token.text
  return token.kind === 'parameter' ? `":${quoted}"` : `"${quoted}"`
}
