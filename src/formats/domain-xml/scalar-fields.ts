// Converts fields that are not relations, with their limits, selections, defaults and sequences.
import { checkField } from '../../model/definition/check-field.js'
import { MAX_SEQUENCE_PADDING } from '../../model/definition/check-field-options.js'
import { MAX_PRECISION } from '../../model/values/decimal.js'
import type { RawField, RawOption, XmlAttributes } from './declarations.js'
import {
  isRequired,
  isTrueAttribute,
  NO_REF_DETAIL,
  readCommonOptions,
  type DomainContext,
  type FieldDraft,
  type ReportFieldDiagnostic,
} from './field-draft.js'
import { suggestName } from './similar.js'
import type { JsonObject } from '../../model/values/value.js'

const NUMBER_TYPES = new Set(['integer', 'long', 'decimal'])

export function convertScalar(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): FieldDraft | undefined {
  const type = resolveFieldType(field)
  if (type === 'binary') return { type, ...readCommonOptions(field), ...readRules(field, report) }
  if (isTrueAttribute(field, 'encrypted')) report('encrypted')
  if (isTrueAttribute(field, 'translatable')) report('translatable')
  const choices = readChoices(field, context, report)
  if (type === 'enum' && choices === undefined) return undefined
  const sequence = type === 'string' ? readSequence(field, context, report) : undefined
  const base: FieldDraft = {
    type,
    ...readCommonOptions(field),
    ...(isRequired(field) && sequence === undefined ? { required: true } : {}),
    ...(type === 'decimal' ? readDigits(field, report) : {}),
    ...(isTrueAttribute(field, 'password') && (type === 'string' || type === 'text') ? { secret: true } : {}),
    ...(type === 'enum' ? { selection: choices } : {}),
    ...(sequence === undefined ? {} : { sequence }),
  }
  const limited = withUnique(field, withLimits(field, base, report), report)
  const whole = withDefault(field, withSelection(field, limited, choices, report), report)
  // Last, because the checks above test drafts, and would blame a wrong pattern on other options.
  return { ...whole, ...readRules(field, report) }
}

/** Keeps invalid rules, which the catalog rejects: a service without them would store what they forbid. */
function readRules({ attributes }: RawField, report: ReportFieldDiagnostic): JsonObject {
  const message = attributes.get('message') ?? ''
  const rules = ['pattern', 'format'].flatMap((option) => {
    const value = attributes.get(option) ?? ''
    if (value === '') return []
    return [[option, message === '' ? value : { value, message }] as const]
  })
  if (rules.length === 0 && message !== '') report('rule', 'message without pattern or format')
  return Object.fromEntries(rules)
}

function resolveFieldType(field: RawField): string {
  if (field.type !== 'string') return field.type
  if (isTrueAttribute(field, 'json')) return 'json'
  return isTrueAttribute(field, 'large') ? 'text' : 'string'
}

function readDigits({ attributes }: RawField, report: ReportFieldDiagnostic): JsonObject {
  const [precision, scale] = [
    parseInteger(attributes.get('precision')),
    parseInteger(attributes.get('scale')),
  ]
  if (precision === undefined && scale === undefined) return {}
  const digits = { precision: precision ?? 20, scale: scale ?? 2 }
  if (digits.precision > MAX_PRECISION || digits.precision < 1 || digits.scale > digits.precision) {
    report('limit', `precision ${digits.precision} and scale ${digits.scale}`)
    return { precision: MAX_PRECISION, scale: Math.min(digits.scale, MAX_PRECISION) }
  }
  return digits
}

/** Adds the bounds of a number, or of the length of a text. */
function withLimits(field: RawField, draft: FieldDraft, report: ReportFieldDiagnostic): FieldDraft {
  const isText = draft.type === 'string' || draft.type === 'text'
  const limits = ['min', 'max'].flatMap((bound) => {
    const text = field.attributes.get(bound) ?? ''
    if (text === '') return []
    const value = draft.type === 'decimal' ? text : (parseInteger(text) ?? NaN)
    return [[bound, value] as const]
  })
  if (limits.length === 0 || (!isText && !NUMBER_TYPES.has(draft.type))) return draft
  const bounds = Object.fromEntries(limits)
  const length = isText && bounds['min'] === undefined ? bounds['max'] : bounds
  const limited: FieldDraft = isText ? { ...draft, length } : { ...draft, ...bounds }
  if (isAccepted(limited)) return limited
  report('limit', limits.map(([bound]) => `${bound} ${field.attributes.get(bound) ?? ''}`).join(', '))
  return draft
}

function withUnique(field: RawField, draft: FieldDraft, report: ReportFieldDiagnostic): FieldDraft {
  if (!isTrueAttribute(field, 'unique')) return draft
  const unique = { ...draft, unique: true }
  if (isAccepted(unique) && draft['secret'] === undefined) return unique
  report('constraint', `${draft['secret'] === undefined ? draft.type : 'a secret'} cannot be unique`)
  return draft
}

