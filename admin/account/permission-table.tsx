// The permissions of a role: a table on wide screens, cards on phones.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import Checkbox from '@mui/material/Checkbox'
import FormControlLabel from '@mui/material/FormControlLabel'
import Table from '@mui/material/Table'
import TableBody from '@mui/material/TableBody'
import TableCell from '@mui/material/TableCell'
import TableHead from '@mui/material/TableHead'
import TableRow from '@mui/material/TableRow'
import Typography from '@mui/material/Typography'
import useMediaQuery from '@mui/material/useMediaQuery'
import { useRef } from 'react'
import { UnseenText } from '../fields/field-value.js'
import { AddIcon } from '../layout/icons.js'
import { shortenName } from '../service/model-info.js'
import { useTexts, getTexts } from '../texts/texts.js'
import { ModelInput, PermissionDetails, RemoveButton, type LineProps } from './permission-inputs.js'
import {
  createLine,
  PERMISSION_ACTIONS,
  readLines,
  type PermissionAction,
  type PermissionLine,
} from './permission-line.js'

export interface PermissionTableProps {
  readonly value: unknown
  readonly onChange: (value: readonly PermissionLine[]) => void
  /** Messages by path, of the whole form. */
  readonly errors: Readonly<Record<string, string>>
  readonly path: string
  readonly isDisabled?: boolean | undefined
}

export function PermissionTable({ value, onChange, errors, path, isDisabled = false }: PermissionTableProps) {
  const { account } = useTexts()
  const isWide = useMediaQuery('(min-width: 800px)')
  const lines = readLines(value)
  const keys = useLineKeys(lines.length)
  const rows = lines.map((line, index): LineProps & { readonly key: number } => ({
    key: keys.current[index] ?? index,
    line,
    path: `${path}[${index}]`,
    errors,
    isDisabled,
    onChange: (changed) =>
      onChange(lines.map((each, other) => (other === index ? { ...each, ...changed } : each))),
    onRemove: () => {
      keys.current = keys.current.filter((_, other) => other !== index)
      onChange(lines.filter((_, other) => other !== index))
    },
  }))
  return (
    <Box component="section" aria-label={account.permissions}>
      <Typography component="h2" variant="h2" sx={{ mb: 1 }}>
        {account.permissions}
      </Typography>
      {errors[path] !== undefined && <Alert severity="error">{errors[path]}</Alert>}
      {lines.length === 0 && <Typography color="text.secondary">{account.noPermissions}</Typography>}
      {lines.length > 0 &&
        (isWide ? <WideTable rows={rows} /> : rows.map(({ key, ...row }) => <LineCard key={key} {...row} />))}
      <Button
        startIcon={<AddIcon />}
        disabled={isDisabled}
        onClick={() => onChange([...lines, createLine()])}
        sx={{ mt: 1 }}
      >
        {account.addPermission}
      </Button>
    </Box>
  )
}

/** New lines have no id, so each line gets a key. Without it, inputs would keep the text of a line that is removed. */
function useLineKeys(count: number) {
  const keys = useRef<readonly number[]>([])
  const last = useRef(0)
  if (keys.current.length > count) keys.current = keys.current.slice(0, count)
  while (keys.current.length < count) keys.current = [...keys.current, ++last.current]
  return keys
}

function WideTable({ rows }: { readonly rows: readonly (LineProps & { readonly key: number })[] }) {
  const { account } = useTexts()
  return (
    <Table size="small" sx={{ tableLayout: 'fixed' }}>
      <TableHead>
        <TableRow>
          <TableCell>{account.model}</TableCell>
          {PERMISSION_ACTIONS.map((action) => (
            <TableCell key={action} align="center" sx={{ width: 88, px: 0.5 }}>
              {nameAction(action)}
            </TableCell>
          ))}
          <TableCell sx={{ width: 52, p: 0 }}>
            <UnseenText>{account.removeColumn}</UnseenText>
          </TableCell>
        </TableRow>
      </TableHead>
      {rows.map(({ key, ...row }) => (
        <LineRows key={key} {...row} />
      ))}
    </Table>
  )
}

function LineRows(props: LineProps) {
  const { line, onChange, isDisabled } = props
  const noBorder = { borderBottom: 0, verticalAlign: 'top' }
  return (
    <TableBody>
      <TableRow>
        <TableCell sx={{ ...noBorder, pt: 2, pb: 0 }}>
          <ModelInput {...props} />
        </TableCell>
        {PERMISSION_ACTIONS.map((action) => (
          <TableCell key={action} align="center" sx={{ ...noBorder, px: 0.5, pt: 1.75, pb: 0 }}>
            <Checkbox
              checked={line[action]}
              disabled={isDisabled}
              onChange={(_, isChecked) => onChange({ [action]: isChecked })}
              slotProps={{ input: { 'aria-label': `${nameAction(action)}: ${line.model}` } }}
            />
          </TableCell>
        ))}
        <TableCell sx={{ ...noBorder, p: 0, pt: 1.75 }}>
          <RemoveButton {...props} />
        </TableCell>
      </TableRow>
      <TableRow>
        <TableCell colSpan={PERMISSION_ACTIONS.length + 2} sx={{ pt: 1.75, pb: 2 }}>
          <PermissionDetails {...props} />
        </TableCell>
      </TableRow>
    </TableBody>
  )
}

function LineCard(props: LineProps) {
  const { account } = useTexts()
  const { line, onChange, isDisabled } = props
  return (
    <Card
      component="fieldset"
      sx={{ m: 0, mb: 1.5, p: 1.5, minWidth: 0 }}
      aria-label={account.permission(line.model || account.newPermission)}
    >
      {/* The input is too narrow for the whole name of a model. */}
      <Typography component="h3" variant="h3" sx={{ mb: 1.5, overflowWrap: 'anywhere' }}>
        {account.permission(
          line.model === ''
            ? account.newPermission
            : line.model.endsWith('*')
              ? line.model
              : shortenName(line.model),
        )}
      </Typography>
      <Box sx={{ display: 'flex', alignItems: 'flex-start', gap: 0.5 }}>
        <ModelInput {...props} />
        <RemoveButton {...props} />
      </Box>
      <Box sx={{ display: 'grid', gridTemplateColumns: 'repeat(auto-fill, minmax(120px, 1fr))', mb: 1 }}>
        {PERMISSION_ACTIONS.map((action) => (
          <FormControlLabel
            key={action}
            control={
              <Checkbox
                checked={line[action]}
                disabled={isDisabled}
                onChange={(_, isChecked) => onChange({ [action]: isChecked })}
              />
            }
            label={nameAction(action)}
          />
        ))}
      </Box>
      <PermissionDetails {...props} />
    </Card>
  )
}

function nameAction(action: PermissionAction): string {
  const { account } = getTexts()
  const names = {
    canRead: account.read,
    canCreate: account.create,
    canUpdate: account.update,
    canRemove: account.remove,
    canExport: account.export,
  }
  return names[action]
}
