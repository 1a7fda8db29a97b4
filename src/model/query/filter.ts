// Filter text, such as `self.city = 'Bern' and not (age < 18 or name like :pattern)` → the tree of conditions.
import { Refusal } from '../../errors.js'
import { MAX_DEPTH, type Condition, type Group, type Operator } from './condition.js'
import { Cursor, isKeyword, isSign, isWord, type Token } from './filter-tokens.js'
import { didYouMean } from '../values/did-you-mean.js'
import { isObject } from '../values/value.js'

const MAX_FILTER_LENGTH = 10_000
/** The names are the client's, and each that is compared costs time: no more, and no longer ones, than people write. */
const MAX_COMPARED = 200
const MAX_COMPARED_LENGTH = 100

const COMPARISONS: ReadonlyMap<string, Operator> = new Map([
  ...(['=', '!=', '<', '<=', '>', '>='] as const).map((sign) => [sign, sign] as const),
  ['<>', '!='] as const,
])

const LITERALS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
])

type Named = Readonly<Record<string, unknown>>

/** The text's tree with the parameters put in; `name` is what messages call the text. */
export function parseFilter(text: string, parameters: Named, name: string): Condition {
  if (text.length > MAX_FILTER_LENGTH) {
    throw new Refusal('bad-request', `${name} is longer than ${MAX_FILTER_LENGTH} characters`)
  }
  if (text.trim() === '') throw new Refusal('bad-request', `${name} is empty`)
  return new FilterParser(new Cursor(text, name), parameters).parse()
}

class FilterParser {
  #depth = 0

  constructor(
    readonly cursor: Cursor,
    readonly parameters: Named,
  ) {}

  parse(): Condition {
    const condition = this.#alternatives()
    const { token } = this.cursor
    if (token.kind === 'end') return condition
    throw isSign(token, ')')
      ? this.cursor.refusal(token, 'this parenthesis was never opened')
      : this.cursor.unexpected('"and", "or" or the end')
  }

