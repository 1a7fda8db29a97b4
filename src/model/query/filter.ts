// Parses filter text such as `self.city = 'Bern' and not (age < 18 or name like :pattern)` into a tree of conditions.
import { VersoError } from '../../errors.js'
import {
  FieldOperand,
  MAX_CONDITION_DEPTH,
  type Condition,
  type ConditionGroup,
  type Operator,
} from './condition.js'
import { TokenCursor, isKeyword, isSign, isWord, type Token } from './filter-tokens.js'
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'
import { isObject, isArray, type JsonObject } from '../values/value.js'

const MAX_FILTER_CHARACTERS = 10_000
/** Limits the names that are compared for a suggestion: the client chooses how many there are and how long. */
const MAX_SUGGESTED_NAMES = 200
const MAX_SUGGESTED_NAME_CHARACTERS = 100

const COMPARISON_SIGNS: ReadonlyMap<string, Operator> = new Map([
  ...(['=', '!=', '<', '<=', '>', '>='] as const).map((sign) => [sign, sign] as const),
  ['<>', '!='] as const,
])

const LITERAL_VALUES: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
])

interface FilterOptions {
  /** Permits another field after a comparison sign, as a FieldOperand. */
  readonly comparesFields?: boolean
}

/** Parses the text and inserts the values of its parameters. Messages refer to the text as `name`. */
export function parseFilter(
  text: string,
  parameters: JsonObject,
  name: string,
  { comparesFields = false }: FilterOptions = {},
): Condition {
  if (text.length > MAX_FILTER_CHARACTERS) {
    throw new VersoError('bad-request', `${name} is too long: at most ${MAX_FILTER_CHARACTERS} characters`)
  }
  if (text.trim() === '') throw new VersoError('bad-request', `${name} is empty`)
  return new FilterParser(new TokenCursor(text, name), parameters, comparesFields).parse()
}

class FilterParser {
  #depth = 0

  constructor(
    readonly cursor: TokenCursor,
    readonly parameters: JsonObject,
    readonly comparesFields: boolean,
  ) {}

  parse(): Condition {
    const condition = this.#parseOr()
    const { token } = this.cursor
    if (token.kind === 'end') return condition
    throw isSign(token, ')')
      ? this.cursor.createError(token, 'this parenthesis has no opening "("')
      : this.cursor.createUnexpectedError('"and", "or" or the end')
  }

