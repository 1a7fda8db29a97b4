// Deleted records: a table on wide screens, cards on phones.
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Card from '@mui/material/Card'
import Table from '@mui/material/Table'
import TableBody from '@mui/material/TableBody'
import TableCell from '@mui/material/TableCell'
import TableContainer from '@mui/material/TableContainer'
import TableHead from '@mui/material/TableHead'
import TableRow from '@mui/material/TableRow'
import Typography from '@mui/material/Typography'
import useMediaQuery from '@mui/material/useMediaQuery'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Link as RouterLink } from 'react-router'
import type { Change } from 'verso-records/client'
import { getRecordName, type ModelInfo } from '../service/model-info.js'
import { buildHistoryPath } from '../service/paths.js'
import { useTexts } from '../texts/texts.js'
import { nameAuthor } from '../texts/author-name.js'
import { RelativeTime } from '../texts/relative-time.js'
import { restoreRecord } from './restore.js'
import { useRecordAt } from './use-record-at.js'

interface DeletedTableProps {
  readonly model: ModelInfo
  readonly changes: readonly Change[]
}

export function DeletedTable({ model, changes }: DeletedTableProps) {
  const { history } = useTexts()
  const isWide = useMediaQuery('(min-width: 700px)')
  if (!isWide)
    return (
      <Box component="ul" sx={{ m: 0, p: 0, display: 'flex', flexDirection: 'column', gap: 1.5 }}>
        {changes.map((change) => (
          <DeletedCard key={change.seq} model={model} change={change} />
        ))}
      </Box>
    )
  return (
    <TableContainer component={Card}>
      <Table>
        <TableHead>
          <TableRow>
            <TableCell>{history.name}</TableCell>
            <TableCell>{history.deletedBy}</TableCell>
            <TableCell>{history.deletedOn}</TableCell>
            <TableCell align="right">{history.actionsColumn}</TableCell>
          </TableRow>
        </TableHead>
        <TableBody>
          {changes.map((change) => (
            <DeletedRow key={change.seq} model={model} change={change} />
          ))}
        </TableBody>
      </Table>
    </TableContainer>
  )
}

interface DeletedRecordProps {
  readonly model: ModelInfo
  readonly change: Change
}

function DeletedRow({ model, change }: DeletedRecordProps) {
  const name = useDeletedName(model, change)
  return (
    <TableRow>
      <TableCell component="th" scope="row" sx={{ overflowWrap: 'anywhere' }}>
        {name}
      </TableCell>
      <TableCell>{nameAuthor(change.by)}</TableCell>
      <TableCell>
        <RelativeTime on={change.on} />
      </TableCell>
      <TableCell align="right" sx={{ whiteSpace: 'nowrap' }}>
        <DeletedActions model={model} change={change} name={name} />
      </TableCell>
    </TableRow>
  )
}

function DeletedCard({ model, change }: DeletedRecordProps) {
  const { history } = useTexts()
  const name = useDeletedName(model, change)
  return (
    <Card component="li" sx={{ p: 2, listStyle: 'none' }}>
      <Typography component="h2" variant="h3" sx={{ overflowWrap: 'anywhere' }}>
        {name}
      </Typography>
      <Typography variant="body2" color="text.secondary">
        {history.by(history.actions.delete, nameAuthor(change.by))}, <RelativeTime on={change.on} />
      </Typography>
      <Box sx={{ mt: 1, ml: -0.75 }}>
        <DeletedActions model={model} change={change} name={name} />
      </Box>
    </Card>
  )
}

function DeletedActions({ model, change, name }: DeletedRecordProps & { readonly name: string }) {
  const { history } = useTexts()
  const queryClient = useQueryClient()
  const [isBusy, setBusy] = useState(false)
  const restore = async () => {
    setBusy(true)
    await restoreRecord({ model, id: change.id, name, newest: change })
    await queryClient.invalidateQueries({ queryKey: [model.name] })
    setBusy(false)
  }
  return (
    <>
      <Button
        size="small"
        component={RouterLink}
        to={buildHistoryPath(model.name, change.id)}
        aria-label={history.lookLabel(name)}
      >
        {history.look}
      </Button>
      {model.permissions.create && (
        <Button
          size="small"
          disabled={isBusy}
          onClick={() => void restore()}
          aria-label={history.restoreLabel(name)}
        >
          {history.restore}
        </Button>
      )}
    </>
  )
}

/** A name that the service computes is not in the change log. It is read with the last version. */
function useDeletedName(
  { name: model, nameField = '' }: ModelInfo,
  { id, version, changes }: Change,
): string {
  const before = changes[nameField]?.before
  const isInLog = typeof before === 'string' && before !== ''
  const { data } = useRecordAt(model, id, isInLog || nameField === '' ? undefined : version - 1)
  return isInLog ? before : getRecordName(data ?? { id }, nameField)
}
