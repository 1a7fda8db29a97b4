// The mark at a field that somebody else has changed while the form is open.
import Box from '@mui/material/Box'
import { FieldValue } from '../fields/field-value.js'
import { RelativeTime } from '../texts/relative-time.js'
import type { FieldInfo } from '../service/model-info.js'
import { getAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'
import { NoteLine } from './note-line.js'
import { nameOtherAuthor } from '../editor/other-author.js'
import type { Mark } from '../editor/editor-state.js'

interface ChangeMarkProps {
  readonly field: FieldInfo
  readonly mark: Mark
  readonly onTake: () => void
}

export function ChangeMark({ field, mark, onTake }: ChangeMarkProps) {
  const { form } = useTexts()
  if (mark.isAdopted)
    return (
      <Box component="span" sx={{ color: 'info.main' }}>
        {form.markAdopted(nameOtherAuthor(mark.by))} <RelativeTime on={mark.on} />
      </Box>
    )
  const isOwn = mark.by?.id === getAccount().id
  return (
    <NoteLine color="warning.main" label={form.takeTheirs} onAct={onTake}>
      {isOwn ? form.markOwn : form.mark(nameOtherAuthor(mark.by))} <RelativeTime on={mark.on} />:{' '}
      <Box component="strong" sx={{ fontWeight: 600 }}>
        <FieldValue field={field} value={mark.value} isShort />
      </Box>
    </NoteLine>
  )
}
