// Helpers and types for converting scalar fields and relations.
import type { RawEnum, RawField, RawOption, XmlAttributes } from './declarations.js'
import type { DiagnosticKind, ReportDiagnostic } from './report.js'
import type { JsonObject } from '../../model/values/value.js'

/** A definition in progress. `checkField` finds its errors. */
export type FieldDraft = JsonObject & { readonly type: string }

export interface DomainContext {
  readonly enums: ReadonlyMap<string, RawEnum>
  readonly sequences: ReadonlyMap<string, XmlAttributes>
  readonly selections: ReadonlyMap<string, readonly RawOption[]>
  /** The sequences that a converted field already uses. */
  readonly usedSequences: Set<string>
  /** Returns the name of the model that a reference leads to, if it exists. */
  readonly resolveTarget: (ref: string) => string | undefined
  /** Returns a suggestion for an unknown reference. */
  readonly suggestTarget: (ref: string) => string
  readonly report: ReportDiagnostic
}

export type ReportFieldDiagnostic = (kind: DiagnosticKind, detail?: string) => void

export const NO_REF_DETAIL = 'has no ref'

export function isTrueAttribute({ attributes }: RawField, option: string): boolean {
  return attributes.get(option) === 'true'
}

export function readCommonOptions({ attributes }: RawField): Omit<FieldDraft, 'type'> {
  const [title = '', help = ''] = [attributes.get('title'), attributes.get('help')]
  return {
    ...(title === '' ? {} : { title }),
    ...(help === '' || help === 'true' ? {} : { help }),
    ...(attributes.get('copy') === 'false' ? { copy: false } : {}),
  }
}

/** Clients do not send values that Java code would compute, so such a field is not required. */
export function isRequired(field: RawField): boolean {
  return isTrueAttribute(field, 'required') && field.body === ''
}
