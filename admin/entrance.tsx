// Decides what a person sees first: the sign-in page, or the application. The application is loaded after the sign-in page.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { lazy, Suspense, useEffect, useState } from 'react'
import { useObservable } from './service/observable.js'
import { loadSession, session } from './service/session.js'
import { useTexts } from './texts/texts.js'
import { SignInPage } from './sign-in/sign-in-page.js'

const App = lazy(async () => ({ default: (await import('./app.js')).App }))

export function Entrance() {
  const { status } = useObservable(session)
  const [isOffline, setOffline] = useState(false)
  const load = () => {
    setOffline(false)
    loadSession().catch(() => setOffline(true))
  }
  useEffect(load, [])
  if (isOffline) return <Offline onRetry={load} />
  if (status === 'unknown') return null
  if (status === 'signed-out') return <SignInPage />
  return (
    <Suspense fallback={null}>
      <App />
    </Suspense>
  )
}

function Offline({ onRetry }: { readonly onRetry: () => void }) {
  const { common } = useTexts()
  return (
    <Box component="main" sx={{ p: 4, textAlign: 'center' }}>
      <Typography component="h1" sx={{ mb: 2 }} role="alert">
        {common.offline}
      </Typography>
      <Button variant="contained" onClick={onRetry}>
        {common.retry}
      </Button>
    </Box>
  )
}
