// Whole numbers and decimals, typed as text: no digit is lost, and nothing typed is thrown away.
import TextField from '@mui/material/TextField'
import type { FieldInfo } from '../service/model-info.js'
import { useLocale, useTexts } from '../texts/texts.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { findFieldProblem } from './field-problems.js'
import { buildInputId, type FieldInputProps } from './field-props.js'
import { completeScale, formatForInput, parseDecimal, parseInteger } from './number-text.js'
import { useTypedText } from './typed-text.js'

/** A text that is no number stays a text: the service says what is wrong with it. */
function parseNumber({ kind, scale }: FieldInfo, typed: string, locale: string): unknown {
  const text = typed.trim()
  if (text === '') return null
  if (kind !== 'decimal') return parseInteger(text, locale) ?? text
  const decimal = parseDecimal(text, locale)
  return decimal === undefined ? text : completeScale(decimal, scale ?? 0)
}

export function NumberInput(props: FieldInputProps) {
  const { field, path, value, onChange, isDisabled } = props
  const { fields } = useTexts()
  const locale = useLocale()
  const typed = useTypedText({
    value,
    onChange,
    parse: (text) => parseNumber(field, text, locale),
    format: (each) => formatForInput(each, locale),
  })
  // While somebody types a number, its beginning may be none.
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
        autoComplete="off"
        slotProps={{
          htmlInput: {
            inputMode: field.kind === 'decimal' ? 'decimal' : 'numeric',
            'aria-describedby': describeInput(path),
            sx: { fontVariantNumeric: 'tabular-nums' },
          },
        }}
      />
    </FieldFrame>
  )
}
