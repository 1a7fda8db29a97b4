// A line below an input with a button at its end. A narrow column cuts the text, never the button.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import type { ReactNode } from 'react'

interface NoteLineProps {
  readonly color?: string
  readonly label: string
  readonly onAct: () => void
  readonly children: ReactNode
}

export function NoteLine({ color, label, onAct, children }: NoteLineProps) {
  return (
    <Box component="span" sx={{ display: 'flex', gap: 1, minWidth: 0, color }}>
      <Box component="span" sx={{ minWidth: 0, overflow: 'hidden', textOverflow: 'ellipsis' }}>
        {children}
      </Box>
      <Link component="button" type="button" color="inherit" onClick={onAct} sx={{ flexShrink: 0 }}>
        {label}
      </Link>
    </Box>
  )
}
