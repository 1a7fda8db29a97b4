// The save button and the state of the form. It stays in view at the bottom of a long form.
import Alert from '@mui/material/Alert'
import Box from '@mui/material/Box'
import Button from '@mui/material/Button'
import Typography from '@mui/material/Typography'
import { useTexts } from '../texts/texts.js'
import { listShownFields } from './shown-fields.js'
import type { EditorState } from '../editor/editor-state.js'
import type { RecordEditor } from '../editor/record-editor.js'
import { discardChanges } from '../editor/discard-changes.js'

interface SaveBarProps {
  readonly editor: RecordEditor
  readonly state: EditorState
}

export function SaveBar({ editor, state }: SaveBarProps) {
  const { form } = useTexts()
  const { status, failure, errors } = state
  const isNew = editor.id === undefined
  const faults = Object.keys(errors).length
  return (
    <Box sx={{ position: 'sticky', bottom: 0, bgcolor: 'background.paper', pt: 1, mt: 1, zIndex: 1 }}>
      {status === 'failed' && (
        <Alert severity="error" role="alert" sx={{ mb: 1 }}>
          {faults > 0 ? form.faults(faults) : failure}
          {faults > 0 && <HiddenErrors editor={editor} state={state} />}
        </Alert>
      )}
      <Box sx={{ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: 1.5 }}>
        <Button type="submit" variant="contained">
          {isNew ? form.create : form.save}
        </Button>
        {!isNew && editor.isDirty && status !== 'saving' && (
          <Button onClick={() => discardChanges(editor)}>{form.discard}</Button>
        )}
        <Typography variant="body2" color="text.secondary" role="status">
          {describeState(editor, status, form.states)}
        </Typography>
      </Box>
    </Box>
  )
}

type StateTexts = ReturnType<typeof useTexts>['form']['states']

function describeState(editor: RecordEditor, status: EditorState['status'], texts: StateTexts): string {
  if (status === 'saving') return texts.saving
  if (status === 'failed') return texts.failed
  if (editor.isDirty) return editor.isDraftKept ? texts.changed : texts.changedUnkept
  return status === 'saved' ? texts.saved : texts.clean
}

/** Errors of fields that the form does not show are listed here, so that none is hidden. */
function HiddenErrors({ editor, state }: SaveBarProps) {
  const { errors } = state
  const shown = new Set(listShownFields(editor, state).map(({ name }) => name))
  const hidden = Object.entries(errors).filter(([path]) => !shown.has(/^[^[.]+/.exec(path)?.[0] ?? ''))
  if (hidden.length === 0) return null
  return (
    <ul>
      {hidden.map(([path, message]) => (
        <li key={path}>
          {path}: {message}
        </li>
      ))}
    </ul>
  )
}
