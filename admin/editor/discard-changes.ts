import { showMessage, UNDO_MS } from '../service/messages.js'
import { getTexts } from '../texts/texts.js'
import type { RecordEditor } from './record-editor.js'

/** Discards what was typed, and offers it back. */
export function discardChanges(editor: RecordEditor): void {
  const { form } = getTexts()
  const draft = editor.discard()
  showMessage({
    text: form.discarded,
    severity: 'info',
    durationMs: UNDO_MS,
    action: { label: form.bringBack, run: () => editor.restore(draft) },
  })
}
