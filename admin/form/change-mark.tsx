// The mark at a field that somebody else has changed while the form is open.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import { FieldValue } from '../fields/field-value.js'
import { RelativeTime } from '../texts/relative-time.js'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { nameOtherAuthor } from '../editor/other-author.js'
import type { Mark } from '../editor/editor-state.js'

interface ChangeMarkProps {
  readonly field: FieldInfo
  readonly mark: Mark
  readonly onTake: () => void
}

export function ChangeMark({ field, mark, onTake }: ChangeMarkProps) {
  const { form } = useTexts()
  const who = nameOtherAuthor(mark.by)
  if (mark.isAdopted)
    return (
      <Box component="span" sx={{ color: 'info.main' }}>
        {form.markAdopted(who)} <RelativeTime on={mark.on} />
      </Box>
    )
  return (
    <Box component="span" sx={{ color: 'warning.main' }}>
      {/* First, because a narrow column cuts the end of the line. */}
      <Link
        component="button"
        type="button"
        color="inherit"
        onClick={onTake}
        sx={{ verticalAlign: 'baseline' }}
      >
        {form.takeTheirs}
      </Link>{' '}
      {form.mark(who)} <RelativeTime on={mark.on} />:{' '}
      <Box component="strong" sx={{ fontWeight: 600 }}>
        <FieldValue field={field} value={mark.value} isShort />
      </Box>
    </Box>
  )
}
