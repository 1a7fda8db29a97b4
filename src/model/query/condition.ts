// Conditions as a client sends them, as JSON or as filter text. Both become the same tree, which is not yet bound to a model.
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'
import { isObject, type JsonObject } from '../values/value.js'

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

export interface ConditionGroup {
  readonly kind: 'group'
  /** `not` negates the conjunction of its conditions. */
  readonly operator: 'and' | 'or' | 'not'
  readonly conditions: readonly Condition[]
  /** The position in the request, for messages. */
  readonly at: string
}

export interface Term {
  readonly kind: 'term'
  /** A field, or a dotted path over relations. */
  readonly path: string
  readonly operator: Operator
  /** The value as sent: absent for operators such as isNull, a list for in and notIn. */
  readonly value?: unknown
  /** The upper bound of between. */
  readonly value2?: unknown
  readonly at: string
}

export type Condition = ConditionGroup | Term

/** Another field of the record in the place of a value. Only the checks of a model have it, so clients cannot send it. */
export class FieldOperand {
  constructor(
    readonly path: string,
    readonly at: string,
  ) {}
}

export const MAX_CONDITION_DEPTH = 16
export const MAX_TERMS = 64
export const MAX_IN_VALUES = 1_000
/** The limit for all lists of a search together, because parsing them blocks the event loop. */
export const MAX_LIST_VALUES = 5_000
export const MAX_LIKE_CHARACTERS = 256
/** The response to an invalid search lists at most this many errors. */
export const MAX_CONDITION_ERRORS = 20

interface Vocabulary<Word> {
  readonly words: ReadonlyMap<string, Word>
  /** The end of the message for an unknown word. */
  readonly error: string
}

const JOIN_OPERATORS: Vocabulary<ConditionGroup['operator']> = {
  error: 'is not one of "and", "or", "not"',
  words: new Map([...mapSpellings('and', 'AND'), ...mapSpellings('or', 'OR'), ...mapSpellings('not', 'NOT')]),
}

const COMPARISON_OPERATORS: Vocabulary<Operator> = {
  error: 'is not an operator',
  words: new Map<string, Operator>([
    ...mapSpellings('=', 'equals'),
    ...mapSpellings('!=', 'notEqual'),
    ...mapSpellings('<', 'lessThan'),
    ...mapSpellings('>', 'greaterThan'),
    ...mapSpellings('<=', 'lessOrEqual'),
    ...mapSpellings('>=', 'greaterOrEqual'),
    ...mapSpellings('like', 'LIKE'),
    ...mapSpellings('notLike', 'NOT LIKE'),
    ...mapSpellings('isNull', 'IS NULL'),
    ...mapSpellings('notNull', 'IS NOT NULL'),
    ...mapSpellings('in', 'IN'),
    ...mapSpellings('notIn', 'NOT IN'),
    ...mapSpellings('between', 'BETWEEN'),
    ...mapSpellings('notBetween', 'NOT BETWEEN'),
    ...mapSpellings('isEmpty', 'IS EMPTY'),
    ...mapSpellings('notEmpty', 'IS NOT EMPTY'),
  ]),
}

function mapSpellings<Word extends string>(word: Word, spelling: string): [string, Word][] {
  return [
    [word, word],
    [spelling, word],
  ]
}

/** Parses the JSON form `{operator, criteria: [{fieldName, operator, value, value2}, …]}`. Returns undefined if it has no criteria. */
export function parseConditionJson(data: unknown, errors: string[]): Condition | undefined {
  const reader = new ConditionReader()
  const condition = reader.readRoot(data)
  errors.push(...reader.errors)
  return reader.errors.length > 0 ? undefined : condition
}

class ConditionReader {
  readonly errors: string[] = []
  #terms = 0

  readRoot(data: unknown): Condition | undefined {
    if (data === undefined || data === null) return undefined
    if (!isObject(data)) return this.#addError('data', 'must be an object with criteria')
    // Ignoring it would turn the request into a search for all records.
    if (getOwnOrUndefined(data, 'fieldName') !== undefined)
      return this.#addError('data', 'fieldName must be inside one of the criteria')
    const criteria = getOwnOrUndefined(data, 'criteria') ?? []
    if (!Array.isArray(criteria) || criteria.length > 0) return this.#readGroup(data, 'data', 1)
    this.#readWord(JOIN_OPERATORS, data, 'data', 'and')
    return undefined
  }

