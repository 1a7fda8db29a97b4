// Binds a Condition to a model: resolves its paths and parses its values. The result is Criteria.
import {
  MAX_CONDITION_DEPTH,
  MAX_IN_VALUES,
  MAX_LIKE_CHARACTERS,
  MAX_CONDITION_ERRORS,
  MAX_TERMS,
  type Condition,
  type ConditionGroup,
  type Operator,
  type Term,
} from './condition.js'
import type { Criteria, PathStep } from './criteria.js'
import { FieldError, type Field } from '../values/field.js'
import type { Model } from '../definition/model.js'
import { OPERAND_TYPES } from './operand.js'
import { findField, ID_FIELD, resolvePath, buildStep } from './path.js'
import type { Visibility } from './visibility.js'
import { isObject, countCharacters, isArray, type Value } from '../values/value.js'

/** The operands that an operator takes. */
type OperandKind = 'nothing' | 'one' | 'pattern' | 'range' | 'list'

const OPERAND_KINDS: Readonly<Record<Operator, OperandKind>> = {
  '=': 'one',
  '!=': 'one',
  '<': 'one',
  '>': 'one',
  '<=': 'one',
  '>=': 'one',
  like: 'pattern',
  notLike: 'pattern',
  isNull: 'nothing',
  notNull: 'nothing',
  in: 'list',
  notIn: 'list',
  between: 'range',
  notBetween: 'range',
  isEmpty: 'nothing',
  notEmpty: 'nothing',
}

/** Suggestions for an operator that the type of the field does not have. */
const ALTERNATIVE_OPERATORS: Readonly<Partial<Record<Operator, Operator>>> = {
  isNull: 'isEmpty',
  notNull: 'notEmpty',
  isEmpty: 'isNull',
  notEmpty: 'notNull',
}

/** Counts comparisons. The limit applies to a whole search, which may have several trees. */
export function countTerms(condition: Condition): number {
  if (condition.kind === 'term') return 1
  return condition.conditions.reduce((sum, each) => sum + countTerms(each), 0)
}

/** Counts the values of all lists. */
export function countListValues(condition: Condition): number {
  if (condition.kind === 'term') return isArray(condition.value) ? condition.value.length : 0
  return condition.conditions.reduce((sum, each) => sum + countListValues(each), 0)
}

/** Binds the condition to this model. Adds errors and returns undefined if it is invalid. */
export function bindCondition(
  visibility: Visibility,
  model: Model,
  condition: Condition,
  errors: string[],
): Criteria | undefined {
  const binder = new ConditionBinder(visibility, model)
  const criteria = binder.bind(condition)
  errors.push(...binder.errors)
  return binder.errors.length > 0 ? undefined : criteria
}

interface ComparedField {
  readonly steps: readonly PathStep[]
  readonly field: Field
  readonly mask?: Criteria | undefined
}

class ConditionBinder {
  readonly errors: string[] = []

  constructor(
    readonly visibility: Visibility,
    readonly model: Model,
  ) {}

  bind(condition: Condition): Criteria | undefined {
    if (countTerms(condition) <= MAX_TERMS) return this.#bindCondition(condition, 1)
    return this.#addError(condition, `a search can have at most ${MAX_TERMS} conditions`)
  }

