// One search in every form that the service accepts.
import type { SearchRequest } from '../../src/model/query/search.js'
import type { Question, Term } from './search-oracle.js'
import type { Ask, Style } from './search-questions.js'

const SPELLINGS: Readonly<Record<string, string>> = {
  ...{ and: 'AND', or: 'OR', not: 'NOT', like: 'LIKE', notLike: 'NOT LIKE', in: 'IN', notIn: 'NOT IN' },
  ...{ '=': 'equals', '!=': 'notEqual', '<': 'lessThan', '>': 'greaterThan' },
  ...{ '<=': 'lessOrEqual', '>=': 'greaterOrEqual', isNull: 'IS NULL', notNull: 'IS NOT NULL' },
  ...{ between: 'BETWEEN', notBetween: 'NOT BETWEEN', isEmpty: 'IS EMPTY', notEmpty: 'IS NOT EMPTY' },
}

/** `_archived` and the criteria; on request with the other spelling of every operator. */
export function jsonOf({ question, archived }: Ask, isSpelledOut: boolean): SearchRequest['data'] {
  const spell = (word: string) => (isSpelledOut ? SPELLINGS[word] : word)
  const node = (part: Question): Record<string, unknown> => {
    if ('join' in part) return { operator: spell(part.join), criteria: part.parts.map(node) }
    const { path, operator, ...values } = part
    return { fieldName: path, operator: spell(operator), ...values }
  }
  const root = 'join' in question ? node(question) : { criteria: [node(question)] }
  return { ...root, _archived: archived }
}

/** The text for `filter`, which has no parameters. */
export function filterOf({ question, style }: Ask): string {
  return new Printer(style, (value) => literal(value, style)).print(question)
}

/** `_domain` with its context, which holds some of the values. */
export function domainOf({ question, style, archived }: Ask): SearchRequest['data'] {
  const context: Record<string, unknown> = {}
  const inner: Record<string, unknown> = {}
  let count = 0
  const put = (value: unknown) => {
    const number = count++
    if (style.parameters[number % style.parameters.length] !== true) return literal(value, style)
    if (number % 2 === 0) {
      context[`p${number}`] = value
      return `:p${number}`
    }
    inner[`p${number}`] = value
    return number % 4 === 1 ? `:inner.p${number}` : `:inner$p${number}`
  }
  const _domain = new Printer(style, put).print(question)
  return { _domain, _domainContext: { ...context, inner }, _archived: archived }
}

class Printer {
  constructor(
    readonly style: Style,
    readonly put: (value: unknown) => string,
  ) {}

  /** Adds parentheses only where needed: `not` binds closer than `and`, and `and` closer than `or`. */
  print(question: Question, outer: 'or' | 'and' | 'not' = 'or'): string {
    if (!('join' in question)) return this.#term(question)
    const { join, parts } = question
    if (join === 'not') {
      const [only, ...others] = parts
      const inner = only && others.length === 0 ? this.print(only, 'not') : `(${this.#joined('and', parts)})`
      return `${this.#word('not')} ${inner}`
    }
    const text = this.#joined(join, parts)
    const isLooser = outer === 'not' || (outer === 'and' && join === 'or')
    return isLooser ? `(${text})` : text
  }

  #joined(join: 'and' | 'or', parts: readonly Question[]): string {
    return parts.map((part) => this.print(part, join)).join(` ${this.#word(join)} `)
  }

  #term({ path, operator, value, value2 }: Term): string {
    const [words, takes] = WORDS[operator] ?? [operator, 'one']
    const start = `${this.style.hasSelf ? 'self.' : ''}${path} ${this.#word(words)}`
    if (takes === 'nothing') return start
    if (takes === 'range') return `${start} ${this.put(value)} ${this.#word('and')} ${this.put(value2)}`
    if (takes === 'one') return `${start} ${this.put(value)}`
    const list = value as readonly unknown[]
    const whole = this.put(list)
    return `${start} ${whole.startsWith(':') ? whole : `(${list.map((each) => this.put(each)).join(', ')})`}`
  }

  #word(word: string): string {
    return this.style.isUpperCase ? word.toUpperCase() : word
  }
}

const WORDS: Readonly<Record<string, readonly [words: string, takes: 'nothing' | 'range' | 'list' | 'one']>> =
  {
    isNull: ['is null', 'nothing'],
    notNull: ['is not null', 'nothing'],
    isEmpty: ['is empty', 'nothing'],
    notEmpty: ['is not empty', 'nothing'],
    between: ['between', 'range'],
    notBetween: ['not between', 'range'],
    in: ['in', 'list'],
    notIn: ['not in', 'list'],
    notLike: ['not like', 'one'],
  }

function literal(value: unknown, { isDoubleQuoted }: Style): string {
  if (Array.isArray(value)) return ''
  if (typeof value === 'object' && value !== null && 'id' in value) return String(value.id)
  if (typeof value !== 'string') return String(value)
  const quote = isDoubleQuoted ? '"' : "'"
  return quote + value.replaceAll(quote, quote + quote) + quote
}