  #readNode(node: unknown, at: string, level: number): Condition | undefined {
    if (!isObject(node)) return this.#addError(at, 'must be an object with a fieldName or with criteria')
    const [fieldName, operator] = [getOwnOrUndefined(node, 'fieldName'), getOwnOrUndefined(node, 'operator')]
    const hasCriteria = getOwnOrUndefined(node, 'criteria') !== undefined
    if (hasCriteria && fieldName !== undefined) return this.#addError(at, 'has both a fieldName and criteria')
    const isJoining = typeof operator === 'string' && JOIN_OPERATORS.words.has(operator)
    const isGroup = hasCriteria || (isJoining && fieldName === undefined)
    return isGroup ? this.#readGroup(node, at, level) : this.#readTerm(node, at)
  }

  #readGroup(node: JsonObject, at: string, level: number): Condition | undefined {
    // Stops the recursion: a body may be nested a thousand levels deep.
    if (level > MAX_CONDITION_DEPTH)
      return this.#addError(at, `must not be nested deeper than ${MAX_CONDITION_DEPTH} levels`)
    const operator = this.#readWord(JOIN_OPERATORS, node, at, 'and')
    const criteria = getOwnOrUndefined(node, 'criteria') ?? []
    if (!Array.isArray(criteria)) return this.#addError(at, 'criteria must be a list')
    if (criteria.length === 0) return this.#addError(at, 'criteria must not be empty')
    const conditions: Condition[] = []
    for (const [index, child] of criteria.entries()) {
      if (this.#isFull) break
      const condition = this.#readNode(child, `${at}.criteria[${index}]`, level + 1)
      if (condition) conditions.push(condition)
    }
    return operator && { kind: 'group', operator, conditions, at }
  }

  #readTerm(node: JsonObject, at: string): Condition | undefined {
    if (++this.#terms > MAX_TERMS)
      return this.#addError(at, `a search can have at most ${MAX_TERMS} conditions`)
    const fieldName = getOwnOrUndefined(node, 'fieldName')
    const path = typeof fieldName === 'string' ? fieldName : ''
    if (path === '') this.#addError(at, 'fieldName must name a field')
    const operator = this.#readWord(COMPARISON_OPERATORS, node, at)
    return (
      operator && {
        kind: 'term',
        path,
        operator,
        value: getOwn(node, 'value'),
        value2: getOwn(node, 'value2'),
        at,
      }
    )
  }

  #readWord<Word>(
    { words, error }: Vocabulary<Word>,
    node: JsonObject,
    at: string,
    otherwise?: string,
  ): Word | undefined {
    const spelled = getOwnOrUndefined(node, 'operator') ?? otherwise
    if (typeof spelled !== 'string') {
      this.#addError(at, 'operator must be text such as "="')
      return undefined
    }
    const word = words.get(spelled)
    if (word === undefined)
      this.#addError(at, `"${shortenForMessage(spelled)}" ${error}${didYouMean(spelled, words.keys())}`)
    return word
  }

  /** The response has no room for further errors. */
  get #isFull(): boolean {
    return this.#terms > MAX_TERMS || this.errors.length >= MAX_CONDITION_ERRORS
  }

  /** Adds the error. Returns undefined, the result of a failed parse. */
  #addError(at: string, message: string): Condition | undefined {
    this.errors.push(`${at}: ${message}`)
    return undefined
  }
}

/** Reads own properties only: inherited ones were not sent. */
function getOwn(node: JsonObject, key: string): unknown {
  return Object.hasOwn(node, key) ? node[key] : undefined
}

/** Treats null as absent. Structural keys may be null; for values, null is meaningful. */
function getOwnOrUndefined(node: JsonObject, key: string): unknown {
  return getOwn(node, key) ?? undefined
}