  #bindCondition(condition: Condition, level: number): Criteria | undefined {
    return condition.kind === 'term' ? this.#bindTerm(condition) : this.#bindGroup(condition, level)
  }

  #bindGroup(group: ConditionGroup, level: number): Criteria | undefined {
    if (level > MAX_CONDITION_DEPTH)
      return this.#addError(group, `must not be nested deeper than ${MAX_CONDITION_DEPTH} levels`)
    if (group.conditions.length === 0) return this.#addError(group, 'criteria must not be empty')
    const criteria = group.conditions.flatMap((each) => this.#bindCondition(each, level + 1) ?? [])
    const joined: Criteria = { kind: group.operator === 'or' ? 'or' : 'and', criteria }
    return group.operator === 'not' ? { kind: 'not', criteria: joined } : joined
  }

  #bindTerm(term: Term): Criteria | undefined {
    const path = resolvePath(this.visibility, this.model, term.path)
    if (typeof path === 'string') return this.#addError(term, path)
    const { steps, model, field } = path
    if (!field.relation)
      return this.#bindComparison(term, { steps, field, mask: this.visibility.mask(model, field) }, field)
    const step = buildStep(this.visibility, model, field)
    const related = [...steps, step]
    if (!comparesNames(term)) return this.#bindComparison(term, { steps: related, field: ID_FIELD }, field)
    const name = findField(this.visibility, step.target, step.target.nameField ?? '')
    const mask = name && this.visibility.mask(step.target, name)
    if (name) return this.#bindComparison(term, { steps: related, field: name, mask }, name)
    return this.#addError(
      term,
      `${term.path}: ${step.target.name} has no name field: compare the id or another field`,
    )
  }

  /** The type of `namedField`, the field that the request names, decides which operators and values are valid. */
  #bindComparison(
    term: Term,
    { steps, field, mask }: ComparedField,
    namedField: Field,
  ): Criteria | undefined {
    const { operator } = term
    const { operators } = OPERAND_TYPES[namedField.type]
    if (operators.includes(operator)) {
      const values = this.#parseValues(term, namedField)
      return { kind: 'comparison', steps, field, operator, values, ...(mask ? { mask } : {}) }
    }
    const alternative = ALTERNATIVE_OPERATORS[term.operator]
    const instead = alternative && operators.includes(alternative) ? `: use ${alternative}` : ''
    return this.#addError(
      term,
      `${term.path}: "${term.operator}" does not apply to type ${namedField.type}${instead}`,
    )
  }

  #parseValues(term: Term, namedField: Field): readonly Value[] {
    const inputs = listOperands(term)
    if (OPERAND_KINDS[term.operator] === 'list' && !isArray(term.value))
      this.#addError(term, `${term.path}: value must be a list`)
    if (inputs.length > MAX_IN_VALUES)
      this.#addError(term, `${term.path}: value must have at most ${MAX_IN_VALUES} items`)
    const values: Value[] = []
    for (const [index, input] of inputs.slice(0, MAX_IN_VALUES).entries()) {
      const value = parseOperand(term.operator, namedField, input)
      if (value instanceof FieldError)
        this.#addError(term, `${term.path}: ${describeOperand(term, index)} ${value.message}`)
      else values.push(value)
    }
    return values
  }

  /** Adds the error. Returns undefined, the result of a failed binding. */
  #addError({ at }: Condition, message: string): Criteria | undefined {
    if (this.errors.length < MAX_CONDITION_ERRORS) this.errors.push(`${at}: ${message}`)
    return undefined
  }
}

function parseOperand(operator: Operator, namedField: Field, input: unknown): Value | FieldError {
  const kind = OPERAND_KINDS[operator]
  if (input === undefined) return new FieldError('is required')
  if (input === null)
    return kind === 'one' ? null : new FieldError('must not be null: use isNull to find missing values')
  // An id may be compared with a whole record: `id = :user`.
  const operand =
    namedField === ID_FIELD && isObject(input) && Object.hasOwn(input, 'id') ? input['id'] : input
  const value = OPERAND_TYPES[namedField.type].parse(operand, namedField)
  const isLong =
    kind === 'pattern' && typeof value === 'string' && countCharacters(value) > MAX_LIKE_CHARACTERS
  return isLong ? new FieldError(`must have at most ${MAX_LIKE_CHARACTERS} characters`) : value
}

/** True if a relation is compared with names of related records instead of ids. */
function comparesNames(term: Term): boolean {
  const inputs = listOperands(term)
  return inputs.length > 0 && inputs.every((input) => typeof input === 'string')
}

function listOperands({ operator, value, value2 }: Term): readonly unknown[] {
  const kind = OPERAND_KINDS[operator]
  if (kind === 'nothing') return []
  if (kind === 'list') return isArray(value) ? value : []
  return kind === 'range' ? [value, value2] : [value]
}

/** Names an operand in messages. Called for errors only, because a search may have thousands of values. */
function describeOperand({ operator }: Term, index: number): string {
  if (OPERAND_KINDS[operator] === 'list') return `value[${index}]`
  return index === 0 ? 'value' : 'value2'
}
