// What inputs and displays of fields are given.
import type { ReactNode } from 'react'
import type { FieldInfo } from '../service/model-info.js'

export interface FieldInputProps {
  /** The model of the record that has the field. */
  readonly model: string
  readonly field: FieldInfo
  /** Where the value is in the form, as the service names it in errors: `email`, or `addresses[0].city`. */
  readonly path: string
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  /** Messages by path, of the whole form. */
  readonly errors: Readonly<Record<string, string>>
  /** A line below the input, such as the value that somebody else has saved meanwhile. */
  readonly note?: ReactNode
  /** Undefined for a record that is not saved yet. */
  readonly recordId?: number | undefined
  readonly version?: number | undefined
  readonly isDisabled?: boolean | undefined
}

export interface FieldValueProps {
  readonly field: FieldInfo
  readonly value: unknown
  /** Long texts are cut to one line, as in a table. */
  readonly isShort?: boolean | undefined
}

/** The value of a file field in a form: a file that is saved with the form, or null to clear the field. */
export interface PendingFile {
  readonly pendingFile: File | null
}

export function isPendingFile(value: unknown): value is PendingFile {
  return typeof value === 'object' && value !== null && 'pendingFile' in value
}

/**
 * What a person typed and what is no value of the field: a text that is no JSON, or an incomplete date, of which a browser tells no
 * text. A draft keeps it. A form must not be saved while it has one.
 *
 * Numbers need no such object: a text that is no number stays a text, which the service refuses.
 */
export interface InvalidInput {
  readonly $invalid: string
}

export function isInvalidInput(value: unknown): value is InvalidInput {
  return (
    typeof value === 'object' &&
    value !== null &&
    '$invalid' in value &&
    typeof value.$invalid === 'string' &&
    Object.keys(value).length === 1
  )
}

/** The id of the input of a path, for labels and for the focus. */
export function buildInputId(path: string): string {
  return `field-${path}`
}
