// One line of an owned list: its inputs beside each other, or below each other on a phone.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import IconButton from '@mui/material/IconButton'
import Tooltip from '@mui/material/Tooltip'
import { memo } from 'react'
import { DeleteIcon, UndoIcon } from '../layout/icons.js'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { buildRecordPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import type { FieldInputProps } from './field-props.js'
import { isInLine, type Line } from './owned-lines.js'
import { OpenIcon } from './relation-inputs.js'
import { ValueInput } from './value-input.js'

const BUTTON_WIDTH = 34
const WIDE_KINDS: readonly string[] = ['text', 'json', 'links']
/** Edited in the form of the line itself. */
const APART_KINDS: readonly string[] = ['owned-list', 'file']

interface OwnedLineProps {
  readonly model: ModelInfo
  readonly fields: readonly FieldInfo[]
  readonly line: Line
  readonly index: number
  /** `addresses[0]`. */
  readonly path: string
  readonly errors: FieldInputProps['errors']
  readonly isDisabled: boolean | undefined
  readonly onChange: (index: number, name: string, value: unknown) => void
  readonly onRemove: (index: number) => void
}

/** Renders again only if the line itself changes: a list may have hundreds of them. */
export const OwnedLine = memo(function OwnedLine(props: OwnedLineProps) {
  const { model, fields, line, index, path, isDisabled, onRemove } = props
  const { fields: texts } = useTexts()
  const id = typeof line['id'] === 'number' ? line['id'] : undefined
  const canRemove = id === undefined || model.permissions.remove
  return (
    <Box
      component="li"
      aria-label={texts.line(index + 1)}
      sx={{
        display: 'flex',
        gap: 0.5,
        alignItems: 'flex-start',
        p: 1.5,
        pb: 0.5,
        'li + &': { borderTop: 1, borderColor: 'divider' },
      }}
    >
      <Box
        sx={{
          flexGrow: 1,
          minWidth: 0,
          display: 'grid',
          columnGap: 1.5,
          rowGap: 0.5,
          gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 170px), 1fr))',
        }}
      >
        {fields
          .filter((field) => isInLine(field, line))
          .map((field) => (
            <LineField key={field.name} {...props} field={field} id={id} />
          ))}
      </Box>
      <Box sx={{ display: 'flex', flexDirection: { xs: 'column', sm: 'row' } }}>
        {id === undefined ? (
          // Inputs of new lines are as wide as those of stored ones.
          <Box sx={{ width: BUTTON_WIDTH, display: { xs: 'none', sm: 'block' } }} />
        ) : (
          <Tooltip title={texts.openMember}>
            <IconButton
              component="a"
              href={`#${buildRecordPath(model.name, id)}`}
              target="_blank"
              rel="noopener"
              aria-label={`${texts.line(index + 1)}: ${texts.openMember}`}
              size="small"
              sx={{ height: 40, width: BUTTON_WIDTH }}
            >
              <OpenIcon />
            </IconButton>
          </Tooltip>
        )}
        {canRemove && (
          <Tooltip title={texts.removeLine(index + 1)}>
            {/* A disabled button has no events for the tooltip. */}
            <span>
              <IconButton
                id={`remove-${path}`}
                aria-label={texts.removeLine(index + 1)}
                size="small"
                disabled={isDisabled}
                onClick={() => onRemove(index)}
                sx={{ height: 40, width: BUTTON_WIDTH }}
              >
                <DeleteIcon fontSize="small" />
              </IconButton>
            </span>
          </Tooltip>
        )}
      </Box>
    </Box>
  )
})

interface LineFieldProps extends OwnedLineProps {
  readonly field: FieldInfo
  readonly id: number | undefined
}

function LineField({ model, line, index, path, errors, isDisabled, onChange, field, id }: LineFieldProps) {
  const { fields: texts } = useTexts()
  if (APART_KINDS.includes(field.kind)) {
    const members = line[field.name]
    return (
      <Box sx={{ fontSize: '.85rem', color: 'text.secondary', alignSelf: 'center' }}>
        {field.title}: {Array.isArray(members) ? texts.nestedList(members.length) : texts.editedApart}
      </Box>
    )
  }
  // A stored line without a version is only a name: the service would ignore its values.
  const isFixed = id !== undefined && (!model.permissions.write || typeof line['version'] !== 'number')
  return (
    <Box sx={{ minWidth: 0, gridColumn: WIDE_KINDS.includes(field.kind) ? '1 / -1' : undefined }}>
      <ValueInput
        model={model.name}
        field={{ ...field, help: '', isReadonly: isFixed }}
        path={`${path}.${field.name}`}
        value={line[field.name]}
        onChange={(value) => onChange(index, field.name, value)}
        errors={errors}
        recordId={id}
        version={typeof line['version'] === 'number' ? line['version'] : undefined}
        isDisabled={isDisabled}
      />
    </Box>
  )
}

interface RemovedLineRowProps {
  readonly id: string
  readonly name: string
  readonly isDisabled: boolean | undefined
  readonly onUndo: () => void
}

export function RemovedLineRow({ id, name, isDisabled, onUndo }: RemovedLineRowProps) {
  const { fields, common } = useTexts()
  return (
    <Box
      component="li"
      sx={{
        display: 'flex',
        flexWrap: 'wrap',
        alignItems: 'center',
        gap: 1,
        px: 1.5,
        py: 0.75,
        color: 'text.secondary',
        'li + &': { borderTop: 1, borderColor: 'divider' },
      }}
    >
      <Box component="span" sx={{ flexGrow: 1, overflowWrap: 'anywhere', minWidth: 0 }}>
        {fields.removedLine(name)}
      </Box>
      <Button
        id={id}
        size="small"
        startIcon={<UndoIcon />}
        disabled={isDisabled}
        onClick={onUndo}
        aria-label={`${common.undo}: ${fields.removedLine(name)}`}
      >
        {common.undo}
      </Button>
    </Box>
  )
}