  #alternatives(): Condition {
    return this.#chain('or', () => this.#chain('and', () => this.#negation()))
  }

  #chain(operator: 'and' | 'or', read: () => Condition): Condition {
    const at = this.cursor.at(this.cursor.token)
    const first = read()
    const conditions = [first]
    while (this.cursor.takeWord(operator)) conditions.push(read())
    return conditions.length === 1 ? first : group(operator, conditions, at)
  }

  #negation(): Condition {
    const { token } = this.cursor
    if (!this.cursor.takeWord('not')) return this.#primary()
    const condition = this.#deeper(token, () => this.#negation())
    return group('not', [condition], this.cursor.at(token))
  }

  #primary(): Condition {
    const open = this.cursor.token
    if (!this.cursor.takeSign('(')) return this.#predicate()
    const condition = this.#deeper(open, () => this.#alternatives())
    this.cursor.close(open, '"and", "or" or ")"')
    return condition
  }

  /** Counted here and not only by the binder: a text of ten thousand parentheses must not exhaust the stack. */
  #deeper(token: Token, read: () => Condition): Condition {
    if (this.#depth === MAX_DEPTH) throw this.cursor.refusal(token, `nested deeper than ${MAX_DEPTH} levels`)
    this.#depth++
    const condition = read()
    this.#depth--
    return condition
  }

  #predicate(): Condition {
    const { token } = this.cursor
    if (isValue(token)) return this.#membership()
    if (isWord(token, 'and') || isWord(token, 'or')) throw this.cursor.unexpected('a condition')
    const at = this.cursor.at(token)
    const path = this.#path('a condition')
    const comparison = COMPARISONS.get(this.cursor.token.text)
    if (comparison && this.cursor.token.kind === 'sign') {
      this.cursor.next()
      return { kind: 'term', path, operator: comparison, value: this.#value(), at }
    }
    if (this.cursor.takeWord('is')) return this.#state(path, at)
    return this.#test(path, at)
  }

  /** What may follow a "not": like, in and between. */
  #test(path: string, at: string): Condition {
    const isNegated = this.cursor.takeWord('not')
    if (this.cursor.takeWord('like')) {
      return { kind: 'term', path, operator: isNegated ? 'notLike' : 'like', value: this.#value(), at }
    }
    if (this.cursor.takeWord('in')) {
      return { kind: 'term', path, operator: isNegated ? 'notIn' : 'in', value: this.#list(), at }
    }
    if (!this.cursor.takeWord('between')) {
      throw this.cursor.unexpected(isNegated ? '"like", "in" or "between"' : 'an operator')
    }
    const value = this.#value()
    if (!this.cursor.takeWord('and')) throw this.cursor.unexpected('"and" with the upper end')
    const value2 = this.#value()
    return { kind: 'term', path, operator: isNegated ? 'notBetween' : 'between', value, value2, at }
  }

  /** What may follow an "is". */
  #state(path: string, at: string): Condition {
    const isNegated = this.cursor.takeWord('not')
    if (this.cursor.takeWord('empty')) {
      return { kind: 'term', path, operator: isNegated ? 'notEmpty' : 'isEmpty', at }
    }
    const { token } = this.cursor
    const value = literalOf(token)
    if (value === undefined) throw this.cursor.unexpected('null, empty, true or false')
    this.cursor.next()
    if (value === null) return { kind: 'term', path, operator: isNegated ? 'notNull' : 'isNull', at }
    if (!isNegated) return { kind: 'term', path, operator: '=', value, at }
    // "is not true" holds for null as well, which no comparison does.
    const isNull: Condition = { kind: 'term', path, operator: 'isNull', at }
    return group('or', [isNull, { kind: 'term', path, operator: '!=', value, at }], at)
  }

  #membership(): Condition {
    const first = this.cursor.token
    const second = this.cursor.ahead(1)
    const isMembership = isWord(isWord(second, 'not') ? this.cursor.ahead(2) : second, 'member')
    if (!isMembership) {
      throw this.cursor.refusal(first, 'write the field first, then the operator and the value')
    }
    const value = this.#value()
    const isNegated = this.cursor.takeWord('not')
    this.cursor.takeWord('member')
    if (!this.cursor.takeWord('of')) throw this.cursor.unexpected('"of"')
    const at = this.cursor.at(this.cursor.token)
    const term: Condition = { kind: 'term', path: this.#path('a field'), operator: '=', value, at }
    return isNegated ? group('not', [term], this.cursor.at(first)) : term
  }

  #path(wanted: string): string {
    const first = this.cursor.token
    if (isKeyword(first)) {
      throw this.cursor.unexpected(wanted, ` (a field of that name is written self.${first.text})`)
    }
    const names = [this.#name(wanted)]
    while (this.cursor.takeSign('.')) names.push(this.#name('a name'))
    if (isSign(this.cursor.token, '(')) throw this.cursor.refusal(first, 'functions are not supported')
    if (names.length > 1 && isWord(first, 'self')) names.shift()
    return names.join('.')
  }

  #name(wanted: string): string {
    const { token } = this.cursor
    if (token.kind !== 'word') throw this.cursor.unexpected(wanted)
    this.cursor.next()
    if (this.cursor.takeSign('[') && !this.cursor.takeSign(']')) throw this.cursor.unexpected('"]"')
    return token.text
  }

  #list(): readonly unknown[] {
    const open = this.cursor.token
    if (open.kind === 'parameter') {
      const list = this.#value()
      if (isList(list)) return list
      throw this.cursor.refusal(open, `the parameter ":${open.text.slice(0, 100)}" must hold a list`)
    }
    if (!this.cursor.takeSign('(')) throw this.cursor.unexpected('a list in parentheses or a parameter')
    const items: { readonly token: Token; readonly value: unknown }[] = []
    if (this.cursor.token.kind !== 'end' && !isSign(this.cursor.token, ')')) {
      do items.push({ token: this.cursor.token, value: this.#value() })
      while (this.cursor.takeSign(','))
    }
    this.cursor.close(open, '"," or ")"')
    const inner = items.find(({ value }) => isList(value))
    if (!inner) return items.map(({ value }) => value)
    if (items.length === 1 && isList(inner.value)) return inner.value
    throw this.cursor.refusal(inner.token, 'a parameter that holds a list must stand alone')
  }

  #value(): unknown {
    const { token } = this.cursor
    if (!isValue(token)) {
      const isBareWord = token.kind === 'word' && !isKeyword(token)
      throw this.cursor.unexpected('a value', isBareWord ? ' (a text stands in quotes)' : '')
    }
    this.cursor.next()
    if (token.kind === 'text') return token.text
    if (token.kind === 'number') return numberOf(token.text)
    return token.kind === 'parameter' ? this.#parameter(token) : literalOf(token)
  }

  #parameter(token: Token): unknown {
    const read: string[] = []
    let value: unknown = this.parameters
    for (const part of token.text.split(/[.$]/)) {
      const place = read.length === 0 ? 'among the parameters' : `in :${read.join('.').slice(0, 100)}`
      // Own properties alone: nobody sent what an object inherits.
      const inner = isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined
      if (inner === undefined) {
        const meant = isObject(value) ? didYouMean(part, comparable(value)) : ', which holds no object'
        throw this.cursor.refusal(token, `there is no "${part.slice(0, 100)}" ${place}${meant}`)
      }
      value = inner
      read.push(part)
    }
    return value
  }
}

function group(operator: Group['operator'], conditions: readonly Condition[], at: string): Group {
  return { kind: 'group', operator, conditions, at }
}

function isValue(token: Token): boolean {
  return ['number', 'text', 'parameter'].includes(token.kind) || literalOf(token) !== undefined
}

function literalOf(token: Token): boolean | null | undefined {
  return token.kind === 'word' ? LITERALS.get(token.text.toLowerCase()) : undefined
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

/** Decimals are exact: what a binary number might change stays the text it is. */
function numberOf(text: string): number | string {
  const number = Number(text)
  // −0 would not be the same value as 0.
  return !text.includes('.') && Number.isSafeInteger(number) ? number + 0 : text
}

function comparable(holder: Named): string[] {
  const names = Object.keys(holder).filter((name) => name.length <= MAX_COMPARED_LENGTH)
  return names.slice(0, MAX_COMPARED)
}
