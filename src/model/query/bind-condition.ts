// Conditions → Criteria: every path leads somewhere, every value is one that its field could have.
import {
  MAX_DEPTH,
  MAX_IN_VALUES,
  MAX_LIKE_LENGTH,
  MAX_NAMED_FAULTS,
  MAX_TERMS,
  type Condition,
  type Group,
  type Operator,
  type Term,
} from './condition.js'
import type { Criteria, Step } from './criteria.js'
import { Fault, type Field } from '../values/field-types.js'
import type { Model } from '../definition/model.js'
import { OPERANDS } from './operand.js'
import { fieldOf, ID, pathOf, stepOf } from './path.js'
import type { Sight } from './visibility.js'
import { isObject, lengthOf, type Value } from '../values/value.js'

/** What an operator takes. */
type Taking = 'nothing' | 'one' | 'pattern' | 'range' | 'list'

const TAKES: Readonly<Record<Operator, Taking>> = {
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

/** What was meant, where an operator does not suit a field. */
const INSTEAD: Readonly<Partial<Record<Operator, Operator>>> = {
  isNull: 'isEmpty',
  notNull: 'notEmpty',
  isEmpty: 'isNull',
  notEmpty: 'notNull',
}

/** How many comparisons there are: the limit is for a whole search, which may have several trees. */
export function countTerms(condition: Condition): number {
  if (condition.kind === 'term') return 1
  return condition.conditions.reduce((sum, each) => sum + countTerms(each), 0)
}

/** How many values its lists have. */
export function countValues(condition: Condition): number {
  if (condition.kind === 'term') return isList(condition.value) ? condition.value.length : 0
  return condition.conditions.reduce((sum, each) => sum + countValues(each), 0)
}

/** The condition for records of this model, or undefined and what is wrong with it. */
export function bind(
  sight: Sight,
  model: Model,
  condition: Condition,
  faults: string[],
): Criteria | undefined {
  const binder = new Binder(sight, model)
  const criteria = binder.bind(condition)
  faults.push(...binder.faults)
  return binder.faults.length > 0 ? undefined : criteria
}

class Binder {
  readonly faults: string[] = []

  constructor(
    readonly sight: Sight,
    readonly model: Model,
  ) {}

  bind(condition: Condition): Criteria | undefined {
    if (countTerms(condition) <= MAX_TERMS) return this.#condition(condition, 1)
    return this.#fault(condition, `a search has at most ${MAX_TERMS} conditions`)
  }

  #condition(condition: Condition, level: number): Criteria | undefined {
    return condition.kind === 'term' ? this.#term(condition) : this.#group(condition, level)
  }

  #group(group: Group, level: number): Criteria | undefined {
    if (level > MAX_DEPTH) return this.#fault(group, `nested deeper than ${MAX_DEPTH} levels`)
    if (group.conditions.length === 0) return this.#fault(group, 'has no criteria')
    const criteria = group.conditions.flatMap((each) => this.#condition(each, level + 1) ?? [])
    const joined: Criteria = { kind: group.operator === 'or' ? 'or' : 'and', criteria }
    return group.operator === 'not' ? { kind: 'not', criteria: joined } : joined
  }

  #term(term: Term): Criteria | undefined {
    const path = pathOf(this.sight, this.model, term.path)
    if (typeof path === 'string') return this.#fault(term, path)
    const { steps, model, field } = path
    if (!field.relation) return this.#comparison(term, steps, field, field, this.sight.mask(model, field))
    const step = stepOf(this.sight, model, field)
    if (!isByName(term)) return this.#comparison(term, [...steps, step], ID, field)
    const name = fieldOf(this.sight, step.target, step.target.nameField ?? '')
    if (name) return this.#comparison(term, [...steps, step], name, name, this.sight.mask(step.target, name))
    return this.#fault(term, `${term.path}: ${step.target.name} has no name: compare the id or another field`)
  }

  /** `asked` is the field that was named, and decides what can be asked. */
  #comparison(
    term: Term,
    steps: readonly Step[],
    field: Field,
    asked = field,
    mask?: Criteria,
  ): Criteria | undefined {
    const { operator } = term
    const { operators } = OPERANDS[asked.type]
    if (operators.includes(operator)) {
      const values = this.#values(term, asked)
      return { kind: 'comparison', steps, field, operator, values, ...(mask ? { mask } : {}) }
    }
    const meant = INSTEAD[term.operator]
    const instead = meant && operators.includes(meant) ? `: use ${meant}` : ''
    return this.#fault(term, `${term.path}: "${term.operator}" suits no ${asked.type}${instead}`)
  }

  #values(term: Term, asked: Field): readonly Value[] {
    const inputs = inputsOf(term)
    if (TAKES[term.operator] === 'list' && !isList(term.value))
      this.#fault(term, `${term.path}: value must be a list`)
    if (inputs.length > MAX_IN_VALUES)
      this.#fault(term, `${term.path}: value must have at most ${MAX_IN_VALUES} members`)
    const values: Value[] = []
    for (const [index, input] of inputs.slice(0, MAX_IN_VALUES).entries()) {
      const value = parseInput(term.operator, asked, input)
      if (value instanceof Fault) this.#fault(term, `${term.path}: ${nameOf(term, index)} ${value.message}`)
      else values.push(value)
    }
    return values
  }

  /** There are no criteria where there is a fault. */
  #fault({ at }: Condition, message: string): Criteria | undefined {
    if (this.faults.length < MAX_NAMED_FAULTS) this.faults.push(`${at}: ${message}`)
    return undefined
  }
}

function parseInput(operator: Operator, asked: Field, input: unknown): Value | Fault {
  const taking = TAKES[operator]
  if (input === undefined) return new Fault('is missing')
  if (input === null)
    return taking === 'one' ? null : new Fault('cannot be null (null is no value: use isNull)')
  // Who is meant may come as a whole: id = :user.
  const meant = asked === ID && isObject(input) && Object.hasOwn(input, 'id') ? input['id'] : input
  const value = OPERANDS[asked.type].parse(meant, asked)
  const isLong = taking === 'pattern' && typeof value === 'string' && lengthOf(value) > MAX_LIKE_LENGTH
  return isLong ? new Fault(`must have at most ${MAX_LIKE_LENGTH} characters`) : value
}

/** Whether a relation is compared with the names of neighbours, and not with their ids. */
function isByName(term: Term): boolean {
  const inputs = inputsOf(term)
  return inputs.length > 0 && inputs.every((input) => typeof input === 'string')
}

/** What was sent for an operator to take. */
function inputsOf({ operator, value, value2 }: Term): readonly unknown[] {
  const taking = TAKES[operator]
  if (taking === 'nothing') return []
  if (taking === 'list') return isList(value) ? value : []
  return taking === 'range' ? [value, value2] : [value]
}

/** What messages call it. Not made before it is needed: a search may have tens of thousands of values. */
function nameOf({ operator }: Term, index: number): string {
  if (TAKES[operator] === 'list') return `value[${index}]`
  return index === 0 ? 'value' : 'value2'
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}
