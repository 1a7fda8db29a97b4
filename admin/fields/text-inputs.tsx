// Inputs for texts: one line, several lines, secrets, UUIDs, JSON.
import TextField from '@mui/material/TextField'
import { useState } from 'react'
import { useTexts } from '../texts/texts.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { countCharacters, findFieldProblem } from './field-problems.js'
import { buildInputId, isInvalidInput, type FieldInputProps } from './field-props.js'
import { useTypedText } from './typed-text.js'

/** The number of characters that are left is shown when it gets small. */
const REMARK_PART = 0.1
const REMARK_CHARS = 200
const MIN_ROWS = 3
/** In a line of a list. */
const LINE_ROWS = 1
const MAX_ROWS = 20
const MONOSPACE = { fontFamily: 'ui-monospace, monospace', fontSize: '.85rem' } as const

/** `lines[0].remark` is in a line of a list. */
function findMinRows(path: string): number {
  return path.includes('[') ? LINE_ROWS : MIN_ROWS
}

/** An emptied text is null: the field has no value. */
function toValue(text: string): string | null {
  return text === '' ? null : text
}

function useRemark(text: string, maxSize: number | undefined): string | undefined {
  const { fields } = useTexts()
  if (maxSize === undefined || text.length < maxSize - Math.min(maxSize * REMARK_PART, REMARK_CHARS))
    return undefined
  const left = maxSize - countCharacters(text)
  return left < 0 ? undefined : fields.charactersLeft(left)
}

export function StringInput(props: FieldInputProps) {
  const { field, path, value, onChange, isDisabled } = props
  const { fields } = useTexts()
  const text = typeof value === 'string' ? value : ''
  // No attribute maxlength: it would cut a pasted text without a word.
  const problem = findFieldProblem(field, value, fields)
  const isLong = field.kind === 'text'
  const hint = field.isWriteOnly ? fields.writeOnly : undefined
  return (
    <FieldFrame input={props} problem={problem} remark={useRemark(text, field.maxSize)} hint={hint}>
      <TextField
        id={buildInputId(path)}
        label={field.title}
        value={text}
        onChange={(event) => onChange(toValue(event.target.value))}
        required={field.isRequired}
        disabled={isDisabled}
        error={findError(props, problem) !== undefined}
        autoComplete="off"
        {...(isLong ? { multiline: true, minRows: findMinRows(path), maxRows: MAX_ROWS } : {})}
        slotProps={{ htmlInput: { 'aria-describedby': describeInput(path) } }}
      />
    </FieldFrame>
  )
}

/** Begins empty. An emptied secret is undefined, which keeps the stored one. */
export function SecretInput(props: FieldInputProps) {
  const { field, path, value, onChange, recordId, isDisabled } = props
  const { fields } = useTexts()
  return (
    <FieldFrame input={props} hint={recordId === undefined ? fields.secretNew : fields.secret}>
      <TextField
        id={buildInputId(path)}
        label={field.title}
        type="password"
        value={typeof value === 'string' ? value : ''}
        onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value)}
        required={field.isRequired && recordId === undefined}
        disabled={isDisabled}
        error={findError(props) !== undefined}
        autoComplete="new-password"
        slotProps={{ htmlInput: { 'aria-describedby': describeInput(path) } }}
      />
    </FieldFrame>
  )
}

export function UuidInput(props: FieldInputProps) {
  const { field, path, value, onChange, isDisabled } = props
  const { fields } = useTexts()
  const [isFocused, setFocused] = useState(false)
  const problem = isFocused ? undefined : findFieldProblem(field, value, fields)
  return (
    <FieldFrame input={props} problem={problem}>
      <TextField
        id={buildInputId(path)}
        label={field.title}
        value={typeof value === 'string' ? value : ''}
        onChange={(event) => onChange(toValue(event.target.value.trim().toLowerCase()))}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        required={field.isRequired}
        disabled={isDisabled}
        error={findError(props, problem) !== undefined}
        autoComplete="off"
        slotProps={{
          htmlInput: {
            'aria-describedby': describeInput(path),
            spellCheck: false,
            sx: { fontFamily: MONOSPACE.fontFamily },
          },
        }}
      />
    </FieldFrame>
  )
}

function parseJson(text: string): unknown {
  if (text.trim() === '') return null
  try {
    return JSON.parse(text) as unknown
  } catch {
    return { $invalid: text }
  }
}

function formatJson(value: unknown): string {
  if (value === null || value === undefined) return ''
  return isInvalidInput(value) ? value.$invalid : JSON.stringify(value, undefined, 2)
}

export function JsonInput(props: FieldInputProps) {
  const { field, path, value, onChange, isDisabled } = props
  const { fields } = useTexts()
  const typed = useTypedText({ value, onChange, parse: parseJson, format: formatJson })
  const problem = typed.isFocused ? undefined : findFieldProblem(field, value, fields)
  return (
    <FieldFrame input={props} problem={problem}>
      <TextField
        id={buildInputId(path)}
        label={field.title}
        value={typed.text}
        onChange={(event) => typed.change(event.target.value)}
        onFocus={typed.focus}
        onBlur={typed.blur}
        required={field.isRequired}
        disabled={isDisabled}
        error={findError(props, problem) !== undefined}
        multiline
        minRows={findMinRows(path)}
        maxRows={MAX_ROWS}
        slotProps={{
          input: { sx: MONOSPACE },
          htmlInput: { 'aria-describedby': describeInput(path), spellCheck: false },
        }}
      />
    </FieldFrame>
  )
}
