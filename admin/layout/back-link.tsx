import Link from '@mui/material/Link'
import { Link as RouterLink } from 'react-router'
import { BackIcon } from './icons.js'

interface BackLinkProps {
  readonly to: string
  readonly text: string
}

export function BackLink({ to, text }: BackLinkProps) {
  return (
    <Link
      component={RouterLink}
      to={to}
      sx={{ display: 'inline-flex', alignItems: 'center', gap: 0.5, mb: 1 }}
    >
      <BackIcon fontSize="small" />
      {text}
    </Link>
  )
}
