// Converts a field of domain XML to a field definition as `defineModel` takes it.
import { checkField } from '../../model/definition/check-field.js'
import { MAX_PRECISION } from '../../model/values/decimal.js'
import type { FieldDefinition } from '../../model/definition/define-model.js'
import type { DiagnosticKind, DomainDiagnostic } from './report.js'
import type { XmlAttributes, RawEnum, RawField, RawOption } from './declarations.js'
import { parseOrderKeys } from './order.js'
import { convertSequence } from './sequence.js'
import { suggestName } from './similar.js'

/** A definition in progress. `checkField` finds its errors. */
export type FieldDraft = Readonly<Record<string, unknown>> & { readonly type: string }

export interface DomainContext {
  readonly enums: ReadonlyMap<string, RawEnum>
  readonly sequences: ReadonlyMap<string, XmlAttributes>
  readonly selections: ReadonlyMap<string, readonly RawOption[]>
  /** The sequences that a converted field already uses. */
  readonly countedBy: Set<string>
  /** Returns the name of the model that a reference leads to, if it exists. */
  readonly resolveTarget: (ref: string) => string | undefined
  /** Returns a suggestion for an unknown reference. */
  readonly suggestTarget: (ref: string) => string
  readonly report: (line: DomainDiagnostic) => void
}

type ReportFieldDiagnostic = (kind: DiagnosticKind, detail?: string) => void

/** Every model has these from the service. */
const SYSTEM_FIELD_NAMES = new Set([
  'id',
  'version',
  'archived',
  'selected',
  'createdOn',
  'createdBy',
  'updatedOn',
  'updatedBy',
])
const RELATION_TYPES = new Set(['one-to-one', 'many-to-one', 'one-to-many', 'many-to-many'])
const LIST_TYPES = new Set(['one-to-many', 'many-to-many'])
const NUMBER_TYPES = new Set(['integer', 'long', 'decimal'])
const NO_REF_DETAIL = 'has no ref'

/** Returns undefined if the field is left out. */
export function convertField(
  entity: string,
  field: RawField,
  context: DomainContext,
): FieldDefinition | undefined {
  const report: ReportFieldDiagnostic = (kind, detail) => {
    const location = `${entity}.${field.name}`
    context.report(detail === undefined ? { kind, location } : { kind, location, detail })
  }
  if (SYSTEM_FIELD_NAMES.has(field.name)) report('reserved')
  else if (isTrueAttribute(field, 'formula')) report('formula')
  else if (isTrueAttribute(field, 'transient')) {
    if (field.body === '') report('transient')
    else report('computed', 'transient')
  } else {
    if (field.body !== '') report('computed', 'stored')
    const draft = RELATION_TYPES.has(field.type)
      ? convertRelation(field, context, report)
      : convertScalar(field, context, report)
    return draft as FieldDefinition | undefined
  }
  return undefined
}

function isTrueAttribute({ attributes }: RawField, option: string): boolean {
  return attributes.get(option) === 'true'
}

function readCommonOptions({ attributes }: RawField): Omit<FieldDraft, 'type'> {
  const [title = '', help = ''] = [attributes.get('title'), attributes.get('help')]
  return {
    ...(title === '' ? {} : { title }),
    ...(help === '' || help === 'true' ? {} : { help }),
    ...(attributes.get('copy') === 'false' ? { copy: false } : {}),
  }
}

/** Clients do not send values that Java code would compute, so such a field is not required. */
function isRequired(field: RawField): boolean {
  return isTrueAttribute(field, 'required') && field.body === ''
}

function convertRelation(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): FieldDraft | undefined {
  const { attributes, type } = field
  const ref = attributes.get('ref') ?? ''
  const target = context.resolveTarget(ref)
  if (target === undefined) {
    report('target', ref === '' ? NO_REF_DETAIL : `${ref}${context.suggestTarget(ref)}`)
    return undefined
  }
  if ((attributes.get('default') ?? '') !== '') report('default', 'a relation has none')
  const mappedBy = attributes.get('mappedBy')
  const orderBy = LIST_TYPES.has(type) ? parseOrderKeys(attributes.get('orderBy')) : []
  const base = {
    ...{ ...readCommonOptions(field), target },
    ...(mappedBy === undefined ? {} : { mappedBy }),
    ...(orderBy.length === 0 ? {} : { orderBy }),
  }
  if (type === 'one-to-many' && mappedBy === undefined) {
    report('unmapped-list')
    return { type: 'many-to-many', ...base }
  }
  if (type === 'one-to-many')
    return { type, ...base, ...(attributes.get('orphanRemoval') === 'false' ? {} : { owned: true }) }
  const required = isRequired(field) && mappedBy === undefined && !LIST_TYPES.has(type)
  const unique = type === 'many-to-one' && isTrueAttribute(field, 'unique')
  return { type, ...base, ...(required ? { required } : {}), ...(unique ? { unique } : {}) }
}

