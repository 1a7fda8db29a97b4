// A condition while a person edits it. It becomes a condition when all its values are valid.
import { completeTime, toLocalInput, toUtcText } from '../fields/date-text.js'
import { formatForInput, parseDecimal } from '../fields/number-text.js'
import type { FieldInfo, FieldKind } from '../service/model-info.js'
import { getLocale } from '../texts/texts.js'
import type { Texts } from '../texts/english.js'
import { hasValue, listOperators, type Condition, type OperatorName } from './conditions.js'
import type { RelatedRecord } from '../fields/relation-picker.js'

export interface ConditionDraft {
  readonly field: FieldInfo
  readonly operator: OperatorName
  /** As the inputs have them; `to` only for `between`. */
  readonly from: string
  readonly to: string
  readonly related: RelatedRecord | null
  readonly chosen: readonly (string | number)[]
}

export interface DraftErrors {
  readonly from?: string
  readonly to?: string
}

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
/** `YYYY-MM-DDTHH:mm` */
const MINUTE_CHARS = 16

export function startDraft(field: FieldInfo): ConditionDraft {
  const [operator = 'empty'] = listOperators(field)
  return { field, operator, from: '', to: '', related: null, chosen: [] }
}

export function draftFromCondition({ field, operator, value }: Condition): ConditionDraft {
  const draft = { ...startDraft(field), operator }
  if (operator === 'oneOf') return { ...draft, chosen: value as ConditionDraft['chosen'] }
  if (isRelation(field.kind)) return { ...draft, related: value as RelatedRecord | null }
  if (operator === 'between') {
    const [from, to] = value as readonly unknown[]
    return { ...draft, from: toInputText(field, from), to: toInputText(field, to) }
  }
  return { ...draft, from: toInputText(field, value) }
}

export function isRelation(kind: FieldKind): boolean {
  return kind === 'reference' || kind === 'links'
}

function toInputText({ kind }: FieldInfo, value: unknown): string {
  // An address that somebody has written may have a number.
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  if (kind === 'datetime') return toLocalInput(text).slice(0, MINUTE_CHARS)
  return kind === 'decimal' ? formatForInput(text, getLocale()) : text
}

type Parsed = { readonly value: string } | { readonly error: string }

/** Numbers stay texts, so that no digit changes. */
function parseOperand({ kind }: FieldInfo, typed: string, { list }: Texts): Parsed {
  const text = typed.trim()
  if (text === '') return { error: list.valueMissing }
  if (kind === 'decimal') return orError(parseDecimal(text, getLocale()), list.numberWrong)
  if (kind === 'integer' || kind === 'long') {
    const number = parseDecimal(text, getLocale())
    return orError(number?.includes('.') ? undefined : number, list.wholeNumberWrong)
  }
  if (kind === 'datetime') return orError(toUtcText(text), list.valueMissing)
  if (kind === 'time') return { value: completeTime(text) }
  if (kind === 'uuid') return orError(UUID.test(text) ? text.toLowerCase() : undefined, list.uuidWrong)
  return { value: text }
}

function orError(value: string | undefined, error: string): Parsed {
  return value === undefined ? { error } : { value }
}

/** Returns the condition, or the messages for its inputs. */
export function finishDraft(draft: ConditionDraft, texts: Texts): Condition | DraftErrors {
  const { field, operator } = draft
  const missing = { from: texts.list.valueMissing }
  if (!hasValue(operator)) return { field, operator, value: null }
  if (operator === 'oneOf')
    return draft.chosen.length === 0 ? missing : { field, operator, value: draft.chosen }
  if (isRelation(field.kind)) return draft.related ? { field, operator, value: draft.related } : missing
  const from = parseOperand(field, draft.from, texts)
  if (operator !== 'between')
    return 'error' in from ? { from: from.error } : { field, operator, value: from.value }
  const to = parseOperand(field, draft.to, texts)
  if ('value' in from && 'value' in to) return { field, operator, value: [from.value, to.value] }
  return { ...('error' in from ? { from: from.error } : {}), ...('error' in to ? { to: to.error } : {}) }
}

export function isCondition(result: Condition | DraftErrors): result is Condition {
  return 'operator' in result
}
