import Link from '@mui/material/Link'
import { Link as RouterLink } from 'react-router'
import { BackIcon } from '../layout/icons.js'
import { findListAddress } from '../list/remembered-place.js'
import { shortenName, toTitle } from '../service/model-info.js'

/** Leads back to the list as the person left it: page, filter and columns are in its address. */
export function BackLink({ model }: { readonly model: string }) {
  return (
    <Link
      component={RouterLink}
      to={findListAddress(model)}
      sx={{ display: 'inline-flex', alignItems: 'center', gap: 0.5, mb: 1 }}
    >
      <BackIcon fontSize="small" />
      {toTitle(shortenName(model))}
    </Link>
  )
}