function convertScalar(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): FieldDraft | undefined {
  const type = resolveFieldType(field)
  if (type === 'binary') return { type, ...readCommonOptions(field) }
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
  return withDefault(field, withSelection(field, limited, choices, report), report)
}

function resolveFieldType(field: RawField): string {
  if (field.type !== 'string') return field.type
  if (isTrueAttribute(field, 'json')) return 'json'
  return isTrueAttribute(field, 'large') ? 'text' : 'string'
}

function readDigits(
  { attributes }: RawField,
  report: ReportFieldDiagnostic,
): Readonly<Record<string, unknown>> {
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
  const given = ['min', 'max'].flatMap((bound) => {
    const text = field.attributes.get(bound) ?? ''
    if (text === '') return []
    const value = draft.type === 'decimal' ? text : (parseInteger(text) ?? NaN)
    return [[bound, value] as const]
  })
  if (given.length === 0 || (!isText && !NUMBER_TYPES.has(draft.type))) return draft
  const bounds = Object.fromEntries(given)
  const length = isText && bounds['min'] === undefined ? bounds['max'] : bounds
  const limited: FieldDraft = isText ? { ...draft, length } : { ...draft, ...bounds }
  if (isAccepted(limited)) return limited
  report('limit', given.map(([bound]) => `${bound} ${field.attributes.get(bound) ?? ''}`).join(', '))
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
  choices: readonly DomainChoice[] | undefined,
  report: ReportFieldDiagnostic,
): FieldDraft {
  if (choices === undefined || draft.type === 'enum') return draft
  const name = field.attributes.get('selection') ?? ''
  const typed = choices.map(({ value, title }) => ({ value: parseDefaultValue(draft.type, value), title }))
  const selected = { ...draft, selection: typed }
  if (!isAccepted(selected)) report('selection', `${name} does not suit ${draft.type}`)
  else if (isDefaultOutside(field, selected)) report('selection', `${name} does not hold the default`)
  else return selected
  return draft
}

/** True if the default is valid except that the selection does not contain it. */
function isDefaultOutside(field: RawField, draft: FieldDraft): boolean {
  const text = field.attributes.get('default') ?? ''
  if (text === '' || draft['sequence'] !== undefined) return false
  const whole: Readonly<Record<string, unknown>> = { ...draft, default: parseDefaultValue(draft.type, text) }
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

interface DomainChoice {
  readonly value: string
  readonly title: string
}

function readChoices(
  field: RawField,
  context: DomainContext,
  report: ReportFieldDiagnostic,
): readonly DomainChoice[] | undefined {
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
  if (options.length === 0) report('selection', `${name} is nowhere defined`)
  return options.length === 0 ? undefined : options
}

/** Turns `Color.RED` into `RED`. */
function stripEnumName(draft: FieldDraft, text: string): string {
  return draft.type === 'enum' ? text.slice(text.lastIndexOf('.') + 1) : text
}

function readSequence(
  field: RawField,
  { sequences, countedBy }: DomainContext,
  report: ReportFieldDiagnostic,
): Readonly<Record<string, unknown>> | undefined {
  const name = field.attributes.get('sequence') ?? ''
  if (name === '') return undefined
  if (countedBy.has(name))
    report('sequence', `${name} numbers other records too: here each field counts by itself`)
  countedBy.add(name)
  const sequence = sequences.get(name)
  if (!sequence) {
    report('sequence', `${name} is nowhere defined`)
    return undefined
  }
  return convertSequence(sequence, (detail) => {
    report('sequence', detail)
  })
}

function isAccepted(draft: Readonly<Record<string, unknown>>): boolean {
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
