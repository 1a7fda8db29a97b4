// Creates an API key.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Checkbox from '@mui/material/Checkbox'
import FormControl from '@mui/material/FormControl'
import FormControlLabel from '@mui/material/FormControlLabel'
import FormLabel from '@mui/material/FormLabel'
import MenuItem from '@mui/material/MenuItem'
import Stack from '@mui/material/Stack'
import TextField from '@mui/material/TextField'
import { useState, type SubmitEvent } from 'react'
import { InvalidError } from 'verso-records/client'
import { useTexts } from '../texts/texts.js'
import { createKey } from './requests.js'

const EXPIRY_DAYS = [7, 30, 90, 180, 365] as const
const DEFAULT_DAYS = 90
const DAY_MS = 24 * 60 * 60 * 1000

interface KeyFormProps {
  /** Those of the person. */
  readonly roles: readonly string[]
  readonly onCreated: (key: string) => void
  readonly onCancel: () => void
}

export function KeyForm({ roles, onCreated, onCancel }: KeyFormProps) {
  const { account, common } = useTexts()
  const [name, setName] = useState('')
  const [days, setDays] = useState<number>(DEFAULT_DAYS)
  const [chosen, setChosen] = useState(roles)
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({})
  const [isBusy, setBusy] = useState(false)
  const submit = async () => {
    setBusy(true)
    setErrors({})
    try {
      const isAll = chosen.length === roles.length
      const expiresOn = new Date(Date.now() + days * DAY_MS).toISOString()
      onCreated(await createKey({ name, expiresOn, ...(isAll ? {} : { roles: chosen }) }))
    } catch (error) {
      setErrors(explainFailure(error))
      setBusy(false)
    }
  }
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    void submit()
  }
  return (
    <Stack
      component="form"
      spacing={1.5}
      onSubmit={onSubmit}
      sx={{ mt: 2, maxWidth: 420 }}
      aria-label={account.createKey}
    >
      {errors['form'] !== undefined && <Alert severity="error">{errors['form']}</Alert>}
      <TextField
        label={account.keyName}
        value={name}
        onChange={(event) => setName(event.target.value)}
        error={errors['name'] !== undefined}
        helperText={errors['name']}
        required
        autoFocus
        slotProps={{ htmlInput: { maxLength: 100, autoComplete: 'off' } }}
      />
      <TextField
        select
        label={account.keyExpiry}
        value={days}
        onChange={(event) => setDays(Number(event.target.value))}
        error={errors['expiresOn'] !== undefined}
        helperText={errors['expiresOn']}
      >
        {EXPIRY_DAYS.map((count) => (
          <MenuItem key={count} value={count}>
            {account.days(count)}
          </MenuItem>
        ))}
      </TextField>
      <RoleChoice roles={roles} chosen={chosen} onChange={setChosen} />
      <Box sx={{ display: 'flex', gap: 1 }}>
        <Button type="submit" variant="contained" disabled={isBusy}>
          {account.createKey}
        </Button>
        <Button onClick={onCancel}>{common.cancel}</Button>
      </Box>
    </Stack>
  )
}

interface RoleChoiceProps {
  readonly roles: readonly string[]
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
}

function RoleChoice({ roles, chosen, onChange }: RoleChoiceProps) {
  const { account } = useTexts()
  if (roles.length === 0) return null
  const toggle = (role: string, isChecked: boolean) =>
    onChange(roles.filter((each) => (each === role ? isChecked : chosen.includes(each))))
  return (
    <FormControl component="fieldset" variant="standard">
      <FormLabel component="legend">{account.keyRoles}</FormLabel>
      {roles.map((role) => (
        <FormControlLabel
          key={role}
          control={
            <Checkbox
              size="small"
              checked={chosen.includes(role)}
              onChange={(_, isChecked) => toggle(role, isChecked)}
            />
          }
          label={role}
        />
      ))}
    </FormControl>
  )
}

const INPUTS: readonly string[] = ['name', 'expiresOn']

/** Messages that belong to no input are shown above them. */
function explainFailure(error: unknown): Readonly<Record<string, string>> {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof InvalidError)) return { form: message }
  const isShown = Object.keys(error.fields).every((field) => INPUTS.includes(field))
  return isShown && Object.keys(error.fields).length > 0 ? error.fields : { form: message }
}
