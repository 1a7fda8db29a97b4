// Dates and times, with the inputs of the browser. Their values are texts: no Date object moves a day to another one.
import TextField from '@mui/material/TextField'
import type { Theme } from '@mui/material/styles'
import type { ChangeEvent } from 'react'
import { useTexts } from '../texts/texts.js'
import { completeTime, toLocalInput, toUtcText } from './date-text.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { findFieldProblem } from './field-problems.js'
import { buildInputId, isInvalidInput, type FieldInputProps } from './field-props.js'
import { useTypedText } from './typed-text.js'

/** Seconds are shown always, milliseconds only if the value has some. */
const SECOND = 1
const MILLISECOND = 0.001
const INCOMPLETE = { $invalid: '' }

interface NativeInputProps {
  readonly input: FieldInputProps
  readonly type: 'date' | 'time' | 'datetime-local'
  /** From the value of the native input, and back. */
  readonly parse: (text: string) => unknown
  readonly format: (value: string) => string
}

function NativeInput({ input, type, parse, format }: NativeInputProps) {
  const { field, path, value, onChange, isDisabled } = input
  const { fields } = useTexts()
  const typed = useTypedText({
    value,
    onChange,
    parse: (text) => (text === '' ? null : (parse(text) ?? INCOMPLETE)),
    format: (each) => (typeof each === 'string' ? format(each) : ''),
  })
  // The browser tells no text of a date that misses its year. An empty value would clear the field.
  const change = ({ target }: ChangeEvent<HTMLInputElement>) =>
    target.value === '' && target.validity.badInput ? onChange(INCOMPLETE) : typed.change(target.value)
  const problem = typed.isFocused ? undefined : findFieldProblem(field, value, fields)
  const isPrecise = typed.text.includes('.')
  return (
    <FieldFrame input={input} problem={problem}>
      <TextField
        id={buildInputId(path)}
        label={field.title}
        type={type}
        value={isInvalidInput(value) ? '' : typed.text}
        onChange={change}
        onFocus={typed.focus}
        onBlur={typed.blur}
        required={field.isRequired}
        disabled={isDisabled}
        error={findError(input, problem) !== undefined}
        slotProps={{
          inputLabel: { shrink: true },
          htmlInput: {
            'aria-describedby': describeInput(path),
            // The browser draws the icon for this scheme.
            sx: { colorScheme: (theme: Theme) => theme.palette.mode },
            ...(type === 'time' ? {} : { max: type === 'date' ? '9999-12-31' : '9999-12-31T23:59:59.999' }),
            ...(type === 'date' ? {} : { step: isPrecise ? MILLISECOND : SECOND }),
          },
        }}
      />
    </FieldFrame>
  )
}

const keep = (text: string) => text

export function DateInput(props: FieldInputProps) {
  return <NativeInput input={props} type="date" parse={keep} format={keep} />
}

export function TimeInput(props: FieldInputProps) {
  return <NativeInput input={props} type="time" parse={completeTime} format={keep} />
}

/** In the time zone of the person. An untouched value keeps its milliseconds. */
export function DatetimeInput(props: FieldInputProps) {
  const previous = typeof props.value === 'string' ? props.value : undefined
  return (
    <NativeInput
      input={props}
      type="datetime-local"
      parse={(text) => toUtcText(text, previous)}
      format={toLocalInput}
    />
  )
}
