// A value of the person that lost a conflict, offered again until the form is closed.
import Box from '@mui/material/Box'
import { FieldValue } from '../fields/field-value.js'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { NoteLine } from './note-line.js'

interface LostValueProps {
  readonly field: FieldInfo
  readonly value: unknown
  readonly onUse: () => void
}

export function LostValue({ field, value, onUse }: LostValueProps) {
  const { form } = useTexts()
  return (
    <NoteLine label={form.useAgain} onAct={onUse}>
      {form.lost}{' '}
      <Box component="strong" sx={{ fontWeight: 600 }}>
        <FieldValue field={field} value={value} isShort />
      </Box>
    </NoteLine>
  )
}
