// Conditions as they are written, in JSON or as text: the same tree, not yet bound to a model.
import { didYouMean } from '../values/did-you-mean.js'
import { isObject } from '../values/value.js'

export const OPERATORS = [
  '=',
  '!=',
  '<',
  '>',
  '<=',
  '>=',
  'like',
  'notLike',
  'isNull',
  'notNull',
  'in',
  'notIn',
  'between',
  'notBetween',
  'isEmpty',
  'notEmpty',
] as const

export type Operator = (typeof OPERATORS)[number]

export interface Group {
  readonly kind: 'group'
  /** `not` is true where its conditions are not all true. */
  readonly operator: 'and' | 'or' | 'not'
  readonly conditions: readonly Condition[]
  /** Where it stands, for messages. */
  readonly at: string
}

export interface Term {
  readonly kind: 'term'
  /** A field, or a dotted path over relations. */
  readonly path: string
  readonly operator: Operator
  /** As it was sent: absent for isNull and its like, a list for in and notIn. */
  readonly value?: unknown
  /** The upper end of between. */
  readonly value2?: unknown
  readonly at: string
}

export type Condition = Group | Term

export const MAX_DEPTH = 16
export const MAX_TERMS = 64
export const MAX_IN_VALUES = 1_000
/** Of all lists together: reading them takes time that nobody else has meanwhile. */
export const MAX_VALUES = 5_000
export const MAX_LIKE_LENGTH = 256
/** A search is told what is wrong with it, not everything that could be. */
export const MAX_NAMED_FAULTS = 20

type Node = Readonly<Record<string, unknown>>

interface Vocabulary<Word> {
  readonly words: ReadonlyMap<string, Word>
  /** What is said of any other word. */
  readonly fault: string
}

const JOINING: Vocabulary<Group['operator']> = {
  fault: 'joins no criteria',
  words: new Map([...both('and', 'AND'), ...both('or', 'OR'), ...both('not', 'NOT')]),
}

const COMPARING: Vocabulary<Operator> = {
  fault: 'is no operator',
  words: new Map<string, Operator>([
    ...both('=', 'equals'),
    ...both('!=', 'notEqual'),
    ...both('<', 'lessThan'),
    ...both('>', 'greaterThan'),
    ...both('<=', 'lessOrEqual'),
    ...both('>=', 'greaterOrEqual'),
    ...both('like', 'LIKE'),
    ...both('notLike', 'NOT LIKE'),
    ...both('isNull', 'IS NULL'),
    ...both('notNull', 'IS NOT NULL'),
    ...both('in', 'IN'),
    ...both('notIn', 'NOT IN'),
    ...both('between', 'BETWEEN'),
    ...both('notBetween', 'NOT BETWEEN'),
    ...both('isEmpty', 'IS EMPTY'),
    ...both('notEmpty', 'IS NOT EMPTY'),
  ]),
}

function both<Word extends string>(word: Word, spelling: string): [string, Word][] {
  return [
    [word, word],
    [spelling, word],
  ]
}

/** The JSON form, `{operator, criteria: [{fieldName, operator, value, value2}, …]}`; undefined where it asks for nothing. */
export function conditionFrom(data: unknown, faults: string[]): Condition | undefined {
  const reader = new ConditionReader()
  const condition = reader.root(data)
  faults.push(...reader.faults)
  return reader.faults.length > 0 ? undefined : condition
}

class ConditionReader {
  readonly faults: string[] = []
  #terms = 0

  root(data: unknown): Condition | undefined {
    if (data === undefined || data === null) return undefined
    if (!isObject(data)) return this.#fault('data', 'must be an object with criteria')
    // Left alone, it would look like a search for everything.
    if (given(data, 'fieldName') !== undefined)
      return this.#fault('data', 'fieldName belongs into one of the criteria')
    const criteria = given(data, 'criteria') ?? []
    if (!Array.isArray(criteria) || criteria.length > 0) return this.#group(data, 'data', 1)
    this.#word(JOINING, data, 'data', 'and')
    return undefined
  }

  #node(node: unknown, at: string, level: number): Condition | undefined {
    if (!isObject(node)) return this.#fault(at, 'must be an object with a fieldName or with criteria')
    const [fieldName, operator] = [given(node, 'fieldName'), given(node, 'operator')]
    const hasCriteria = given(node, 'criteria') !== undefined
    if (hasCriteria && fieldName !== undefined) return this.#fault(at, 'has both a fieldName and criteria')
    const isJoining = typeof operator === 'string' && JOINING.words.has(operator)
    const isGroup = hasCriteria || (isJoining && fieldName === undefined)
    return isGroup ? this.#group(node, at, level) : this.#term(node, at)
  }

  #group(node: Node, at: string, level: number): Condition | undefined {
    // A body may be nested a thousand times: nothing further down is looked at.
    if (level > MAX_DEPTH) return this.#fault(at, `nested deeper than ${MAX_DEPTH} levels`)
    const operator = this.#word(JOINING, node, at, 'and')
    const criteria = given(node, 'criteria') ?? []
    if (!Array.isArray(criteria)) return this.#fault(at, 'criteria must be a list')
    if (criteria.length === 0) return this.#fault(at, 'has no criteria')
    const conditions: Condition[] = []
    for (const [index, child] of criteria.entries()) {
      if (this.#isFull) break
      const condition = this.#node(child, `${at}.criteria[${index}]`, level + 1)
      if (condition) conditions.push(condition)
    }
    return operator && { kind: 'group', operator, conditions, at }
  }

  #term(node: Node, at: string): Condition | undefined {
    if (++this.#terms > MAX_TERMS) return this.#fault(at, `a search has at most ${MAX_TERMS} conditions`)
    const fieldName = given(node, 'fieldName')
    const path = typeof fieldName === 'string' ? fieldName : ''
    if (path === '') this.#fault(at, 'fieldName must name a field')
    const operator = this.#word(COMPARING, node, at)
    return (
      operator && { kind: 'term', path, operator, value: own(node, 'value'), value2: own(node, 'value2'), at }
    )
  }

  #word<Word>(
    { words, fault }: Vocabulary<Word>,
    node: Node,
    at: string,
    otherwise?: string,
  ): Word | undefined {
    const spelled = given(node, 'operator') ?? otherwise
    if (typeof spelled !== 'string') {
      this.#fault(at, 'operator must be a word such as "="')
      return undefined
    }
    const word = words.get(spelled)
    if (word === undefined)
      this.#fault(at, `"${spelled.slice(0, 100)}" ${fault}${didYouMean(spelled, words.keys())}`)
    return word
  }

  /** Whatever follows would not be told any more. */
  get #isFull(): boolean {
    return this.#terms > MAX_TERMS || this.faults.length >= MAX_NAMED_FAULTS
  }

  /** There is no condition where there is a fault. */
  #fault(at: string, message: string): Condition | undefined {
    this.faults.push(`${at}: ${message}`)
    return undefined
  }
}

/** Own properties alone: nobody sent what an object inherits. */
function own(node: Node, key: string): unknown {
  return Object.hasOwn(node, key) ? node[key] : undefined
}

/** What makes the shape of a node may be null as well as absent; for a value null has a meaning. */
function given(node: Node, key: string): unknown {
  return own(node, key) ?? undefined
}