function withSelection(
  field: RawField,
  draft: FieldDraft,
  choices: readonly RawOption[] | undefined,
  report: ReportFieldDiagnostic,
): FieldDraft {
  if (choices === undefined || draft.type === 'enum') return draft
  const name = field.attributes.get('selection') ?? ''
  const typed = choices.map(({ value, title }) => ({ value: parseDefaultValue(draft.type, value), title }))
  const selected = { ...draft, selection: typed }
  if (!isAccepted(selected)) report('selection', `${name} does not match the type ${draft.type}`)
  else if (isDefaultOutside(field, selected)) report('selection', `${name} does not contain the default`)
  else return selected
  return draft
}

/** True if the default is valid except that the selection does not contain it. */
function isDefaultOutside(field: RawField, draft: FieldDraft): boolean {
  const text = field.attributes.get('default') ?? ''
  if (text === '' || draft['sequence'] !== undefined) return false
  const whole: JsonObject = { ...draft, default: parseDefaultValue(draft.type, text) }
  return !isAccepted(whole) && isAccepted({ ...whole, selection: undefined })
}

/** Numbers and booleans that are not nullable default to 0 and false, except for required numbers. */
function withDefault(field: RawField, draft: FieldDraft, report: ReportFieldDiagnostic): FieldDraft {
  if (draft['sequence'] !== undefined) return draft
  const text = field.attributes.get('default') ?? ''
  if (text !== '') {
    const whole = { ...draft, default: parseDefaultValue(draft.type, stripEnumName(draft, text)) }
    if (isAccepted(whole)) return whole
    report('default', text)
  }
  const isNumber = NUMBER_TYPES.has(draft.type)
  if ((!isNumber && draft.type !== 'boolean') || isTrueAttribute(field, 'nullable')) return draft
  if (isNumber && draft['required'] === true) return draft
  const implicitDefault = draft.type === 'boolean' ? false : draft.type === 'decimal' ? '0' : 0
  const whole = { ...draft, default: implicitDefault }
  const isFree = ['min', 'max', 'selection'].every((option) => draft[option] === undefined)
  return isFree || isAccepted(whole) ? whole : draft
}

function readChoices(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): readonly RawOption[] | undefined {
  if (field.type === 'enum') {
    const ref = field.attributes.get('ref') ?? ''
    const items = context.enums.get(ref)?.items ?? []
    if (items.length === 0)
      report('enum', ref === '' ? NO_REF_DETAIL : `${ref}${suggestName(ref, context.enums.keys())}`)
    return items.length === 0 ? undefined : items.map(({ name, title }) => ({ value: name, title }))
  }
  const name = field.attributes.get('selection') ?? ''
  if (name === '') return undefined
  const options = context.selections.get(name) ?? []
  if (options.length === 0) report('selection', `${name} is not defined`)
  return options.length === 0 ? undefined : options
}

/** Turns `Color.RED` into `RED`. */
function stripEnumName(draft: FieldDraft, text: string): string {
  return draft.type === 'enum' ? text.slice(text.lastIndexOf('.') + 1) : text
}

function readSequence(
  field: RawField,
  { sequences, usedSequences }: DomainContext,
  report: ReportFieldDiagnostic,
): JsonObject | undefined {
  const name = field.attributes.get('sequence') ?? ''
  if (name === '') return undefined
  if (usedSequences.has(name))
    report('sequence', `${name} is also used by another field: here each field has its own counter`)
  usedSequences.add(name)
  const sequence = sequences.get(name)
  if (!sequence) {
    report('sequence', `${name} is not defined`)
    return undefined
  }
  return convertSequence(sequence, (detail) => {
    report('sequence', detail)
  })
}

function isAccepted(draft: JsonObject): boolean {
  let errors = 0
  // A valid placeholder name: only the options are checked.
  checkField('field', draft, () => errors++)
  return errors === 0
}

/** Converts the text of an attribute to the type. An invalid text stays as it is, and `isAccepted` rejects it. */
function parseDefaultValue(type: string, text: string): unknown {
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (type === 'integer' || type === 'long') return parseInteger(text) ?? text
  if (type !== 'json') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return NaN // Not valid JSON, so `isAccepted` rejects it.
  }
}

function parseInteger(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*[+-]?\d{1,16}\s*$/.test(text) ? Number(text) : undefined
}

/** Converts a `<sequence>` to the option of a field. Reports attributes that it cannot convert. */
function convertSequence(sequence: XmlAttributes, report: (detail: string) => void): JsonObject {
  const number = (name: string, usual: number): number => {
    const text = sequence.get(name)
    if (text === undefined || text.trim() === '') return usual
    if (/^\d{1,15}$/.test(text.trim())) return Number(text)
    report(`${name} ${text}`)
    return usual
  }
  const [padding, next, increment] = [number('padding', 0), number('initial', 1), number('increment', 1)]
  if (increment !== 1) report(`numbers increase by 1, not by ${increment}`)
  if (padding > MAX_SEQUENCE_PADDING)
    report(`numbers are padded to ${MAX_SEQUENCE_PADDING} digits, not to ${padding}`)
  const [prefix = '', suffix = ''] = [sequence.get('prefix'), sequence.get('suffix')]
  return {
    ...(prefix === '' ? {} : { prefix }),
    ...(suffix === '' ? {} : { suffix }),
    ...(padding === 0 ? {} : { padding: Math.min(padding, MAX_SEQUENCE_PADDING) }),
    ...(next === 1 ? {} : { next }),
  }
}
