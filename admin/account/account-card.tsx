import Card from '@mui/material/Card'
import Typography from '@mui/material/Typography'
import { useId, type ReactNode } from 'react'

interface AccountCardProps {
  readonly title: string
  readonly text?: string | undefined
  readonly children: ReactNode
}

/** A part of the account page. */
export function AccountCard({ title, text, children }: AccountCardProps) {
  const titleId = useId()
  return (
    <Card component="section" aria-labelledby={titleId} sx={{ p: { xs: 2, sm: 3 }, mb: 2 }}>
      <Typography component="h2" variant="h2" id={titleId} sx={{ mb: text === undefined ? 1.5 : 0.5 }}>
        {title}
      </Typography>
      {text !== undefined && (
        <Typography variant="body2" color="text.secondary" sx={{ mb: 1.5 }}>
          {text}
        </Typography>
      )}
      {children}
    </Card>
  )
}
