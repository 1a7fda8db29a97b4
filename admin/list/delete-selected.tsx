// Deletes the selected records, after a question that names them. A message offers to undo it.
import Alert from '@mui/material/Alert'
import Button from '@mui/material/Button'
import Dialog from '@mui/material/Dialog'
import DialogActions from '@mui/material/DialogActions'
import DialogContent from '@mui/material/DialogContent'
import DialogContentText from '@mui/material/DialogContentText'
import DialogTitle from '@mui/material/DialogTitle'
import { useState } from 'react'
import { DeleteIcon } from '../layout/icons.js'
import { dataProvider, queryClient } from '../service/data.js'
import { showMessage, UNDO_MS } from '../layout/message-list.js'
import type { FieldInfo } from '../service/model-info.js'
import { fetchModel } from '../service/models.js'
import { restoreDeleted } from '../service/revert-record.js'
import { getTexts, useTexts } from '../texts/texts.js'
import { getRowName } from './row-name.js'
import type { Row } from './use-shown-rows.js'

const MAX_NAMES = 8

interface DeleteSelectedProps {
  readonly model: string
  readonly columns: readonly FieldInfo[]
  readonly rows: readonly Row[]
  /** Called when the records are deleted. */
  readonly onDeleted: () => void
  /** Called when the cache has the list without the records, or with them again. */
  readonly onChanged: () => void
}

export function DeleteSelected(props: DeleteSelectedProps) {
  const { common } = useTexts()
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button size="small" color="error" startIcon={<DeleteIcon />} onClick={() => setAsking(true)}>
        {common.delete}
      </Button>
      {isAsking && <DeleteDialog {...props} onClose={() => setAsking(false)} />}
    </>
  )
}

function DeleteDialog({
  model,
  columns,
  rows,
  onDeleted,
  onChanged,
  onClose,
}: DeleteSelectedProps & { readonly onClose: () => void }) {
  const { common, list } = useTexts()
  // Others may change the list behind the dialog. The question is about what was selected.
  const [asked] = useState(rows)
  const [isRunning, setRunning] = useState(false)
  const [failure, setFailure] = useState<string | undefined>(undefined)
  const run = async () => {
    setRunning(true)
    setFailure(undefined)
    try {
      await deleteRows(model, asked)
      offerUndo(model, asked, onChanged)
      onClose()
      onDeleted()
      await reload(model, onChanged)
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error))
      setRunning(false)
    }
  }
  const hidden = asked.length - MAX_NAMES
  return (
    <Dialog
      open
      onClose={isRunning ? undefined : onClose}
      aria-labelledby="delete-title"
      fullWidth
      maxWidth="xs"
    >
      <DialogTitle id="delete-title">{list.deleteTitle(asked.length)}</DialogTitle>
      <DialogContent>
        <DialogContentText
          component="ul"
          sx={{ mt: 0, pl: 2.5, overflowWrap: 'anywhere', color: 'text.primary' }}
        >
          {asked.slice(0, MAX_NAMES).map((row) => (
            <li key={row.id}>{getRowName(row, columns)}</li>
          ))}
          {hidden > 0 && <li>{list.andMore(hidden)}</li>}
        </DialogContentText>
        <DialogContentText>{list.deleteText}</DialogContentText>
        {failure !== undefined && (
          <Alert severity="error" sx={{ mt: 2, overflowWrap: 'anywhere' }}>
            {list.nothingDeleted} {failure}
          </Alert>
        )}
      </DialogContent>
      <DialogActions>
        <Button color="inherit" onClick={onClose} disabled={isRunning} autoFocus>
          {common.cancel}
        </Button>
        <Button color="error" variant="contained" onClick={() => void run()} disabled={isRunning}>
          {isRunning ? list.deleting : common.delete}
        </Button>
      </DialogActions>
    </Dialog>
  )
}

/** All or none: the versions make sure that nobody deletes what somebody else has just changed. */
async function deleteRows(model: string, rows: readonly Row[]): Promise<void> {
  const versions = Object.fromEntries(rows.map(({ id, version }) => [id, version]))
  await dataProvider.deleteMany(model, { ids: rows.map(({ id }) => id), meta: { versions } })
}

async function reload(model: string, onChanged: () => void): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: [model] })
  onChanged()
}

function offerUndo(model: string, rows: readonly Row[], onChanged: () => void): void {
  const { common, list } = getTexts()
  const run = () => void restoreRows(model, rows).then(() => reload(model, onChanged))
  showMessage({
    text: list.deletedMessage(rows.length),
    severity: 'success',
    durationMs: UNDO_MS,
    action: { label: common.undo, run },
  })
}

/** A delete takes the next version number, and a revert names the version that it replaces. */
async function restoreRows(model: string, rows: readonly Row[]): Promise<void> {
  const failures: string[] = []
  const info = await fetchModel(model)
  for (const { id, version } of rows) {
    try {
      await restoreDeleted({ model: info, id, to: version, version: version + 1 })
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error))
    }
  }
  const { list } = getTexts()
  const [reason] = failures
  const restored = rows.length - failures.length
  if (restored > 0) showMessage({ text: list.restoredMessage(restored), severity: 'success' })
  if (reason !== undefined)
    showMessage({ text: list.notRestored(failures.length, reason), severity: 'error' })
}
