// Selections, and booleans, which are one of two or three values.
import Checkbox from '@mui/material/Checkbox'
import FormControlLabel from '@mui/material/FormControlLabel'
import MenuItem from '@mui/material/MenuItem'
import TextField from '@mui/material/TextField'
import { useTexts } from '../texts/texts.js'
import { describeInput, FieldFrame, findError } from './field-frame.js'
import { buildInputId, type FieldInputProps } from './field-props.js'

interface Option {
  readonly key: string
  readonly value: unknown
  readonly title: string
}

interface SelectProps {
  readonly input: FieldInputProps
  readonly options: readonly Option[]
}

/** Values of any type are options by their keys. */
function Select({ input, options }: SelectProps) {
  const { field, path, value, onChange, isDisabled } = input
  const { common } = useTexts()
  const isEmpty = value === null || value === undefined || value === ''
  const chosen = isEmpty ? undefined : options.find((option) => option.value === value)
  // A value that the selection no longer has stays visible, and stays unless somebody chooses another one.
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const unknown = isEmpty || chosen ? [] : [{ key: `unknown:${text}`, value, title: text }]
  const all = [...options, ...unknown]
  return (
    <FieldFrame input={input}>
      <TextField
        select
        id={buildInputId(path)}
        label={field.title}
        value={chosen?.key ?? unknown[0]?.key ?? ''}
        onChange={(event) => onChange(all.find(({ key }) => key === event.target.value)?.value ?? null)}
        required={field.isRequired}
        disabled={isDisabled}
        error={findError(input) !== undefined}
        slotProps={{
          select: { SelectDisplayProps: { id: buildInputId(path), 'aria-describedby': describeInput(path) } },
        }}
      >
        {!field.isRequired && (
          <MenuItem value="" sx={{ color: 'text.secondary' }}>
            {common.empty}
          </MenuItem>
        )}
        {all.map(({ key, title }) => (
          <MenuItem key={key} value={key} sx={{ whiteSpace: 'normal' }}>
            {title}
          </MenuItem>
        ))}
      </TextField>
    </FieldFrame>
  )
}

export function ChoiceInput(props: FieldInputProps) {
  const choices = props.field.choices ?? []
  return (
    <Select
      input={props}
      options={choices.map(({ value, title }) => ({ key: `value:${value}`, value, title }))}
    />
  )
}

/** A field that may be empty has three values. One that never is, is a box to tick. */
export function BooleanInput(props: FieldInputProps) {
  const { field } = props
  const { common } = useTexts()
  if (field.isRequired || typeof field.defaultValue === 'boolean') return <BooleanBox {...props} />
  const options: readonly Option[] = [
    { key: 'true', value: true, title: common.yes },
    { key: 'false', value: false, title: common.no },
  ]
  return <Select input={props} options={options} />
}

function BooleanBox(props: FieldInputProps) {
  const { field, path, value, onChange, isDisabled } = props
  const isInvalid = findError(props) !== undefined
  return (
    <FieldFrame input={props}>
      <FormControlLabel
        label={field.title}
        disabled={isDisabled}
        sx={{ minHeight: 40, ml: 0.25, '& .MuiFormControlLabel-label': { overflowWrap: 'anywhere' } }}
        control={
          <Checkbox
            id={buildInputId(path)}
            checked={value === true}
            // A record that is older than the field has no value.
            indeterminate={typeof value !== 'boolean'}
            onChange={(_, isChecked) => onChange(isChecked)}
            slotProps={{ input: { 'aria-describedby': describeInput(path), 'aria-invalid': isInvalid } }}
          />
        }
      />
    </FieldFrame>
  )
}
