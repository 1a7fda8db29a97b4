// A field as domain XML declares it → the definition that `defineModel` would take.
import { checkField } from '../../model/definition/check-field.js'
import { MAX_PRECISION } from '../../model/values/decimal.js'
import type { FieldDefinition } from '../../model/definition/define-model.js'
import type { ReportKind, ReportLine } from './report.js'
import type { Attributes, RawEnum, RawField, RawOption } from './declarations.js'
import { orderKeysIn } from './order.js'
import { sequenceOptions } from './sequence.js'
import { suggestName } from './similar.js'

/** A definition that is being made: what is wrong with it is found by the checker of all models. */
export type Draft = Readonly<Record<string, unknown>> & { readonly type: string }

export interface Surroundings {
  readonly enums: ReadonlyMap<string, RawEnum>
  readonly sequences: ReadonlyMap<string, Attributes>
  readonly selections: ReadonlyMap<string, readonly RawOption[]>
  /** The sequences that a field has been given numbers from. */
  readonly countedBy: Set<string>
  /** The name of the model that a reference leads to, if there is one. */
  readonly targetOf: (ref: string) => string | undefined
  /** What else a reference to nowhere may have meant, in words. */
  readonly suggestTarget: (ref: string) => string
  readonly report: (line: ReportLine) => void
}

type Complain = (kind: ReportKind, detail?: string) => void

/** Kept by the service, for every model. */
const KEPT = new Set([
  'id',
  'version',
  'archived',
  'selected',
  'createdOn',
  'createdBy',
  'updatedOn',
  'updatedBy',
])
const RELATIONS = new Set(['one-to-one', 'many-to-one', 'one-to-many', 'many-to-many'])
const LISTS = new Set(['one-to-many', 'many-to-many'])
const NUMBERS = new Set(['integer', 'long', 'decimal'])
const NO_REF = 'has no ref'

/** Undefined where the field is left out. */
export function definitionOf(
  entity: string,
  field: RawField,
  surroundings: Surroundings,
): FieldDefinition | undefined {
  const complain: Complain = (kind, detail) => {
    const place = `${entity}.${field.name}`
    surroundings.report(detail === undefined ? { kind, place } : { kind, place, detail })
  }
  if (KEPT.has(field.name)) complain('reserved')
  else if (is(field, 'formula')) complain('formula')
  else if (is(field, 'transient')) {
    if (field.body === '') complain('transient')
    else complain('computed', 'transient')
  } else {
    if (field.body !== '') complain('computed', 'stored')
    const draft = RELATIONS.has(field.type)
      ? relationOf(field, surroundings, complain)
      : scalarOf(field, surroundings, complain)
    return draft as FieldDefinition | undefined
  }
  return undefined
}

function is({ attributes }: RawField, option: string): boolean {
  return attributes.get(option) === 'true'
}

/** What fields of every type may say. */
function commonOf({ attributes }: RawField): Omit<Draft, 'type'> {
  const [title = '', help = ''] = [attributes.get('title'), attributes.get('help')]
  return {
    ...(title === '' ? {} : { title }),
    ...(help === '' || help === 'true' ? {} : { help }),
    ...(attributes.get('copy') === 'false' ? { copy: false } : {}),
  }
}

/** Nobody sends what Java would have computed, so that is not required. */
function isRequired(field: RawField): boolean {
  return is(field, 'required') && field.body === ''
}

function relationOf(field: RawField, around: Surroundings, complain: Complain): Draft | undefined {
  const { attributes, type } = field
  const ref = attributes.get('ref') ?? ''
  const target = around.targetOf(ref)
  if (target === undefined) {
    complain('target', ref === '' ? NO_REF : `${ref}${around.suggestTarget(ref)}`)
    return undefined
  }
  if ((attributes.get('default') ?? '') !== '') complain('default', 'a relation has none')
  const mappedBy = attributes.get('mappedBy')
  const orderBy = LISTS.has(type) ? orderKeysIn(attributes.get('orderBy')) : []
  const base = {
    ...{ ...commonOf(field), target },
    ...(mappedBy === undefined ? {} : { mappedBy }),
    ...(orderBy.length === 0 ? {} : { orderBy }),
  }
  if (type === 'one-to-many' && mappedBy === undefined) {
    complain('unmapped-list')
    return { type: 'many-to-many', ...base }
  }
  if (type === 'one-to-many')
    return { type, ...base, ...(attributes.get('orphanRemoval') === 'false' ? {} : { owned: true }) }
  const required = isRequired(field) && mappedBy === undefined && !LISTS.has(type)
  const unique = type === 'many-to-one' && is(field, 'unique')
  return { type, ...base, ...(required ? { required } : {}), ...(unique ? { unique } : {}) }
}

