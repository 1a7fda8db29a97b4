// Binds the checks of a model to its fields. Their conditions use the language of filters, and may compare two fields of the record.
import { VersoError } from '../../errors.js'
import type { CheckDefinition } from '../definition/define-model.js'
import { isReadable, isReference, type Model } from '../definition/model.js'
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'
import type { Field, FieldTypeName } from '../values/field.js'
import { bindCondition, countTerms } from './bind-condition.js'
import { FieldOperand, MAX_TERMS, type Condition, type Operator, type Term } from './condition.js'
import type { Comparison, Criteria } from './criteria.js'
import { parseFilter } from './filter.js'
import { OPERAND_TYPES } from './operand.js'
import { KEY_FIELD_NAMES } from './path.js'
import type { Visibility } from './visibility.js'

/** The checks of one model. */
export interface ModelChecks {
  readonly checks: readonly BoundCheck[]
  /** The integers that conditions compare with decimals. */
  readonly widened: readonly WidenedField[]
}

interface BoundCheck {
  /** The field that the error is about. */
  readonly field: string
  readonly message: string
  /** True for the records that break the rule: it negates the condition, so a record passes where the condition is unknown. */
  readonly violation: Criteria
}

/** An integer as a decimal, because one engine stores decimals as text, which an integer does not compare with. */
interface WidenedField {
  readonly from: string
  readonly field: Field
}

const NULL_TESTS: readonly Operator[] = ['isNull', 'notNull']
/** Types with the same name can be compared with each other. Types without a name only with values. */
const COMPARABLE_TYPES: Readonly<Partial<Record<FieldTypeName, string>>> = {
  string: 'text',
  text: 'text',
  enum: 'text',
  integer: 'number',
  long: 'number',
  decimal: 'number',
  boolean: 'boolean',
  date: 'date',
  time: 'time',
  datetime: 'datetime',
  uuid: 'uuid',
}

/** Binds the checks. Adds an error for each that is invalid. `visibility` must show all fields. */
export function bindChecks(visibility: Visibility, model: Model, errors: string[]): ModelChecks {
  const widened = new Map<string, WidenedField>()
  const checks = model.checks.flatMap((check, index) => {
    const name = `checks[${index}] "${shortenForMessage(check.condition)}"`
    const binder = new CheckBinder(visibility, model, widened)
    const bound = binder.bind(check, name)
    errors.push(...binder.errors)
    return bound && binder.errors.length === 0 ? [bound] : []
  })
  return { checks, widened: [...widened.values()] }
}

class CheckBinder {
  readonly errors: string[] = []

  constructor(
    readonly visibility: Visibility,
    readonly model: Model,
    /** All checks of a model share it: one statement evaluates them. */
    private readonly widened: Map<string, WidenedField>,
  ) {}

  bind(check: CheckDefinition, name: string): BoundCheck | undefined {
    const condition = this.#parse(check.condition, name)
    if (!condition) return undefined
    if (countTerms(condition) > MAX_TERMS)
      this.errors.push(`${name}: a check can have at most ${MAX_TERMS} comparisons`)
    const criteria = this.#bindCondition(condition)
    const { field = getFirstPath(condition), message } = check
    if (!this.model.fields.has(field) && check.field !== undefined)
      this.errors.push(`${name}: field: ${this.#describeUnknown(field)}`)
    return criteria && { field, message, violation: { kind: 'not', criteria } }
  }

