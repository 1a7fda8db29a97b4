// User name and password, on the sign-in page and in the dialog after the end of a session.
import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import Stack from '@mui/material/Stack'
import TextField from '@mui/material/TextField'
import { useState, type SubmitEvent } from 'react'
import { RequestError } from 'verso-records/client'
import { signIn, type DemoAccount } from '../service/session.js'
import { getTexts, useTexts } from '../texts/texts.js'

interface SignInFormProps {
  /** A name that cannot be changed: that of the person whose session has ended. */
  readonly fixedUsername?: string | undefined
  readonly demo?: DemoAccount | undefined
}

export function SignInForm({ fixedUsername, demo }: SignInFormProps) {
  const { signIn: texts } = useTexts()
  const [username, setUsername] = useState(fixedUsername ?? '')
  const [password, setPassword] = useState('')
  const [failure, setFailure] = useState('')
  const [isBusy, setBusy] = useState(false)

  const submit = async (name: string, secret: string) => {
    setBusy(true)
    setFailure('')
    try {
      await signIn(name, secret)
    } catch (error) {
      setFailure(explainFailure(error))
      setPassword('')
    } finally {
      setBusy(false)
    }
  }
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    void submit(username, password)
  }
  return (
    <Stack component="form" spacing={1.5} onSubmit={onSubmit}>
      {failure !== '' && (
        <Alert severity="error" role="alert">
          {failure}
        </Alert>
      )}
      <TextField
        label={texts.username}
        name="username"
        autoComplete="username"
        value={username}
        onChange={(event) => setUsername(event.target.value)}
        autoFocus={fixedUsername === undefined}
        required
        slotProps={{
          htmlInput: { readOnly: fixedUsername !== undefined, autoCapitalize: 'none', spellCheck: false },
        }}
      />
      <TextField
        label={texts.password}
        name="password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        autoFocus={fixedUsername !== undefined}
        required
      />
      <Button type="submit" variant="contained" size="large" disabled={isBusy}>
        {texts.submit}
      </Button>
      {demo && (
        <Alert severity="info">
          {texts.demo(demo.username, demo.password)}
          <Button
            variant="outlined"
            color="inherit"
            size="small"
            disabled={isBusy}
            onClick={() => void submit(demo.username, demo.password)}
            sx={{ display: 'block', mt: 1 }}
          >
            {texts.useDemo}
          </Button>
        </Alert>
      )}
    </Stack>
  )
}

const MS_PER_SECOND = 1000

function explainFailure(error: unknown): string {
  const { signIn: texts, common } = getTexts()
  if (!(error instanceof RequestError)) return String(error)
  if (error.status === 401) return texts.wrong
  if (error.kind === 'too-many')
    return texts.throttled(Math.ceil((error.retryAfterMs ?? MS_PER_SECOND) / MS_PER_SECOND))
  return error.status === 0 ? common.offline : error.message
}
