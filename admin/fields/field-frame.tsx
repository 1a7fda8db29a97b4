// What all inputs have around them: help below, and a line for an error and a note. The line is always there, so no field jumps.
import Box from '@mui/material/Box'
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import { buildInputId, type FieldInputProps } from './field-props.js'

const LINE_HEIGHT = 1.35
const LINE = {
  fontSize: '.75rem',
  lineHeight: LINE_HEIGHT,
  color: 'text.secondary',
  ml: 1.75,
  overflowWrap: 'anywhere',
} as const
/** A long line is shown in full above the next field, while the pointer or the focus is here. Nothing moves. */
const OPEN = { whiteSpace: 'normal', overflow: 'visible', zIndex: 2, bgcolor: 'background.paper' } as const
const OPEN_LONG = { ...OPEN, boxShadow: 4, borderRadius: 1, px: 1, pb: 1, mx: -1 } as const
const FRAME = 'verso-field'
/** A field that gets the focus is not below the bars of the page. */
const SCROLL_MARGIN = '80px'

interface FieldFrameProps {
  readonly input: Pick<FieldInputProps, 'field' | 'path' | 'errors' | 'note'>
  /** Something wrong that was found without the service. */
  readonly problem?: string | undefined
  /** A short remark, such as the number of characters that are left. */
  readonly remark?: string | undefined
  /** Further help, after that of the field. */
  readonly hint?: string | undefined
  readonly children: ReactNode
}

export function FieldFrame({ input, problem, remark, hint, children }: FieldFrameProps) {
  const { field, path, note } = input
  const error = findError(input, problem)
  const help = [field.help, hint].filter((text) => text !== undefined && text !== '').join(' ')
  const ids = buildDescriptionIds(path)
  return (
    <Box
      className={FRAME}
      sx={{ minWidth: 0, '& :is(input, textarea, button, [tabindex])': { scrollMargin: SCROLL_MARGIN } }}
    >
      {children}
      {help !== '' && (
        <Box id={ids.help} sx={{ ...LINE, mt: 0.5 }}>
          {help}
        </Box>
      )}
      <FrameLine id={ids.line}>
        {error !== undefined && (
          <Box component="span" sx={{ color: 'error.main' }}>
            {error}
          </Box>
        )}
        {error !== undefined && hasContent(note) && ' · '}
        {note}
        {error === undefined && !hasContent(note) && remark}
      </FrameLine>
    </Box>
  )
}

function FrameLine({ id, children }: { readonly id: string; readonly children: ReactNode }) {
  const line = useRef<HTMLDivElement>(null)
  const [isLong, setLong] = useState(false)
  // After each render, because the width depends on the page. Renders again only when the answer changes.
  useLayoutEffect(() => {
    const { current } = line
    if (!current || current.matches(`:hover, .${FRAME}:focus-within > * > *`)) return
    setLong(current.scrollWidth > current.clientWidth)
  })
  const open = isLong ? OPEN_LONG : OPEN
  return (
    <Box
      sx={{
        position: 'relative',
        ...LINE,
        height: `${LINE_HEIGHT}em`,
        mt: 0.25,
        mb: 0.75,
        [`.${FRAME}:focus-within > & > *`]: open,
      }}
    >
      <Box
        ref={line}
        id={id}
        sx={{
          position: 'absolute',
          left: 0,
          right: 0,
          top: 0,
          whiteSpace: 'nowrap',
          overflow: 'hidden',
          textOverflow: 'ellipsis',
          '&:hover': open,
        }}
      >
        {children}
      </Box>
    </Box>
  )
}

function hasContent(note: ReactNode): boolean {
  return note !== undefined && note !== null && note !== false && note !== ''
}

export function findError(
  { errors, path }: Pick<FieldInputProps, 'errors' | 'path'>,
  problem?: string,
): string | undefined {
  return errors[path] ?? problem
}

function buildDescriptionIds(path: string) {
  const id = buildInputId(path)
  return { help: `${id}-help`, line: `${id}-line` }
}

/** The value of `aria-describedby`. An id that is not in the page does no harm. */
export function describeInput(path: string): string {
  const { help, line } = buildDescriptionIds(path)
  return `${line} ${help}`
}
