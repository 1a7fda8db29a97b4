import Box from '@mui/material/Box'
import Card from '@mui/material/Card'
import Typography from '@mui/material/Typography'
import { useEffect } from 'react'
import { Wordmark } from '../layout/wordmark.js'
import { useObservable } from '../service/observable.js'
import { demoAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { SignInForm } from './sign-in-form.js'

export function SignInPage() {
  const { signIn: texts } = useTexts()
  const demo = useObservable(demoAccount)
  useEffect(() => {
    document.title = texts.title
  }, [texts.title])
  return (
    <Box
      component="main"
      sx={{
        minHeight: '100vh',
        display: 'flex',
        flexDirection: 'column',
        alignItems: 'center',
        justifyContent: 'center',
        gap: 3,
        p: 2,
      }}
    >
      <Wordmark size={36} />
      <Card sx={{ width: '100%', maxWidth: 420, p: { xs: 2.5, sm: 4 } }}>
        <Typography component="h1" variant="h1" sx={{ mb: 2.5 }}>
          {texts.title}
        </Typography>
        <SignInForm demo={demo} />
        <Typography variant="body2" color="text.secondary" sx={{ mt: 2 }}>
          {texts.forgotten}
        </Typography>
      </Card>
    </Box>
  )
}
