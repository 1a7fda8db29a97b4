// A changed field: its value before and after.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { useState } from 'react'
import { UnseenText } from '../fields/field-value.js'
import type { FieldInfo } from '../service/model-info.js'
import { useTexts } from '../texts/texts.js'
import { HistoryValue } from './history-value.js'
import { MarkedText } from './marked-text.js'
import { areEqualValues } from './version-values.js'

interface ChangedFieldProps {
  readonly field: FieldInfo
  readonly before: unknown
  readonly after: unknown
  /** A created record has no values before, and a deleted one none after. */
  readonly action: 'create' | 'update' | 'delete'
}

export function ChangedField({ field, before, after, action }: ChangedFieldProps) {
  return (
    <Box sx={{ display: 'grid', gridTemplateColumns: { xs: '1fr', sm: '180px 1fr' }, columnGap: 2, py: 0.5 }}>
      <Typography component="dt" variant="body2" color="text.secondary" sx={{ overflowWrap: 'anywhere' }}>
        {field.title}
      </Typography>
      <Typography component="dd" variant="body2" sx={{ m: 0, minWidth: 0 }}>
        {action === 'update' ? (
          <ChangedValue field={field} before={before} after={after} />
        ) : (
          <HistoryValue field={field} value={action === 'create' ? after : before} />
        )}
      </Typography>
    </Box>
  )
}

function ChangedValue({ field, before, after }: Omit<ChangedFieldProps, 'action'>) {
  const { history } = useTexts()
  if (
    isLongText(field) &&
    typeof before === 'string' &&
    typeof after === 'string' &&
    before !== '' &&
    after !== ''
  )
    return <ChangedText before={before} after={after} />
  if (field.kind !== 'json' && Array.isArray(before) && Array.isArray(after))
    return <ChangedList field={field} before={before} after={after} />
  return (
    <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'baseline', columnGap: 1 }}>
      <Box component="span" sx={{ color: 'text.secondary', minWidth: 0 }}>
        <UnseenText>{history.before}: </UnseenText>
        <HistoryValue field={field} value={before} />
      </Box>
      <Box component="span" sx={{ color: 'text.secondary' }}>
        <span aria-hidden="true">→</span>
        <UnseenText>{history.becomes}</UnseenText>
      </Box>
      <Box component="span" sx={{ minWidth: 0, fontWeight: 500 }}>
        <UnseenText>{history.after}: </UnseenText>
        <HistoryValue field={field} value={after} />
      </Box>
    </Box>
  )
}

interface ChangedListProps {
  readonly field: FieldInfo
  readonly before: readonly unknown[]
  readonly after: readonly unknown[]
}

/** The members that were removed and added. Those that stay say nothing. */
function ChangedList({ field, before, after }: ChangedListProps) {
  const { history } = useTexts()
  const removed = before.filter((each) => !after.some((other) => areEqualValues(each, other)))
  const added = after.filter((each) => !before.some((other) => areEqualValues(each, other)))
  const parts = [
    [history.removed, removed],
    [history.added, added],
  ] as const
  return parts.map(
    ([label, members]) =>
      members.length > 0 && (
        <Box key={label} sx={{ display: 'flex', gap: 0.5 }}>
          <Box component="span" sx={{ color: 'text.secondary' }}>
            {label}
          </Box>
          <HistoryValue field={field} value={members} />
        </Box>
      ),
  )
}

/** Texts whose changed words are marked. */
export function isLongText(field: FieldInfo): boolean {
  return field.kind === 'text'
}

const SHORT_CHARS = 400

function ChangedText({ before, after }: { readonly before: string; readonly after: string }) {
  const { history } = useTexts()
  const [isWhole, setWhole] = useState(false)
  const isLong = before.length > SHORT_CHARS || after.length > SHORT_CHARS
  return (
    <>
      <MarkedText before={before} after={after} side="both" isShort={isLong && !isWhole} />
      {isLong && (
        <Button size="small" onClick={() => setWhole(!isWhole)} sx={{ display: 'block', ml: -0.75 }}>
          {isWhole ? history.onlyChanges : history.wholeText}
        </Button>
      )}
    </>
  )
}
