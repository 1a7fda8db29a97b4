// Asks for the password over the page when the session has ended. The page below stays as it is.
import Button from '@mui/material/Button'
import Dialog from '@mui/material/Dialog'
import DialogContent from '@mui/material/DialogContent'
import DialogContentText from '@mui/material/DialogContentText'
import DialogTitle from '@mui/material/DialogTitle'
import { showFailure } from '../layout/message-list.js'
import { useEffect } from 'react'
import { useObservable } from '../service/observable.js'
import { demoAccount, session, signOut, watchForLogin } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { SignInForm } from './sign-in-form.js'

export function SessionDialog() {
  const { signIn: texts } = useTexts()
  const state = useObservable(session)
  const demo = useObservable(demoAccount)
  const isEnded = state.status === 'ended'
  useEffect(() => (isEnded ? watchForLogin() : undefined), [isEnded])
  if (!isEnded) return null
  const { username, name } = state.account
  return (
    <Dialog open aria-labelledby="session-ended" fullWidth maxWidth="xs">
      <DialogTitle id="session-ended">{texts.endedTitle}</DialogTitle>
      <DialogContent>
        <DialogContentText sx={{ mb: 2 }}>{texts.endedText(name ?? username)}</DialogContentText>
        <SignInForm fixedUsername={username} demo={demo?.username === username ? demo : undefined} />
        <Button sx={{ mt: 1 }} onClick={() => void signOut().catch(showFailure)}>
          {texts.otherPerson}
        </Button>
      </DialogContent>
    </Dialog>
  )
}
