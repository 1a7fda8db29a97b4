// Shows messages, read aloud by screen readers. The region is always in the page: a region that appears with its text is not announced.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import { useEffect } from 'react'
import { closeAllMessages, closeMessage, messages, type Message } from '../service/messages.js'
import { useObservable } from '../service/observable.js'
import { useTexts } from '../texts/texts.js'

export function Messages() {
  const shown = useObservable(messages)
  // Nothing of one person stays for the next one.
  useEffect(() => closeAllMessages, [])
  return (
    <Box
      role="status"
      aria-live="polite"
      sx={{
        position: 'fixed',
        bottom: 16,
        left: 16,
        right: 16,
        // Below dialogs, whose buttons it must not cover.
        zIndex: 'drawer',
        display: 'flex',
        flexDirection: 'column',
        alignItems: 'center',
        gap: 1,
        pointerEvents: 'none',
      }}
    >
      {shown.map((message) => (
        <MessageBox key={message.key} message={message} />
      ))}
    </Box>
  )
}

function MessageBox({ message }: { readonly message: Message }) {
  const { common } = useTexts()
  const { key, text, severity, action, durationMs } = message
  useEffect(() => {
    if (durationMs === undefined) return
    const timer = setTimeout(() => closeMessage(key), durationMs)
    return () => clearTimeout(timer)
  }, [key, durationMs])
  const run = () => {
    closeMessage(key)
    action?.run()
  }
  return (
    <Alert
      severity={severity}
      variant="standard"
      onClose={() => closeMessage(key)}
      closeText={common.close}
      action={
        action && (
          <>
            <Button color="inherit" size="small" onClick={run}>
              {action.label}
            </Button>
            <Button color="inherit" size="small" onClick={() => closeMessage(key)}>
              {common.close}
            </Button>
          </>
        )
      }
      sx={{
        pointerEvents: 'auto',
        maxWidth: 640,
        boxShadow: 6,
        border: 1,
        borderColor: 'divider',
        overflowWrap: 'anywhere',
      }}
    >
      {text}
    </Alert>
  )
}
