// One value that both sides changed: two sides to choose from, the value before both on demand, and the result.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import ButtonBase from '@mui/material/ButtonBase'
import Typography from '@mui/material/Typography'
import { useId, useState, type KeyboardEvent, type ReactNode } from 'react'
import { FieldInput } from '../fields/field-input.js'
import { formatValue } from '../fields/format-value.js'
import type { Clash } from '../editor/merge.js'
import { listLineFields, type RecordValues } from '../editor/record-values.js'
import { MarkedText } from '../history/marked-text.js'
import { RelativeTime } from '../texts/relative-time.js'
import type { FieldInfo } from '../service/model-info.js'
import { toTitle } from '../service/model-info.js'
import { useModel } from '../service/models.js'
import { useTexts } from '../texts/texts.js'

export interface Choice {
  readonly side: 'ours' | 'theirs'
  /** The value of that side, or what the person has made of it. */
  readonly value: unknown
}

interface ClashChoiceProps {
  readonly clash: Clash
  readonly author: string
  readonly changedOn: string | null
  readonly choice: Choice | undefined
  readonly onChoose: (choice: Choice) => void
}

/** Texts from this length on show which words differ. */
const LONG_TEXT_CHARACTERS = 30

export function ClashChoice({ clash, author, changedOn, choice, onChoose }: ClashChoiceProps) {
  const { conflict: texts } = useTexts()
  const [showsBase, setShowsBase] = useState(false)
  const field = useClashField(clash)
  const titleId = useId()
  const baseId = useId()
  const title = buildTitle(clash, field, texts.lineOf)
  const when = changedOn === null ? null : <RelativeTime on={changedOn} />
  return (
    <Box
      role="group"
      aria-labelledby={titleId}
      sx={{ border: 1, borderColor: 'divider', borderRadius: 2, p: 2, mb: 2 }}
    >
      <Typography id={titleId} component="h3" variant="h3" sx={{ mb: 1 }}>
        {title}
      </Typography>
      <Box
        role="radiogroup"
        onKeyDown={moveBetweenSides}
        aria-labelledby={titleId}
        sx={{ display: 'grid', gridTemplateColumns: { xs: '1fr', sm: '1fr 1fr' }, gap: 1.5 }}
      >
        <Side
          label={texts.yours}
          isChosen={choice?.side === 'ours'}
          onChoose={() => onChoose({ side: 'ours', value: clash.ours })}
        >
          <SideValue clash={clash} field={field} side="ours" />
        </Side>
        <Side
          label={
            <>
              {author}
              {when && <>, {when}</>}
            </>
          }
          isChosen={choice?.side === 'theirs'}
          onChoose={() => onChoose({ side: 'theirs', value: clash.theirs })}
        >
          <SideValue clash={clash} field={field} side="theirs" />
        </Side>
      </Box>
      <Button
        size="small"
        sx={{ mt: 1 }}
        aria-expanded={showsBase}
        aria-controls={baseId}
        onClick={() => setShowsBase(!showsBase)}
      >
        {showsBase ? texts.hideBefore : texts.showBefore}
      </Button>
      <Box id={baseId} hidden={!showsBase} sx={{ p: 1, bgcolor: 'background.default', borderRadius: 1 }}>
        <ValueText field={field} value={clash.base} />
      </Box>
      {choice && isEditable(clash, choice) && (
        <Box sx={{ mt: 1.5 }}>
          <FieldInput
            model=""
            field={{ ...field, title: texts.result, help: '' }}
            path={`result-${field.name}-${clash.line?.id ?? ''}`}
            value={choice.value}
            onChange={(value) => onChoose({ ...choice, value })}
            errors={{}}
          />
        </Box>
      )}
    </Box>
  )
}

/** Arrow keys choose the other side, as in every group of radio buttons. */
function moveBetweenSides(event: KeyboardEvent<HTMLElement>): void {
  if (!event.key.startsWith('Arrow')) return
  const sides = [...event.currentTarget.querySelectorAll<HTMLElement>('[role=radio]')]
  const other = sides.find((side) => side !== document.activeElement)
  event.preventDefault()
  other?.focus()
  other?.click()
}

