// The inputs of one permission.
import Alert from '@mui/material/Alert'
import Autocomplete from '@mui/material/Autocomplete'
import Box from '@mui/material/Box'
import Checkbox from '@mui/material/Checkbox'
import FormControlLabel from '@mui/material/FormControlLabel'
import IconButton from '@mui/material/IconButton'
import TextField from '@mui/material/TextField'
import Tooltip from '@mui/material/Tooltip'
import { useMemo } from 'react'
import { buildInputId } from '../fields/field-props.js'
import { DeleteIcon } from '../layout/icons.js'
import { useModel, useModelNames } from '../service/models.js'
import { useTexts } from '../texts/texts.js'
import { listModelPatterns, type PermissionLine } from './permission-line.js'

export interface LineProps {
  readonly line: PermissionLine
  /** Of the line, such as `permissions[0]`. */
  readonly path: string
  readonly errors: Readonly<Record<string, string>>
  readonly isDisabled: boolean
  readonly onChange: (changed: Partial<PermissionLine>) => void
  readonly onRemove: () => void
}

export function ModelInput({ line, path, errors, isDisabled, onChange }: LineProps) {
  const { account } = useTexts()
  const { data: names } = useModelNames()
  const options = useMemo(() => listModelPatterns(names ?? []), [names])
  const error = errors[`${path}.model`]
  return (
    <Autocomplete
      freeSolo
      fullWidth
      size="small"
      options={options}
      id={buildInputId(`${path}.model`)}
      // The text is the value. With a value of its own, the list would show all options while a person types.
      value={null}
      inputValue={line.model}
      disabled={isDisabled}
      onInputChange={(_, model, reason) => {
        if (reason === 'input' || reason === 'clear' || reason === 'selectOption') onChange({ model })
      }}
      renderInput={(parameters) => (
        <TextField
          {...parameters}
          label={account.model}
          required
          error={error !== undefined}
          helperText={error ?? (line.model === '' ? account.modelHelp : '')}
        />
      )}
    />
  )
}

export function RemoveButton({ line, isDisabled, onRemove }: LineProps) {
  const { account } = useTexts()
  const label = account.removePermission(line.model || account.newPermission)
  return (
    <Tooltip title={label}>
      <span>
        <IconButton aria-label={label} disabled={isDisabled} onClick={onRemove}>
          <DeleteIcon />
        </IconButton>
      </span>
    </Tooltip>
  )
}

const DETAILS: readonly string[] = ['model', 'condition', 'readable', 'writable']

/** Condition and fields, and errors that belong to none of the inputs. */
export function PermissionDetails(props: LineProps) {
  const { account } = useTexts()
  const { line, path, errors, isDisabled, onChange } = props
  const error = errors[`${path}.condition`]
  const others = Object.entries(errors).filter(
    ([key]) => key === path || (key.startsWith(`${path}.`) && !DETAILS.includes(key.slice(path.length + 1))),
  )
  return (
    <Box
      sx={{
        display: 'grid',
        gridTemplateColumns: { xs: '1fr', md: '1fr 1fr 1fr' },
        gap: 1.5,
        alignItems: 'start',
      }}
    >
      {others.map(([key, message]) => (
        <Alert key={key} severity="error" sx={{ gridColumn: '1 / -1' }}>
          {message}
        </Alert>
      ))}
      <TextField
        label={account.condition}
        id={buildInputId(`${path}.condition`)}
        value={line.condition ?? ''}
        disabled={isDisabled}
        onChange={({ target }) => onChange({ condition: target.value === '' ? null : target.value })}
        error={error !== undefined}
        helperText={error ?? (line.condition === null ? account.conditionHelp : '')}
        multiline
        slotProps={{ htmlInput: { spellCheck: false } }}
      />
      <FieldChoice {...props} property="readable" label={account.readable} />
      <FieldChoice {...props} property="writable" label={account.writable} />
    </Box>
  )
}

interface FieldChoiceProps extends LineProps {
  readonly property: 'readable' | 'writable'
  readonly label: string
}

/** All fields, or the chosen ones. */
function FieldChoice(props: FieldChoiceProps) {
  const { account } = useTexts()
  const { line, property, label, path, errors, isDisabled, onChange } = props
  const { data: names } = useModelNames()
  const chosen = line[property]
  const error = errors[`${path}.${property}`]
  const isKnown = names?.includes(line.model) === true
  return (
    <Box sx={{ minWidth: 0 }}>
      <FormControlLabel
        control={
          <Checkbox
            size="small"
            checked={chosen === null}
            disabled={isDisabled}
            onChange={(_, isAll) => onChange({ [property]: isAll ? null : [] })}
          />
        }
        label={`${label}: ${account.allFields}`}
      />
      {chosen !== null &&
        (isKnown ? (
          <KnownFieldNames {...props} chosen={chosen} />
        ) : (
          <FieldNames {...props} chosen={chosen} options={[]} />
        ))}
      {chosen === null && error !== undefined && <Alert severity="error">{error}</Alert>}
    </Box>
  )
}

interface FieldNamesProps extends FieldChoiceProps {
  readonly chosen: readonly string[]
}

const ALWAYS_READABLE: readonly string[] = ['id', 'version']

function KnownFieldNames(props: FieldNamesProps) {
  const { data } = useModel(props.line.model)
  const names = data?.fields.map(({ name }) => name).filter((name) => !ALWAYS_READABLE.includes(name))
  return <FieldNames {...props} options={names ?? []} />
}

/** For a pattern any name can be typed: the service checks that a model has it. */
function FieldNames({
  property,
  label,
  path,
  errors,
  isDisabled,
  onChange,
  chosen,
  options,
}: FieldNamesProps & { readonly options: readonly string[] }) {
  const { account } = useTexts()
  const error = errors[`${path}.${property}`]
  return (
    <Autocomplete
      multiple
      freeSolo
      autoSelect
      disableCloseOnSelect
      size="small"
      sx={{ mt: 0.75 }}
      id={buildInputId(`${path}.${property}`)}
      options={options}
      value={[...chosen]}
      disabled={isDisabled}
      onChange={(_, names) => onChange({ [property]: [...new Set(names)] })}
      renderInput={(parameters) => (
        <TextField
          {...parameters}
          label={label}
          placeholder={chosen.length === 0 ? account.noFields : ''}
          error={error !== undefined}
          helperText={error}
        />
      )}
    />
  )
}
