// The frame of a page: its title, which is also that of the tab, actions beside it, and the content.
import Box from '@mui/material/Box'
import Typography from '@mui/material/Typography'
import { useEffect, useRef, type ReactNode } from 'react'

interface PageProps {
  readonly title: string
  /** Small line above the title, such as a link back. */
  readonly above?: ReactNode
  readonly actions?: ReactNode
  readonly children?: ReactNode
  /** Forms and texts are narrow; lists take the whole width. */
  readonly isNarrow?: boolean
}

/** The first page begins where the browser does. */
let isOpened = false

export function Page({ title, above, actions, children, isNarrow = false }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  // A new page begins at its heading, for the keyboard and for screen readers. Somebody who types already is not interrupted.
  useEffect(() => {
    const isFirst = !isOpened
    isOpened = true
    if (!isFirst && !document.activeElement?.matches('input, textarea, [role=dialog] *'))
      heading.current?.focus({ preventScroll: true })
  }, [])
  useEffect(() => {
    document.title = `${title} · Verso`
  }, [title])
  return (
    <Box
      sx={{ p: { xs: 2, md: 3 }, maxWidth: isNarrow ? 960 : undefined, mx: isNarrow ? 'auto' : undefined }}
    >
      {above}
      <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 1.5, mb: 2 }}>
        <Typography
          ref={heading}
          tabIndex={-1}
          component="h1"
          variant="h1"
          sx={{ flexGrow: 1, overflowWrap: 'anywhere', minWidth: 0, outline: 'none' }}
        >
          {title}
        </Typography>
        {actions}
      </Box>
      {children}
    </Box>
  )
}