  #parseOr(): Condition {
    return this.#parseChain('or', () => this.#parseChain('and', () => this.#parseNot()))
  }

  #parseChain(operator: 'and' | 'or', read: () => Condition): Condition {
    const at = this.cursor.describePosition(this.cursor.token)
    const first = read()
    const conditions = [first]
    while (this.cursor.takeWord(operator)) conditions.push(read())
    return conditions.length === 1 ? first : buildGroup(operator, conditions, at)
  }

  #parseNot(): Condition {
    const { token } = this.cursor
    if (!this.cursor.takeWord('not')) return this.#parsePrimary()
    const condition = this.#parseNested(token, () => this.#parseNot())
    return buildGroup('not', [condition], this.cursor.describePosition(token))
  }

  #parsePrimary(): Condition {
    const open = this.cursor.token
    if (!this.cursor.takeSign('(')) return this.#parsePredicate()
    const condition = this.#parseNested(open, () => this.#parseOr())
    this.cursor.close(open, '"and", "or" or ")"')
    return condition
  }

  /** Limits the depth before binding does, so that ten thousand parentheses do not overflow the stack. */
  #parseNested(token: Token, read: () => Condition): Condition {
    if (this.#depth === MAX_CONDITION_DEPTH)
      throw this.cursor.createError(token, `must not be nested deeper than ${MAX_CONDITION_DEPTH} levels`)
    this.#depth++
    const condition = read()
    this.#depth--
    return condition
  }

  #parsePredicate(): Condition {
    const { token } = this.cursor
    if (isValueToken(token)) return this.#parseMemberOf()
    if (isWord(token, 'and') || isWord(token, 'or')) throw this.cursor.createUnexpectedError('a condition')
    const at = this.cursor.describePosition(token)
    const path = this.#parsePath('a condition')
    const comparison = COMPARISON_SIGNS.get(this.cursor.token.text)
    if (comparison && this.cursor.token.kind === 'sign') {
      this.cursor.next()
      return { kind: 'term', path, operator: comparison, value: this.#parseOperand(), at }
    }
    if (this.cursor.takeWord('is')) return this.#parseIs(path, at)
    return this.#parseTest(path, at)
  }

  /** Parses the operators that "not" may precede: like, in and between. */
  #parseTest(path: string, at: string): Condition {
    const isNegated = this.cursor.takeWord('not')
    if (this.cursor.takeWord('like')) {
      return { kind: 'term', path, operator: isNegated ? 'notLike' : 'like', value: this.#parseValue(), at }
    }
    if (this.cursor.takeWord('in')) {
      return { kind: 'term', path, operator: isNegated ? 'notIn' : 'in', value: this.#parseList(), at }
    }
    if (!this.cursor.takeWord('between')) {
      throw this.cursor.createUnexpectedError(isNegated ? '"like", "in" or "between"' : 'an operator')
    }
    const value = this.#parseValue()
    if (!this.cursor.takeWord('and')) throw this.cursor.createUnexpectedError('"and" and the upper bound')
    const value2 = this.#parseValue()
    return { kind: 'term', path, operator: isNegated ? 'notBetween' : 'between', value, value2, at }
  }

  /** Parses the rest of an "is" condition. */
  #parseIs(path: string, at: string): Condition {
    const isNegated = this.cursor.takeWord('not')
    if (this.cursor.takeWord('empty')) {
      return { kind: 'term', path, operator: isNegated ? 'notEmpty' : 'isEmpty', at }
    }
    const { token } = this.cursor
    const value = parseLiteral(token)
    if (value === undefined) throw this.cursor.createUnexpectedError('null, empty, true or false')
    this.cursor.next()
    if (value === null) return { kind: 'term', path, operator: isNegated ? 'notNull' : 'isNull', at }
    if (!isNegated) return { kind: 'term', path, operator: '=', value, at }
    // "is not true" is true for null as well; a comparison is not.
    const isNull: Condition = { kind: 'term', path, operator: 'isNull', at }
    return buildGroup('or', [isNull, { kind: 'term', path, operator: '!=', value, at }], at)
  }

  #parseMemberOf(): Condition {
    const first = this.cursor.token
    const second = this.cursor.peek(1)
    const isMembership = isWord(isWord(second, 'not') ? this.cursor.peek(2) : second, 'member')
    if (!isMembership) {
      throw this.cursor.createError(first, 'write the field first, then the operator and the value')
    }
    const value = this.#parseValue()
    const isNegated = this.cursor.takeWord('not')
    this.cursor.takeWord('member')
    if (!this.cursor.takeWord('of')) throw this.cursor.createUnexpectedError('"of"')
    const at = this.cursor.describePosition(this.cursor.token)
    const term: Condition = { kind: 'term', path: this.#parsePath('a field'), operator: '=', value, at }
    return isNegated ? buildGroup('not', [term], this.cursor.describePosition(first)) : term
  }

  #parsePath(expected: string): string {
    const first = this.cursor.token
    if (isKeyword(first)) {
      throw this.cursor.createUnexpectedError(
        expected,
        ` (write self.${first.text} for a field of that name)`,
      )
    }
    const names = [this.#parseName(expected)]
    while (this.cursor.takeSign('.')) names.push(this.#parseName('a name'))
    if (isSign(this.cursor.token, '(')) throw this.cursor.createError(first, 'functions are not supported')
    if (names.length > 1 && isWord(first, 'self')) names.shift()
    return names.join('.')
  }

  #parseName(expected: string): string {
    const { token } = this.cursor
    if (token.kind !== 'word') throw this.cursor.createUnexpectedError(expected)
    this.cursor.next()
    if (this.cursor.takeSign('[') && !this.cursor.takeSign(']'))
      throw this.cursor.createUnexpectedError('"]"')
    return token.text
  }

  #parseList(): readonly unknown[] {
    const open = this.cursor.token
    if (open.kind === 'parameter') {
      const list = this.#parseValue()
      if (isArray(list)) return list
      throw this.cursor.createError(open, `the parameter ":${shortenForMessage(open.text)}" must be a list`)
    }
    if (!this.cursor.takeSign('('))
      throw this.cursor.createUnexpectedError('a list in parentheses or a parameter')
    const items: { readonly token: Token; readonly value: unknown }[] = []
    if (this.cursor.token.kind !== 'end' && !isSign(this.cursor.token, ')')) {
      do items.push({ token: this.cursor.token, value: this.#parseValue() })
      while (this.cursor.takeSign(','))
    }
    this.cursor.close(open, '"," or ")"')
    const inner = items.find(({ value }) => isArray(value))
    if (!inner) return items.map(({ value }) => value)
    if (items.length === 1 && isArray(inner.value)) return inner.value
    throw this.cursor.createError(
      inner.token,
      'a parameter with a list must be the only value in the parentheses',
    )
  }

  #parseOperand(): unknown {
    const { token } = this.cursor
    if (!this.comparesFields || isValueToken(token)) return this.#parseValue()
    return new FieldOperand(this.#parsePath('a value or a field'), this.cursor.describePosition(token))
  }

  #parseValue(): unknown {
    const { token } = this.cursor
    if (!isValueToken(token)) {
      const isBareWord = token.kind === 'word' && !isKeyword(token)
      throw this.cursor.createUnexpectedError('a value', isBareWord ? ' (put text in quotes)' : '')
    }
    this.cursor.next()
    if (token.kind === 'text') return token.text
    if (token.kind === 'number') return parseNumber(token.text)
    return token.kind === 'parameter' ? this.#resolveParameter(token) : parseLiteral(token)
  }

  #resolveParameter(token: Token): unknown {
    const read: string[] = []
    let value: unknown = this.parameters
    for (const part of token.text.split(/[.$]/)) {
      // Reads own properties only: inherited ones were not sent.
      const inner = isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined
      if (inner === undefined) {
        const name = shortenForMessage(part)
        const holder = shortenForMessage(read.join('.'))
        const error = read.length === 0 ? `unknown parameter ":${name}"` : `:${holder} has no "${name}"`
        const hint = isObject(value)
          ? didYouMean(part, listSuggestions(value))
          : ', because it is not an object'
        throw this.cursor.createError(token, error + hint)
      }
      value = inner
      read.push(part)
    }
    return value
  }
}

function buildGroup(
  operator: ConditionGroup['operator'],
  conditions: readonly Condition[],
  at: string,
): ConditionGroup {
  return { kind: 'group', operator, conditions, at }
}

function isValueToken(token: Token): boolean {
  return ['number', 'text', 'parameter'].includes(token.kind) || parseLiteral(token) !== undefined
}

function parseLiteral(token: Token): boolean | null | undefined {
  return token.kind === 'word' ? LITERAL_VALUES.get(token.text.toLowerCase()) : undefined
}

/** Keeps numbers that binary floating point might change as text. */
function parseNumber(text: string): number | string {
  const number = Number(text)
  // `+ 0` turns −0 into 0.
  return !text.includes('.') && Number.isSafeInteger(number) ? number + 0 : text
}

function listSuggestions(holder: JsonObject): string[] {
  const names = Object.keys(holder).filter((name) => name.length <= MAX_SUGGESTED_NAME_CHARACTERS)
  return names.slice(0, MAX_SUGGESTED_NAMES)
}
