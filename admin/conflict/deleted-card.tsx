// The card for a record that somebody has deleted while its form was open. No way out of it loses what was typed without offering it back.
import Button from '@mui/material/Button'
import Dialog from '@mui/material/Dialog'
import DialogActions from '@mui/material/DialogActions'
import DialogContent from '@mui/material/DialogContent'
import DialogContentText from '@mui/material/DialogContentText'
import DialogTitle from '@mui/material/DialogTitle'
import { useState } from 'react'
import { useNavigate } from 'react-router'
import { nameOtherAuthor } from '../editor/other-author.js'
import type { Deletion } from '../editor/editor-state.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { undelete } from '../editor/undelete.js'
import { offerCopy } from '../editor/copied-record.js'
import { discardChanges } from '../editor/discard-changes.js'
import { RelativeTime } from '../texts/relative-time.js'
import { findListAddress } from '../list/remembered-place.js'
import { showFailure } from '../layout/message-list.js'
import { buildRecordPath } from '../service/paths.js'
import { getAccount } from '../service/session.js'
import { useTexts } from '../texts/texts.js'

interface DeletedCardProps {
  readonly editor: RecordEditor
  readonly deletion: Deletion
}

const TITLE = 'deleted-title'

export function DeletedCard({ editor, deletion }: DeletedCardProps) {
  const { conflict: texts } = useTexts()
  const navigate = useNavigate()
  const [isBusy, setBusy] = useState(false)
  const { model, id, isDirty } = editor
  const restore = async () => {
    setBusy(true)
    try {
      if (id !== undefined) await undelete(model, id)
      await editor.refresh()
      if (isDirty) await editor.save()
    } catch (error) {
      showFailure(error)
    } finally {
      setBusy(false)
    }
  }
  const copy = () => {
    offerCopy(model, editor.state.value.values)
    void navigate(buildRecordPath(model.name, 'new'))
  }
  const leave = () => {
    if (isDirty) discardChanges(editor)
    void navigate(findListAddress(model.name))
  }
  return (
    <Dialog open aria-labelledby={TITLE} fullWidth maxWidth="sm">
      <DialogTitle id={TITLE}>
        {deletion.by?.id === getAccount().id
          ? texts.deletedOwn
          : texts.deletedTitle(nameOtherAuthor(deletion.by))}
      </DialogTitle>
      <DialogContent>
        <DialogContentText>
          {texts.deletedText} <RelativeTime on={deletion.on} />. {isDirty && texts.stillHere}
        </DialogContentText>
      </DialogContent>
      <DialogActions sx={{ flexWrap: 'wrap', gap: 1, px: 3, pb: 2 }}>
        <Button onClick={leave} disabled={isBusy}>
          {isDirty ? texts.discardChanges : texts.leave}
        </Button>
        {isDirty && model.permissions.create && (
          <Button onClick={copy} disabled={isBusy}>
            {texts.makeCopy}
          </Button>
        )}
        <Button variant="contained" onClick={() => void restore()} disabled={isBusy} autoFocus>
          {isDirty ? texts.restoreWithChanges : texts.restore}
        </Button>
      </DialogActions>
    </Dialog>
  )
}
