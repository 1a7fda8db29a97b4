// Checks the rules of a definition: patterns and formats of fields, and the checks of a model. The catalog binds the checks to the fields.
import { didYouMean } from '../values/did-you-mean.js'
import {
  createFormatRule,
  createPatternRule,
  FORMAT_NAMES,
  type FieldRule,
  type FormatName,
} from '../values/field-rules.js'
import { isArray, isObject, validateText } from '../values/value.js'
import type { ReportError } from './check-field-options.js'
import type { CheckDefinition } from './define-model.js'

const RULE_OPTIONS = ['value', 'message']
const CHECK_OPTIONS = ['condition', 'message', 'field']
/** All checks of a model are columns of one statement. */
const MAX_CHECKS = 100

export function checkPattern(raw: unknown, report: ReportError): FieldRule | undefined {
  const rule = readRule('pattern', raw, report)
  if (!rule) return undefined
  try {
    return createPatternRule(rule.value, rule.message)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    report(`pattern is not a regular expression: ${error.message}`)
    return undefined
  }
}

export function checkFormat(raw: unknown, report: ReportError): FieldRule<FormatName> | undefined {
  const rule = readRule('format', raw, report)
  if (!rule) return undefined
  const name = FORMAT_NAMES.find((each) => each === rule.value)
  if (name) return createFormatRule(name, rule.message)
  const names = FORMAT_NAMES.map((each) => `"${each}"`).join(' or ')
  report(`format must be ${names}${didYouMean(rule.value, FORMAT_NAMES)}`)
  return undefined
}

interface WrittenRule {
  readonly value: string
  readonly message: string | undefined
}

function readRule(option: string, raw: unknown, report: ReportError): WrittenRule | undefined {
  if (raw === undefined) return undefined
  const rule = isObject(raw) && !(raw instanceof RegExp) ? raw : { value: raw }
  for (const key of Object.keys(rule)) {
    if (!RULE_OPTIONS.includes(key))
      report(`${option}: unknown option "${key}"${didYouMean(key, RULE_OPTIONS)}`)
  }
  const { value, message } = rule as { readonly value?: unknown; readonly message?: unknown }
  if (message !== undefined) checkMessage(option, message, report)
  if (typeof value === 'string' && value !== '')
    return { value, message: typeof message === 'string' ? message : undefined }
  report(`${option} must be non-empty text, or { value, message }`)
  return undefined
}

/** Returns the checks without errors of form. Their conditions are checked later. */
export function checkChecks(raw: unknown, report: ReportError): CheckDefinition[] {
  if (raw === undefined) return []
  if (!isArray(raw)) {
    report('checks must be a list of { condition, message, field }')
    return []
  }
  if (raw.length > MAX_CHECKS) report(`checks: a model can have at most ${MAX_CHECKS} checks`)
  return raw.flatMap((item, index) => checkCheck(item, `checks[${index}]`, report))
}

function checkCheck(raw: unknown, at: string, report: ReportError): CheckDefinition[] {
  if (!isObject(raw)) {
    report(
      `${at} must be an object such as { "condition": "end >= start", "message": "must be after the start" }`,
    )
    return []
  }
  for (const option of Object.keys(raw)) {
    if (!CHECK_OPTIONS.includes(option))
      report(`${at}: unknown option "${option}"${didYouMean(option, CHECK_OPTIONS)}`)
  }
  const { condition, message, field } = raw
  if (typeof condition !== 'string') report(`${at}: condition must be text such as "end >= start"`)
  if (field !== undefined && typeof field !== 'string') report(`${at}: field must be the name of a field`)
  checkMessage(at, message, report)
  if (typeof condition !== 'string' || typeof message !== 'string') return []
  return [{ condition, message, ...(typeof field === 'string' ? { field } : {}) }]
}

function checkMessage(at: string, message: unknown, report: ReportError): void {
  if (typeof message !== 'string' || message.trim() === '')
    report(`${at}: message must be text, which follows the name of the field in errors`)
  else {
    const error = validateText(message)
    if (error !== undefined) report(`${at}: message ${error}`)
  }
}
