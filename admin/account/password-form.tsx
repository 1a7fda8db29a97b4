// Changes the password of the person. The rules are those of the service.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Stack from '@mui/material/Stack'
import TextField from '@mui/material/TextField'
import { useQueryClient } from '@tanstack/react-query'
import { useState, type SubmitEvent } from 'react'
import { ForbiddenError, InvalidError, RequestError } from 'verso-records/client'
import { showMessage } from '../layout/message-list.js'
import { getAccount } from '../service/session.js'
import { getTexts, useTexts } from '../texts/texts.js'
import { AccountCard } from './account-card.js'
import { changePassword, SESSIONS_KEY } from './requests.js'

type Passwords = Readonly<Record<'old' | 'new' | 'repeated', string>>
type Errors = Partial<Passwords & { readonly form: string }>

const EMPTY: Passwords = { old: '', new: '', repeated: '' }

export function PasswordForm() {
  const { account } = useTexts()
  const queryClient = useQueryClient()
  const [values, setValues] = useState(EMPTY)
  const [errors, setErrors] = useState<Errors>({})
  const [isBusy, setBusy] = useState(false)
  const submit = async () => {
    if (values.new !== values.repeated) {
      setErrors({ repeated: account.repeatDiffers })
      return
    }
    setBusy(true)
    try {
      await changePassword(values.old, values.new)
      setValues(EMPTY)
      setErrors({})
      showMessage({ text: account.passwordChanged, severity: 'success' })
      await queryClient.invalidateQueries({ queryKey: SESSIONS_KEY })
    } catch (error) {
      setErrors(explainFailure(error))
    } finally {
      setBusy(false)
    }
  }
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    void submit()
  }
  const input = (name: keyof Passwords, label: string, help = '') => (
    <TextField
      type="password"
      name={`${name}-password`}
      label={label}
      autoComplete={name === 'old' ? 'current-password' : 'new-password'}
      value={values[name]}
      onChange={(event) => setValues({ ...values, [name]: event.target.value })}
      error={errors[name] !== undefined}
      helperText={errors[name] ?? help}
      required
      slotProps={{ formHelperText: { role: errors[name] === undefined ? undefined : 'alert' } }}
    />
  )
  return (
    <AccountCard title={account.password}>
      <Stack component="form" spacing={1.5} onSubmit={onSubmit} sx={{ maxWidth: 420 }}>
        {errors.form !== undefined && <Alert severity="error">{errors.form}</Alert>}
        {/* Tells password managers whose password it is. */}
        <Box
          component="input"
          type="text"
          name="username"
          autoComplete="username"
          value={getAccount().username}
          readOnly
          sx={{ display: 'none' }}
        />
        {input('old', account.oldPassword)}
        {input('new', account.newPassword, account.passwordRule)}
        {input('repeated', account.repeatPassword)}
        <Button type="submit" variant="contained" disabled={isBusy} sx={{ alignSelf: 'start' }}>
          {account.changePassword}
        </Button>
      </Stack>
    </AccountCard>
  )
}

const MS_PER_SECOND = 1000

function explainFailure(error: unknown): Errors {
  const { account } = getTexts()
  if (error instanceof InvalidError) {
    const { old, new: next } = error.fields
    return old === undefined && next === undefined ? { form: error.message } : { old, new: next }
  }
  if (error instanceof ForbiddenError) return { old: account.wrongPassword }
  if (error instanceof RequestError && error.kind === 'too-many')
    return { form: account.throttled(Math.ceil((error.retryAfterMs ?? MS_PER_SECOND) / MS_PER_SECOND)) }
  return { form: error instanceof Error ? error.message : String(error) }
}