/** The field of the value: inside of a line, that of the model of the line. */
function useClashField({ field, lineField }: Clash): FieldInfo {
  const { data: lineModel } = useModel(
    lineField === undefined ? '' : (field.target ?? ''),
    lineField !== undefined,
  )
  if (lineField === undefined) return field
  const known = lineModel?.fields.find(({ name }) => name === lineField)
  return known ?? { ...field, name: lineField, title: toTitle(lineField), kind: 'string' }
}

function buildTitle(
  { field, line, lineField }: Clash,
  shown: FieldInfo,
  join: (list: string, line: string) => string,
): string {
  if (!line) return field.title
  const name = join(field.title, line.name === '' ? `#${line.id}` : line.name)
  return lineField === undefined ? name : `${name} · ${shown.title}`
}

/** A file is taken as it is, and so is a line that one side removed. */
function isEditable({ field, line, lineField }: Clash, { value }: Choice): boolean {
  if (line) return lineField !== undefined
  return field.kind !== 'file' && field.kind !== 'owned-list' && value !== undefined
}

interface SideProps {
  readonly label: ReactNode
  readonly isChosen: boolean
  readonly onChoose: () => void
  readonly children: ReactNode
}

/** Both sides are stops of the Tab key, because nothing is chosen at first. */
function Side({ label, isChosen, onChoose, children }: SideProps) {
  return (
    <ButtonBase
      role="radio"
      aria-checked={isChosen}
      onClick={onChoose}
      sx={{
        display: 'flex',
        flexDirection: 'column',
        alignItems: 'stretch',
        justifyContent: 'flex-start',
        textAlign: 'start',
        p: 1.5,
        border: 2,
        borderRadius: 2,
        borderColor: isChosen ? 'primary.main' : 'divider',
        font: 'inherit',
        overflowWrap: 'anywhere',
        minHeight: 72,
      }}
    >
      <Box
        component="span"
        sx={{
          display: 'flex',
          alignItems: 'center',
          gap: 1,
          fontWeight: 600,
          fontSize: '.85rem',
          color: 'text.secondary',
          mb: 0.5,
        }}
      >
        <Box
          component="span"
          aria-hidden
          sx={{
            width: 16,
            height: 16,
            flexShrink: 0,
            borderRadius: '50%',
            border: isChosen ? 5 : 2,
            borderColor: isChosen ? 'primary.main' : 'text.secondary',
          }}
        />
        <span>{label}</span>
      </Box>
      <Box component="span" sx={{ display: 'block', maxHeight: 320, overflow: 'auto' }}>
        {children}
      </Box>
    </ButtonBase>
  )
}

interface SideValueProps {
  readonly clash: Clash
  readonly field: FieldInfo
  readonly side: 'ours' | 'theirs'
}

function SideValue({ clash, field, side }: SideValueProps) {
  const { conflict: texts } = useTexts()
  const value = clash[side]
  if (clash.line && clash.lineField === undefined)
    return value === undefined ? <em>{texts.removed}</em> : <LineText line={value as RecordValues} />
  const before = findComparedText(clash, side)
  const isMarked = typeof value === 'string' && before !== undefined && value.length > LONG_TEXT_CHARACTERS
  if (isMarked) return <MarkedText before={before} after={value} side="after" />
  return <ValueText field={field} value={value} />
}

/** The text before both, or else that of the other side: the words that differ from it are marked. */
function findComparedText(clash: Clash, side: 'ours' | 'theirs'): string | undefined {
  const other = side === 'ours' ? clash.theirs : clash.ours
  return [clash.base, other].find((text) => typeof text === 'string' && text !== '') as string | undefined
}

function LineText({ line }: { readonly line: RecordValues }) {
  const texts = listLineFields(line).map((name) => {
    const value = line[name]
    return typeof value === 'string' || typeof value === 'number' ? `${toTitle(name)}: ${value}` : ''
  })
  return <>{texts.filter((text) => text !== '').join(' · ')}</>
}

function ValueText({ field, value }: { readonly field: FieldInfo; readonly value: unknown }) {
  const { common } = useTexts()
  if (value === null || value === undefined || value === '') return <em>{common.empty}</em>
  return <>{formatValue(field, value)}</>
}
