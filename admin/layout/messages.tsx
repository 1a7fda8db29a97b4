// Shows messages, read aloud by screen readers. The region is always in the page: a region that appears with its text is not announced.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import { closeAllMessages, closeMessage, messages, type Message } from './message-list.js'
import { useObservable } from '../service/observable.js'
import { useTexts } from '../texts/texts.js'

export function Messages() {
  const shown = useObservable(messages)
  // Nothing of one person stays for the next one.
  useEffect(() => closeAllMessages, [])
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => reserveRoom(shown.length === 0 ? null : box.current), [shown])
  return (
    <Box
      ref={box}
      role="status"
      aria-live="polite"
      sx={{
        position: 'fixed',
        // Where it does not cover the save button: that is at the left, and as wide as the screen on a phone.
        top: { xs: 56, md: 'auto' },
        bottom: { md: 16 },
        left: 16,
        right: 16,
        // Below dialogs, whose buttons it must not cover.
        zIndex: 'drawer',
        display: 'flex',
        flexDirection: 'column',
        alignItems: { xs: 'center', md: 'flex-end' },
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

const ROOM_PX = 8

/** An element that gets the focus scrolls to where no message covers it. */
function reserveRoom(box: HTMLElement | null): void {
  const { style } = document.documentElement
  const { top, bottom } = box?.getBoundingClientRect() ?? { top: innerHeight, bottom: 0 }
  const isAbove = top < innerHeight / 2
  style.scrollPaddingTop = box && isAbove ? `${bottom + ROOM_PX}px` : ''
  style.scrollPaddingBottom = box && !isAbove ? `${innerHeight - top + ROOM_PX}px` : ''
}

function MessageBox({ message }: { readonly message: Message }) {
  const { common } = useTexts()
  const { key, text, severity, action, durationMs } = message
  const [isHeld, setHeld] = useState(false)
  // A message stays while the pointer or the focus is on it.
  useEffect(() => {
    if (durationMs === undefined || isHeld) return
    const timer = setTimeout(() => closeMessage(key), durationMs)
    return () => clearTimeout(timer)
  }, [key, durationMs, isHeld])
  const run = () => {
    closeMessage(key)
    action?.run()
  }
  return (
    <Alert
      // The region around it announces it.
      role="none"
      severity={severity}
      variant="standard"
      onMouseEnter={() => setHeld(true)}
      onMouseLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
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
        maxWidth: { xs: 640, md: 'min(640px, 50vw)' },
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
