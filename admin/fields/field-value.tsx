// Shows the value of a field.
import Box from '@mui/material/Box'
import Link from '@mui/material/Link'
import type { ReactNode } from 'react'
import { Link as RouterLink } from 'react-router'
import type { FieldInfo } from '../service/model-info.js'
import { buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { isInvalidInput, type FieldValueProps } from './field-props.js'
import { formatRelated, formatValue, isEmptyValue } from './format-value.js'
import { findLinks } from './link-text.js'

/** A cell of a table shows no more of a text, however long it is. */
const SHORT_CHARS = 200
const HIDDEN_SECRET = '••••••'

/** Inline, because it may be part of a sentence. */
const ONE_LINE = {
  display: 'inline-block',
  maxWidth: '100%',
  verticalAlign: 'bottom',
  overflow: 'hidden',
  textOverflow: 'ellipsis',
  whiteSpace: 'nowrap',
} as const
const ALL_LINES = { overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' } as const
/** Not absolute: in a table that scrolls, such a text would make the page wider. */
const UNSEEN = {
  display: 'inline-block',
  width: '1px',
  height: '1px',
  mr: '-1px',
  overflow: 'hidden',
  clipPath: 'inset(50%)',
  whiteSpace: 'nowrap',
} as const

export function FieldValue({ field, value, isShort = false }: FieldValueProps) {
  // Formats depend on the language, so a change of it renders this again.
  useTexts()
  if (field.isSecret) return <HiddenValue />
  if (isEmptyValue(value)) return <EmptyValue />
  if (isInvalidInput(value)) return <PlainText text={value.$invalid} isShort={isShort} />
  if (field.kind === 'reference') return <RelatedRecord field={field} value={value} />
  if (Array.isArray(value) && field.kind !== 'json')
    return <RelatedList field={field} values={value} isShort={isShort} />
  if (field.kind === 'json') return <JsonText text={formatValue(field, value)} isShort={isShort} />
  const text = formatValue(field, value)
  const isText = field.kind === 'string' || field.kind === 'text'
  if (isText && field.choices === undefined) return <PlainText text={text} isShort={isShort} />
  return (
    <Box component="span" sx={{ ...(isShort ? ONE_LINE : ALL_LINES), fontVariantNumeric: 'tabular-nums' }}>
      {text}
    </Box>
  )
}

function HiddenValue() {
  const { fields } = useTexts()
  return (
    <Box component="span" sx={{ color: 'text.secondary' }}>
      <span aria-hidden="true">{HIDDEN_SECRET}</span>
      <UnseenText>{fields.notShown}</UnseenText>
    </Box>
  )
}

export function EmptyValue() {
  const { common } = useTexts()
  return (
    <Box component="span" sx={{ color: 'text.secondary' }}>
      <span aria-hidden="true">—</span>
      <UnseenText>{common.empty}</UnseenText>
    </Box>
  )
}

/** A text for screen readers only. */
export function UnseenText({ children }: { readonly children: ReactNode }) {
  return (
    <Box component="span" sx={UNSEEN}>
      {children}
    </Box>
  )
}

function PlainText({ text, isShort }: { readonly text: string; readonly isShort: boolean }) {
  const shown = isShort ? text.slice(0, SHORT_CHARS) : text
  return (
    <Box
      component="span"
      title={isShort && text.length > SHORT_CHARS ? text.slice(0, 2 * SHORT_CHARS) : undefined}
      sx={isShort ? ONE_LINE : ALL_LINES}
    >
      {findLinks(shown).map(({ text: part, href }, index) =>
        href === undefined ? (
          part
        ) : (
          <Link
            key={index}
            href={href}
            {...(href.startsWith('mailto:') ? {} : { target: '_blank', rel: 'noopener noreferrer' })}
          >
            {part}
          </Link>
        ),
      )}
    </Box>
  )
}

function JsonText({ text, isShort }: { readonly text: string; readonly isShort: boolean }) {
  const shown = isShort
    ? text
        .slice(0, 2 * SHORT_CHARS)
        .replaceAll(/\s+/g, ' ')
        .slice(0, SHORT_CHARS)
    : text
  return (
    <Box
      component="code"
      sx={{ fontSize: '.9em', ...(isShort ? ONE_LINE : { ...ALL_LINES, display: 'block' }) }}
    >
      {shown}
    </Box>
  )
}

interface RelatedRecordProps {
  readonly field: FieldInfo
  readonly value: unknown
}

/** The name of a related record, as a link to it. */
export function RelatedRecord({ field, value }: RelatedRecordProps) {
  const name = formatRelated(value, field)
  const id = typeof value === 'object' && value !== null && 'id' in value ? value.id : undefined
  if (field.target === undefined || typeof id !== 'number') return <Box component="span">{name}</Box>
  return (
    <Link component={RouterLink} to={buildRecordPath(field.target, id)} sx={{ overflowWrap: 'anywhere' }}>
      {name}
    </Link>
  )
}

interface RelatedListProps {
  readonly field: FieldInfo
  readonly values: readonly unknown[]
  readonly isShort: boolean
}

function RelatedList({ field, values, isShort }: RelatedListProps) {
  const { common } = useTexts()
  if (isShort) return <>{common.records(values.length)}</>
  return (
    <Box component="ul" sx={{ m: 0, pl: 2.5 }}>
      {values.map((value, index) => (
        <li key={index}>
          <RelatedRecord field={field} value={value} />
        </li>
      ))}
    </Box>
  )
}
