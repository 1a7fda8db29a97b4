// The conditions of a list, each with a button to change it and one to remove it.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import IconButton from '@mui/material/IconButton'
import { useState } from 'react'
import { formatValue } from '../fields/format-value.js'
import { CloseIcon } from '../layout/icons.js'
import type { FieldInfo } from '../service/model-info.js'
import type { Texts } from '../texts/english.js'
import { useTexts } from '../texts/texts.js'
import { ConditionDialog } from './condition-dialog.js'
import {
  hasValue,
  listOperators,
  readCondition,
  writeCondition,
  type Condition,
  type FilterObject,
} from './conditions.js'

interface ConditionBarProps {
  readonly fields: readonly FieldInfo[]
  readonly filters: readonly FilterObject[]
  readonly onChange: (filters: readonly FilterObject[]) => void
}

export function ConditionBar({ fields, filters, onChange }: ConditionBarProps) {
  const { list } = useTexts()
  const [edited, setEdited] = useState<number | undefined>(undefined)
  if (filters.length === 0) return null
  const replace = (index: number, ...replacement: readonly FilterObject[]) => {
    setEdited(undefined)
    onChange(filters.toSpliced(index, 1, ...replacement))
  }
  const editedFilter = edited === undefined ? undefined : filters[edited]
  return (
    <Box
      component="ul"
      aria-label={list.filters}
      sx={{ display: 'flex', flexWrap: 'wrap', gap: 1, m: 0, mb: 1.5, p: 0, listStyle: 'none' }}
    >
      {filters.map((filter, index) => (
        <ConditionChip
          key={index}
          fields={fields}
          filter={filter}
          onEdit={() => setEdited(index)}
          onRemove={() => replace(index)}
        />
      ))}
      {edited !== undefined && editedFilter && (
        <ConditionDialog
          fields={listFilterFields(fields)}
          condition={readCondition(editedFilter, fields)}
          onApply={(condition) => replace(edited, writeCondition(condition))}
          onRemove={() => replace(edited)}
          onClose={() => setEdited(undefined)}
        />
      )}
    </Box>
  )
}

/** People seldom look for the fields of the service, so these come last. */
export function listFilterFields(fields: readonly FieldInfo[]): readonly FieldInfo[] {
  const possible = fields.filter((field) => listOperators(field).length > 0)
  return [...possible.filter(({ isSystem }) => !isSystem), ...possible.filter(({ isSystem }) => isSystem)]
}

interface ConditionChipProps {
  readonly fields: readonly FieldInfo[]
  readonly filter: FilterObject
  readonly onEdit: () => void
  readonly onRemove: () => void
}

function ConditionChip({ fields, filter, onEdit, onRemove }: ConditionChipProps) {
  const texts = useTexts()
  const { list } = texts
  const condition = readCondition(filter, fields)
  const text = condition
    ? describeCondition(condition, texts)
    : `${list.otherFilter}: ${JSON.stringify(filter)}`
  return (
    <Box
      component="li"
      sx={{
        display: 'flex',
        alignItems: 'center',
        maxWidth: '100%',
        border: 1,
        borderColor: 'divider',
        borderRadius: 5,
        bgcolor: 'background.paper',
      }}
    >
      <Button
        size="small"
        color="inherit"
        onClick={onEdit}
        aria-label={list.editFilterOf(text)}
        sx={{
          borderRadius: 5,
          pl: 1.5,
          minWidth: 0,
          fontWeight: 400,
          overflowWrap: 'anywhere',
          textAlign: 'left',
        }}
      >
        {text}
      </Button>
      <IconButton size="small" onClick={onRemove} aria-label={list.removeFilterOf(text)}>
        <CloseIcon fontSize="small" />
      </IconButton>
    </Box>
  )
}

function describeCondition({ field, operator, value }: Condition, { list }: Texts): string {
  const beginning = `${field.title} ${list.operators[operator]}`
  if (!hasValue(operator)) return beginning
  const format = (each: unknown) =>
    operator === 'contains' || operator === 'begins' ? `“${String(each)}”` : formatValue(field, each)
  if (operator === 'between' && Array.isArray(value))
    return `${beginning} ${list.range(format(value[0]), format(value[1]))}`
  if (operator === 'oneOf' && Array.isArray(value)) return `${beginning} ${value.map(format).join(', ')}`
  return `${beginning} ${field.kind === 'links' ? formatValue(field, [value]) : format(value)}`
}
