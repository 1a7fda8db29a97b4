import { VersoError } from '../../errors.js'
import type { Field } from '../values/field.js'
import type { Model } from './model.js'

const MAX_FIELD_ERRORS = 100
const MAX_FIELD_PATH_CHARACTERS = 100

/** The message of a rule of the application about a field. */
export interface RuleMessage {
  readonly model: Model
  readonly field: Field
  /** The path of the field in the request. */
  readonly path: string
  readonly message: string
}

/** Field errors with messages of application rules. A user may see some of these although the write that failed had all permissions. */
export class RuleError extends VersoError {
  constructor(
    { kind, message, details }: VersoError,
    readonly messages: readonly RuleMessage[],
  ) {
    super(kind, message, details)
  }
}

/** Collects the errors of the values that a client sent, by field. */
export class FieldErrors {
  readonly #byField = new Map<string, string>()
  readonly #ofRules: RuleMessage[] = []
  #hasHidden = false

  /** Adds an error about a field that the client must not know. */
  addHidden(): void {
    this.#hasHidden = true
  }

  get hasHidden(): boolean {
    return this.#hasHidden
  }

  add(field: string, message: string): void {
    if (!this.#byField.has(field)) this.#byField.set(field, message)
  }

  /** Adds the errors of another list. One without fields is about values that the client must not know. */
  addAll({ kind, details }: VersoError): void {
    if (kind === 'invalid' && !details.errors) this.addHidden()
    for (const [field, message] of Object.entries(details.errors ?? {})) this.add(field, message)
  }

  addOfRule(rule: RuleMessage): void {
    this.add(rule.path, rule.message)
    this.#ofRules.push(rule)
  }

  /** True once a response lists no further errors, so further checks can be skipped. */
  get isFull(): boolean {
    return this.#byField.size >= MAX_FIELD_ERRORS
  }

  /** The fields with their messages. */
  [Symbol.iterator](): Iterator<readonly [field: string, message: string]> {
    return this.#byField.entries()
  }

  has(field: string): boolean {
    return this.#byField.has(field)
  }

  get count(): number {
    return this.#byField.size + (this.#hasHidden ? 1 : 0)
  }

  /** Throws if there are errors. Omit the model if they concern several models. */
  refuseIfAny(model?: Model): void {
    if (this.count > 0) throw this.toError(model)
  }

  toError(model?: Model): VersoError {
    const named = [...this.#byField].slice(0, MAX_FIELD_ERRORS)
    const errors = Object.fromEntries(
      named.map(([field, message]) => [field.slice(0, MAX_FIELD_PATH_CHARACTERS), message]),
    )
    const list = named
      .slice(0, 5)
      .map(([field, message]) => `${field.slice(0, MAX_FIELD_PATH_CHARACTERS)} ${message}`)
    const more = this.#byField.size > list.length ? ` and ${this.#byField.size - list.length} more` : ''
    const hidden = this.#hasHidden ? ['it breaks a rule about values that you may not see'] : []
    const what = model ? `${model.name} was not written` : 'Nothing was written'
    const why = [...(list.length > 0 ? [list.join('; ') + more] : []), ...hidden].join('; ')
    const error = new VersoError('invalid', `${what}: ${why}`, list.length > 0 ? { errors } : {})
    return this.#ofRules.length > 0 ? new RuleError(error, this.#ofRules) : error
  }
}

/** Creates the error of one field, or of a record inside it; its path is then `addresses[1].` */
export function createFieldError(model: Model, path: string, message: string): VersoError {
  const name = path.replace(/\.$/, '')
  return new VersoError('invalid', `${model.name} was not written: ${name} ${message}`, {
    errors: { [name]: message },
  })
}
