// What can be done with a stored record besides editing it: history, copy, delete.
import Button from '@mui/material/Button'
import { useState } from 'react'
import { Link as RouterLink, useNavigate } from 'react-router'
import { ConfirmDialog } from '../layout/confirm-dialog.js'
import { CopyIcon, DeleteIcon, HistoryIcon } from '../layout/icons.js'
import { findListAddress } from '../list/remembered-place.js'
import { getRecordName } from '../service/model-info.js'
import { showFailure, showMessage, UNDO_MS } from '../layout/message-list.js'
import { buildHistoryPath, buildRecordPath } from '../service/paths.js'
import { client } from '../service/session.js'
import { getTexts, useTexts } from '../texts/texts.js'
import { offerCopy } from '../editor/copied-record.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { undelete } from '../editor/undelete.js'

export function RecordActions({ editor }: { readonly editor: RecordEditor }) {
  const { form, common } = useTexts()
  const navigate = useNavigate()
  const [isAsking, setAsking] = useState(false)
  const { model, id } = editor
  if (id === undefined) return null
  const name = getRecordName(editor.state.value.latest, model.nameField)
  const remove = async () => {
    setAsking(false)
    if (await removeRecord(editor, id, name)) void navigate(findListAddress(model.name))
  }
  const copy = () => {
    offerCopy(model, editor.state.value.values)
    void navigate(buildRecordPath(model.name, 'new'))
  }
  return (
    <>
      <Button component={RouterLink} to={buildHistoryPath(model.name, id)} startIcon={<HistoryIcon />}>
        {form.history}
      </Button>
      {model.permissions.create && editor.fields.length > 0 && (
        <Button onClick={copy} startIcon={<CopyIcon />}>
          {form.clone}
        </Button>
      )}
      {model.permissions.remove && editor.fields.length > 0 && (
        <Button color="error" onClick={() => setAsking(true)} startIcon={<DeleteIcon />}>
          {form.delete}
        </Button>
      )}
      <ConfirmDialog
        isOpen={isAsking}
        title={form.deleteTitle(name)}
        text={form.deleteText}
        confirmLabel={common.delete}
        onConfirm={() => void remove()}
        onCancel={() => setAsking(false)}
      />
    </>
  )
}

/** Deletes the record at the version that the person sees. Returns false if it was not deleted. */
async function removeRecord(editor: RecordEditor, id: number, name: string): Promise<boolean> {
  const { form, common } = getTexts()
  const { model } = editor
  const version = Number(editor.state.value.latest['version'])
  try {
    editor.unfollow()
    await client.model(model.name).remove(id, { version })
  } catch (error) {
    editor.follow()
    showFailure(error)
    await editor.refresh()
    return false
  }
  showMessage({
    text: form.deleted(name),
    severity: 'success',
    // Replaces the message of the last save, which can no longer be undone.
    group: `${model.name}/${id}`,
    durationMs: UNDO_MS,
    action: {
      label: common.undo,
      run: () => {
        undelete(model, id)
          .then(() => showMessage({ text: form.restored(name), severity: 'success' }))
          .catch(showFailure)
      },
    },
  })
  return true
}