function scalarOf(field: RawField, surroundings: Surroundings, complain: Complain): Draft | undefined {
  const type = typeOf(field)
  if (type === 'binary') return { type, ...commonOf(field) }
  if (is(field, 'encrypted')) complain('encrypted')
  if (is(field, 'translatable')) complain('translatable')
  const choices = choicesOf(field, surroundings, complain)
  if (type === 'enum' && choices === undefined) return undefined
  const sequence = type === 'string' ? sequenceOf(field, surroundings, complain) : undefined
  const base: Draft = {
    type,
    ...commonOf(field),
    ...(isRequired(field) && sequence === undefined ? { required: true } : {}),
    ...(type === 'decimal' ? digitsOf(field, complain) : {}),
    ...(is(field, 'password') && (type === 'string' || type === 'text') ? { secret: true } : {}),
    ...(type === 'enum' ? { selection: choices } : {}),
    ...(sequence === undefined ? {} : { sequence }),
  }
  const limited = withUnique(field, withLimits(field, base, complain), complain)
  return withDefault(field, withSelection(field, limited, choices, complain), complain)
}

function typeOf(field: RawField): string {
  if (field.type !== 'string') return field.type
  if (is(field, 'json')) return 'json'
  return is(field, 'large') ? 'text' : 'string'
}

function digitsOf({ attributes }: RawField, complain: Complain): Readonly<Record<string, unknown>> {
  const [precision, scale] = [wholeIn(attributes.get('precision')), wholeIn(attributes.get('scale'))]
  if (precision === undefined && scale === undefined) return {}
  const digits = { precision: precision ?? 20, scale: scale ?? 2 }
  if (digits.precision > MAX_PRECISION || digits.precision < 1 || digits.scale > digits.precision) {
    complain('limit', `precision ${digits.precision} and scale ${digits.scale}`)
    return { precision: MAX_PRECISION, scale: Math.min(digits.scale, MAX_PRECISION) }
  }
  return digits
}

/** The bounds of a number, or of the length of a text. */
function withLimits(field: RawField, draft: Draft, complain: Complain): Draft {
  const isText = draft.type === 'string' || draft.type === 'text'
  const given = ['min', 'max'].flatMap((bound) => {
    const text = field.attributes.get(bound) ?? ''
    if (text === '') return []
    const value = draft.type === 'decimal' ? text : (wholeIn(text) ?? NaN)
    return [[bound, value] as const]
  })
  if (given.length === 0 || (!isText && !NUMBERS.has(draft.type))) return draft
  const bounds = Object.fromEntries(given)
  const length = isText && bounds['min'] === undefined ? bounds['max'] : bounds
  const limited: Draft = isText ? { ...draft, length } : { ...draft, ...bounds }
  if (isAccepted(limited)) return limited
  complain('limit', given.map(([bound]) => `${bound} ${field.attributes.get(bound) ?? ''}`).join(', '))
  return draft
}

function withUnique(field: RawField, draft: Draft, complain: Complain): Draft {
  if (!is(field, 'unique')) return draft
  const unique = { ...draft, unique: true }
  if (isAccepted(unique) && draft['secret'] === undefined) return unique
  complain('constraint', `${draft['secret'] === undefined ? draft.type : 'a secret'} cannot be unique`)
  return draft
}

