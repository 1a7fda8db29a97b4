// A value of the person that a conflict was not decided for, offered again until the form is closed.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import { FieldValue } from '../fields/field-value.js'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'

interface LostValueProps {
  readonly field: FieldInfo
  readonly value: unknown
  readonly onUse: () => void
}

export function LostValue({ field, value, onUse }: LostValueProps) {
  const { form } = useTexts()
  return (
    <Box component="span">
      <Link
        component="button"
        type="button"
        color="inherit"
        onClick={onUse}
        sx={{ verticalAlign: 'baseline' }}
      >
        {form.useAgain}
      </Link>{' '}
      {form.lost}{' '}
      <Box component="strong" sx={{ fontWeight: 600 }}>
        <FieldValue field={field} value={value} isShort />
      </Box>
    </Box>
  )
}
