// Asks for a condition: a field, an operator, and a value.
import Autocomplete from '@mui/material/Autocomplete'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Dialog from '@mui/material/Dialog'
import DialogActions from '@mui/material/DialogActions'
import DialogContent from '@mui/material/DialogContent'
import DialogTitle from '@mui/material/DialogTitle'
import MenuItem from '@mui/material/MenuItem'
import TextField from '@mui/material/TextField'
import { useState, type SubmitEvent } from 'react'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import {
  draftFromCondition,
  finishDraft,
  isCondition,
  startDraft,
  type ConditionDraft,
  type DraftErrors,
} from './condition-draft.js'
import { ConditionValue } from './condition-value.js'
import { listOperators, type Condition, type OperatorName } from './conditions.js'

interface ConditionDialogProps {
  /** The fields of the model that conditions can use. */
  readonly fields: readonly FieldInfo[]
  /** Undefined for a new one. */
  readonly condition: Condition | undefined
  readonly onApply: (condition: Condition) => void
  readonly onRemove?: (() => void) | undefined
  readonly onClose: () => void
}

export function ConditionDialog({ fields, condition, onApply, onRemove, onClose }: ConditionDialogProps) {
  const texts = useTexts()
  const { common, list } = texts
  const [draft, setDraft] = useState<ConditionDraft | undefined>(
    () => condition && draftFromCondition(condition),
  )
  const [errors, setErrors] = useState<DraftErrors>({})
  const change = (changed: ConditionDraft | undefined) => {
    setDraft(changed)
    setErrors({})
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (!draft) return
    const result = finishDraft(draft, texts)
    if (isCondition(result)) onApply(result)
    else setErrors(result)
  }
  const title = condition ? list.editFilter : list.addFilter
  return (
    <Dialog open onClose={onClose} fullWidth maxWidth="xs" aria-labelledby="condition-title">
      <Box
        component="form"
        onSubmit={submit}
        noValidate
        sx={{ display: 'flex', flexDirection: 'column', minHeight: 0 }}
      >
        <DialogTitle id="condition-title">{title}</DialogTitle>
        <DialogContent>
          <Box sx={{ display: 'flex', flexDirection: 'column', gap: 1.5, pt: 1 }}>
            <FieldChoice
              fields={fields}
              field={draft?.field}
              onChange={(field) => change(field && startDraft(field))}
            />
            {draft && (
              <OperatorChoice
                field={draft.field}
                operator={draft.operator}
                onChange={(operator) => change({ ...draft, operator })}
              />
            )}
            {draft && (
              <ConditionValue key={draft.field.name} draft={draft} errors={errors} onChange={change} />
            )}
          </Box>
        </DialogContent>
        <DialogActions>
          {onRemove && (
            <Button color="error" onClick={onRemove} sx={{ mr: 'auto' }}>
              {list.removeFilter}
            </Button>
          )}
          <Button color="inherit" onClick={onClose}>
            {common.cancel}
          </Button>
          <Button type="submit" variant="contained" disabled={!draft}>
            {list.apply}
          </Button>
        </DialogActions>
      </Box>
    </Dialog>
  )
}

interface FieldChoiceProps {
  readonly fields: readonly FieldInfo[]
  readonly field: FieldInfo | undefined
  readonly onChange: (field: FieldInfo | undefined) => void
}

function FieldChoice({ fields, field, onChange }: FieldChoiceProps) {
  const { common, list } = useTexts()
  return (
    <Autocomplete
      id="condition-field"
      options={fields}
      value={field ?? null}
      getOptionLabel={({ title }) => title}
      getOptionKey={({ name }) => name}
      isOptionEqualToValue={(option, value) => option.name === value.name}
      onChange={(_, chosen) => onChange(chosen ?? undefined)}
      clearText={list.pickerClear}
      openText={list.pickerOpen}
      closeText={common.close}
      noOptionsText={list.pickerNoMatch}
      openOnFocus={field === undefined}
      renderInput={(parameters) => (
        <TextField {...parameters} label={list.field} autoFocus={field === undefined} />
      )}
    />
  )
}

interface OperatorChoiceProps {
  readonly field: FieldInfo
  readonly operator: OperatorName
  readonly onChange: (operator: OperatorName) => void
}

function OperatorChoice({ field, operator, onChange }: OperatorChoiceProps) {
  const { list } = useTexts()
  return (
    <TextField
      id="condition-operator"
      select
      label={list.operator}
      value={operator}
      onChange={({ target }) => onChange(target.value as OperatorName)}
    >
      {listOperators(field).map((each) => (
        <MenuItem key={each} value={each}>
          {list.operators[each]}
        </MenuItem>
      ))}
    </TextField>
  )
}