function withSelection(
  field: RawField,
  draft: Draft,
  choices: readonly Choice[] | undefined,
  complain: Complain,
): Draft {
  if (choices === undefined || draft.type === 'enum') return draft
  const name = field.attributes.get('selection') ?? ''
  const typed = choices.map(({ value, title }) => ({ value: valueIn(draft.type, value), title }))
  const selected = { ...draft, selection: typed }
  if (!isAccepted(selected)) complain('selection', `${name} does not suit ${draft.type}`)
  else if (isDefaultOutside(field, selected)) complain('selection', `${name} does not hold the default`)
  else return selected
  return draft
}

/** A default that would do but for the selection. */
function isDefaultOutside(field: RawField, draft: Draft): boolean {
  const text = field.attributes.get('default') ?? ''
  if (text === '' || draft['sequence'] !== undefined) return false
  const whole: Readonly<Record<string, unknown>> = { ...draft, default: valueIn(draft.type, text) }
  return !isAccepted(whole) && isAccepted({ ...whole, selection: undefined })
}

/** Numbers and booleans that cannot be null begin as 0 and false; a number that is required is asked for. */
function withDefault(field: RawField, draft: Draft, complain: Complain): Draft {
  if (draft['sequence'] !== undefined) return draft
  const text = field.attributes.get('default') ?? ''
  if (text !== '') {
    const whole = { ...draft, default: valueIn(draft.type, enumConstant(draft, text)) }
    if (isAccepted(whole)) return whole
    complain('default', text)
  }
  const isNumber = NUMBERS.has(draft.type)
  if ((!isNumber && draft.type !== 'boolean') || is(field, 'nullable')) return draft
  if (isNumber && draft['required'] === true) return draft
  const usual = draft.type === 'boolean' ? false : draft.type === 'decimal' ? '0' : 0
  const whole = { ...draft, default: usual }
  const isFree = ['min', 'max', 'selection'].every((option) => draft[option] === undefined)
  return isFree || isAccepted(whole) ? whole : draft
}

interface Choice {
  readonly value: string
  readonly title: string
}

function choicesOf(field: RawField, around: Surroundings, complain: Complain): readonly Choice[] | undefined {
  if (field.type === 'enum') {
    const ref = field.attributes.get('ref') ?? ''
    const items = around.enums.get(ref)?.items ?? []
    if (items.length === 0)
      complain('enum', ref === '' ? NO_REF : `${ref}${suggestName(ref, around.enums.keys())}`)
    return items.length === 0 ? undefined : items.map(({ name, title }) => ({ value: name, title }))
  }
  const name = field.attributes.get('selection') ?? ''
  if (name === '') return undefined
  const options = around.selections.get(name) ?? []
  if (options.length === 0) complain('selection', `${name} is nowhere defined`)
  return options.length === 0 ? undefined : options
}

/** `Color.RED` is the constant `RED`. */
function enumConstant(draft: Draft, text: string): string {
  return draft.type === 'enum' ? text.slice(text.lastIndexOf('.') + 1) : text
}

function sequenceOf(
  field: RawField,
  { sequences, countedBy }: Surroundings,
  complain: Complain,
): Readonly<Record<string, unknown>> | undefined {
  const name = field.attributes.get('sequence') ?? ''
  if (name === '') return undefined
  if (countedBy.has(name))
    complain('sequence', `${name} numbers other records too: here each field counts by itself`)
  countedBy.add(name)
  const sequence = sequences.get(name)
  if (!sequence) {
    complain('sequence', `${name} is nowhere defined`)
    return undefined
  }
  return sequenceOptions(sequence, (detail) => {
    complain('sequence', detail)
  })
}

function isAccepted(draft: Readonly<Record<string, unknown>>): boolean {
  let faults = 0
  // Only its options are in question, not its name.
  checkField('field', draft, () => faults++)
  return faults === 0
}

/** What a text of XML means in this type; what means nothing is left as it is, for the checker to refuse. */
function valueIn(type: string, text: string): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (type === 'integer' || type === 'long') return wholeIn(text) ?? text
  if (type !== 'json') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return NaN // No JSON, and so refused.
  }
}

function wholeIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*[+-]?\d{1,16}\s*$/.test(text) ? Number(text) : undefined
}