  #parse(text: string, name: string): Condition | undefined {
    try {
      return parseFilter(text, {}, name, { comparesFields: true })
    } catch (error) {
      if (!(error instanceof VersoError)) throw error
      this.errors.push(error.message)
      return undefined
    }
  }

  /** The parser has limited the depth. */
  #bindCondition(condition: Condition): Criteria | undefined {
    if (condition.kind === 'term') return this.#bindTerm(condition)
    const criteria = condition.conditions.flatMap((each) => this.#bindCondition(each) ?? [])
    const joined: Criteria = { kind: condition.operator === 'or' ? 'or' : 'and', criteria }
    return condition.operator === 'not' ? { kind: 'not', criteria: joined } : joined
  }

  #bindTerm(term: Term): Criteria | undefined {
    const { operator, value, at } = term
    const field = this.#findField(term)
    const other = value instanceof FieldOperand ? this.#findField(value) : undefined
    if (!field || (value instanceof FieldOperand && !other)) return undefined
    if (value === null)
      return this.#addError(
        at,
        `${term.path}: a comparison with null is never true: use is null or is not null`,
      )
    if (field.relation) {
      if (NULL_TESTS.includes(operator)) return { kind: 'comparison', steps: [], field, operator, values: [] }
      return this.#addError(
        at,
        `${field.name} is a relation: a check can only test it with is null or is not null`,
      )
    }
    return other
      ? this.#compareFields(term, field, other)
      : bindCondition(this.visibility, this.model, term, this.errors)
  }

  #compareFields({ operator, at }: Term, field: Field, other: Field): Criteria | undefined {
    const kind = COMPARABLE_TYPES[field.type]
    if (kind === undefined || kind !== COMPARABLE_TYPES[other.type]) {
      return this.#addError(
        at,
        `${field.name} is of type ${field.type} and ${other.name} of type ${other.type}: they cannot be compared`,
      )
    }
    if (!OPERAND_TYPES[field.type].operators.includes(operator))
      return this.#addError(at, `${field.name}: "${operator}" does not apply to type ${field.type}`)
    const mixesDecimals = kind === 'number' && (field.type === 'decimal') !== (other.type === 'decimal')
    const [left, right] = mixesDecimals ? [this.#widen(field), this.#widen(other)] : [field, other]
    return {
      kind: 'comparison',
      steps: [],
      field: left,
      operator,
      values: [],
      otherField: right,
    } satisfies Comparison
  }

  #widen(field: Field): Field {
    if (field.type === 'decimal') return field
    const widened = this.widened.get(field.name) ?? {
      from: field.name,
      // No field of a model has such a name. It fits into an identifier of either engine.
      field: { ...field, name: `$d:${field.name}`, type: 'decimal' },
    }
    this.widened.set(field.name, widened)
    return widened.field
  }

  /** Finds a field that is part of the record, and that everybody who writes the record can be told about. */
  #findField({ path, at }: { readonly path: string; readonly at: string }): Field | undefined {
    const error = this.#describeUnfit(path)
    if (error === undefined) return this.model.fields.get(path)
    this.#addError(at, error)
    return undefined
  }

  #describeUnfit(path: string): string | undefined {
    const [first = ''] = path.split('.')
    const field = this.model.fields.get(path)
    if (path !== first && this.model.fields.get(first)?.relation)
      return `${shortenForMessage(path)} is a field of another record: a check can only use fields of ${this.model.name} itself`
    if (KEY_FIELD_NAMES.includes(path) || field?.isSystem)
      return `${path} is set by the service: a check cannot use it`
    if (!field) return this.#describeUnknown(path)
    if (!isReadable(field)) return `${path} is secret or binary: a check cannot use it`
    if (field.relation && !isReference(field))
      return `${path} is ${field.relation.isList ? 'a list' : 'an inverse relation'}: a check cannot use it`
    return undefined
  }

  #describeUnknown(name: string): string {
    const { fields, name: model } = this.model
    const own = [...fields.values()].filter((field) => !field.isSystem).map((field) => field.name)
    return `${model} has no field "${shortenForMessage(name)}"${didYouMean(name, own)}`
  }

  /** Adds the error. Returns undefined, the result of a failed binding. */
  #addError(at: string, message: string): Criteria | undefined {
    this.errors.push(`${at}: ${message}`)
    return undefined
  }
}

function getFirstPath(condition: Condition): string {
  if (condition.kind === 'term') return condition.path
  const [first] = condition.conditions
  return first ? getFirstPath(first) : ''
}
