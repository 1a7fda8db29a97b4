// One side of a changed text, with the changed words marked.
import Box from '@mui/material/Box'
import { alpha, type Theme } from '@mui/material/styles'
import { Fragment, useMemo } from 'react'
import { UnseenText } from '../fields/field-value.js'
import { useTexts } from '../texts/texts.js'
import { diffWords, type TextPart } from './word-diff.js'

interface MarkedTextProps {
  readonly before: string
  readonly after: string
  /** The text to show; `both` shows removed and added words in one text. */
  readonly side: 'before' | 'after' | 'both'
  /** Long parts without a change are cut. */
  readonly isShort?: boolean | undefined
}

const HIDDEN_KIND = { before: 'added', after: 'removed', both: undefined } as const

export function MarkedText({ before, after, side, isShort = false }: MarkedTextProps) {
  const parts = useMemo(() => diffWords(before, after), [before, after])
  const shown = parts.filter(({ kind }) => kind !== HIDDEN_KIND[side])
  return (
    <Box component="span" sx={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
      {shown.map((part, index) => (
        <Part key={index} part={isShort ? shorten(part, index > 0, index < shown.length - 1) : part} />
      ))}
    </Box>
  )
}

function Part({ part: { kind, text } }: { readonly part: TextPart }) {
  const { history } = useTexts()
  if (kind === 'same') return <Fragment>{text}</Fragment>
  const isAdded = kind === 'added'
  // Screen readers pass over <ins> and <del> in silence, so hidden words say where a change begins and ends.
  return (
    <Box component={isAdded ? 'ins' : 'del'} sx={isAdded ? markAdded : markRemoved}>
      <UnseenText>{isAdded ? history.addedBegin : history.removedBegin}</UnseenText>
      {text}
      <UnseenText>{isAdded ? history.addedEnd : history.removedEnd}</UnseenText>
    </Box>
  )
}

const MARK_OPACITY = 0.18
const mark = { color: 'inherit', borderRadius: '3px', px: '1px', boxDecorationBreak: 'clone' }
const markAdded = {
  ...mark,
  bgcolor: (theme: Theme) => alpha(theme.palette.success.main, MARK_OPACITY),
  textDecorationThickness: '1px',
  textUnderlineOffset: '3px',
}
const markRemoved = { ...mark, bgcolor: (theme: Theme) => alpha(theme.palette.error.main, MARK_OPACITY) }

const CONTEXT_CHARS = 120
const ELLIPSIS = ' … '

/** Keeps the text beside a change. */
function shorten(part: TextPart, hasChangeBefore: boolean, hasChangeAfter: boolean): TextPart {
  const { kind, text } = part
  if (kind !== 'same' || text.length <= 2 * CONTEXT_CHARS) return part
  const begin = hasChangeBefore ? text.slice(0, CONTEXT_CHARS) : ''
  const end = hasChangeAfter ? text.slice(-CONTEXT_CHARS) : ''
  if (begin === '' && end === '') return { kind, text: text.slice(0, 2 * CONTEXT_CHARS) + ELLIPSIS }
  return { kind, text: `${begin}${ELLIPSIS}${end}` }
}
