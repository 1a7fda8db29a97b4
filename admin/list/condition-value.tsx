// The inputs for the value of a condition, by the type of its field.
import Autocomplete from '@mui/material/Autocomplete'
import TextField from '@mui/material/TextField'
import type { FieldInfo, FieldKind } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { isRelation, type ConditionDraft, type DraftErrors } from './condition-draft.js'
import { hasValue } from './conditions.js'
import { RelationPicker } from '../fields/relation-picker.js'

interface ConditionValueProps {
  readonly draft: ConditionDraft
  readonly errors: DraftErrors
  readonly onChange: (draft: ConditionDraft) => void
}

export function ConditionValue({ draft, errors, onChange }: ConditionValueProps) {
  const { list } = useTexts()
  const { field, operator, from, to, related, chosen } = draft
  if (!hasValue(operator)) return null
  if (operator === 'oneOf')
    return (
      <ChoicesInput
        field={field}
        chosen={chosen}
        error={errors.from}
        onChange={(values) => onChange({ ...draft, chosen: values })}
      />
    )
  if (isRelation(field.kind) && field.target !== undefined)
    return (
      <RelationPicker
        id="condition-value"
        label={list.value}
        target={field.target}
        targetName={field.targetName}
        value={related}
        error={errors.from}
        onChange={(value) => onChange({ ...draft, related: value })}
      />
    )
  const isRange = operator === 'between'
  return (
    <>
      <OperandInput
        id="condition-value"
        kind={field.kind}
        label={isRange ? list.from : list.value}
        text={from}
        error={errors.from}
        onChange={(text) => onChange({ ...draft, from: text })}
      />
      {isRange && (
        <OperandInput
          id="condition-end"
          kind={field.kind}
          label={list.to}
          text={to}
          error={errors.to}
          onChange={(text) => onChange({ ...draft, to: text })}
        />
      )}
    </>
  )
}

interface ChoicesInputProps {
  readonly field: FieldInfo
  readonly chosen: readonly (string | number)[]
  readonly error: string | undefined
  readonly onChange: (values: readonly (string | number)[]) => void
}

function ChoicesInput({ field, chosen, error, onChange }: ChoicesInputProps) {
  const { common, list } = useTexts()
  const choices = field.choices ?? []
  const getTitle = (value: string | number) =>
    choices.find((choice) => choice.value === value)?.title ?? String(value)
  return (
    <Autocomplete
      id="condition-value"
      multiple
      disableCloseOnSelect
      options={choices.map(({ value }) => value)}
      getOptionLabel={getTitle}
      value={[...chosen]}
      onChange={(_, values) => onChange(values)}
      clearText={list.pickerClear}
      openText={list.pickerOpen}
      closeText={common.close}
      noOptionsText={list.pickerNoMatch}
      renderInput={(parameters) => (
        <TextField {...parameters} label={list.value} error={error !== undefined} helperText={error} />
      )}
    />
  )
}

const INPUT_TYPES: Readonly<Partial<Record<FieldKind, string>>> = {
  date: 'date',
  time: 'time',
  datetime: 'datetime-local',
}
const INPUT_MODES: Readonly<Partial<Record<FieldKind, 'decimal' | 'numeric'>>> = {
  decimal: 'decimal',
  integer: 'numeric',
  long: 'numeric',
}

interface OperandInputProps {
  readonly id: string
  readonly kind: FieldKind
  readonly label: string
  readonly text: string
  readonly error: string | undefined
  readonly onChange: (text: string) => void
}

function OperandInput({ id, kind, label, text, error, onChange }: OperandInputProps) {
  const type = INPUT_TYPES[kind]
  return (
    <TextField
      id={id}
      label={label}
      type={type ?? 'text'}
      value={text}
      onChange={({ target }) => onChange(target.value)}
      error={error !== undefined}
      helperText={error}
      slotProps={{
        // The browser shows a pattern in an empty input of this type.
        inputLabel: type === undefined ? {} : { shrink: true },
        htmlInput: {
          inputMode: INPUT_MODES[kind],
          step: kind === 'time' ? 1 : undefined,
          autoComplete: 'off',
        },
      }}
    />
  )
}
