// Inputs for related records: one, or several.
import Box from '@mui/material/Box'
import IconButton from '@mui/material/IconButton'
import SvgIcon from '@mui/material/SvgIcon'
import Tooltip from '@mui/material/Tooltip'
import type { ReactNode } from 'react'
import { RelationPicker, type RelatedRecord } from './relation-picker.js'
import { getRecordName } from '../service/model-info.js'
import { buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { FieldFrame, findError } from './field-frame.js'
import { buildInputId, type FieldInputProps } from './field-props.js'

function isRelated(value: unknown): value is RelatedRecord {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'number'
}

function readPickerProps(props: FieldInputProps) {
  const { field, path, isDisabled } = props
  return {
    id: buildInputId(path),
    label: field.title,
    target: field.target ?? '',
    targetName: field.targetName,
    isRequired: field.isRequired,
    isDisabled,
    error: findError(props),
    helperText: field.help === '' ? undefined : field.help,
  }
}

/** The picker tells screen readers the error. People see it in the line of the frame, which keeps its height. */
function PickerFrame({ input, children }: { readonly input: FieldInputProps; readonly children: ReactNode }) {
  return (
    <FieldFrame input={input}>
      <Box
        sx={{
          // Contains the hidden text of the picker.
          position: 'relative',
          display: 'flex',
          alignItems: 'flex-start',
          gap: 0.5,
          '& > .MuiAutocomplete-root': { flexGrow: 1, minWidth: 0 },
          '& .MuiFormHelperText-root': {
            position: 'absolute',
            width: '1px',
            height: '1px',
            minHeight: 0,
            m: 0,
            overflow: 'hidden',
            clipPath: 'inset(50%)',
          },
        }}
      >
        {children}
      </Box>
    </FieldFrame>
  )
}

export function ReferenceInput(props: FieldInputProps) {
  const { field, value, onChange } = props
  const related = isRelated(value) ? value : null
  return (
    <PickerFrame input={props}>
      <RelationPicker {...readPickerProps(props)} value={related} onChange={onChange} />
      <OpenLink target={field.target ?? ''} targetName={field.targetName} related={related} />
    </PickerFrame>
  )
}

export function LinksInput(props: FieldInputProps) {
  const { value, onChange } = props
  const related = Array.isArray(value) ? value.filter(isRelated) : []
  return (
    <PickerFrame input={props}>
      <RelationPicker {...readPickerProps(props)} isMultiple value={related} onChange={onChange} />
    </PickerFrame>
  )
}

interface OpenLinkProps {
  readonly target: string
  readonly targetName: string | undefined
  readonly related: RelatedRecord | null
}

/** In a new tab, so that the form stays. Its place is there also without a record: the input keeps its width. */
function OpenLink({ target, targetName, related }: OpenLinkProps) {
  const { fields } = useTexts()
  const label = related ? fields.openRecord(getRecordName(related, targetName)) : ''
  if (!related) return <Box sx={{ width: 36, flexShrink: 0 }} />
  return (
    <Tooltip title={label}>
      <IconButton
        component="a"
        href={`#${buildRecordPath(target, related.id)}`}
        target="_blank"
        rel="noopener"
        aria-label={label}
        size="small"
        sx={{ width: 36, height: 40, flexShrink: 0 }}
      >
        <OpenIcon />
      </IconButton>
    </Tooltip>
  )
}

export function OpenIcon() {
  return (
    <SvgIcon
      fontSize="small"
      sx={{
        fill: 'none',
        stroke: 'currentColor',
        strokeWidth: 1.8,
        strokeLinecap: 'round',
        strokeLinejoin: 'round',
      }}
    >
      <path d="M14 4h6v6" />
      <path d="M20 4l-9 9" />
      <path d="M18 14v6H4V6h6" />
    </SvgIcon>
  )
}
