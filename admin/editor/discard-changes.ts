import { showMessage, UNDO_MS } from '../layout/message-list.js'
import { buildRecordPath } from '../service/paths.js'
import { getTexts } from '../texts/texts.js'
import { isSecret, storeDraft } from './drafts.js'
import type { RecordEditor } from './record-editor.js'
import { isPendingFile } from '../fields/field-props.js'

/** Discards what was typed, and offers it back, also after the page was left. */
export function discardChanges(editor: RecordEditor): void {
  const { form } = getTexts()
  const { model, fields, id = 'new' } = editor
  const draft = editor.discard()
  const bringBack = () => {
    if (!editor.isStopped) {
      editor.restore(draft)
      return
    }
    const kept = fields.filter((field) => !isSecret(field) && !isPendingFile(draft.values[field.name]))
    const values = Object.fromEntries(kept.map(({ name }) => [name, draft.values[name]]))
    storeDraft(model.name, id, { ...draft, values })
    location.hash = buildRecordPath(model.name, id)
  }
  showMessage({
    text: form.discarded,
    severity: 'info',
    durationMs: UNDO_MS,
    action: { label: form.bringBack, run: bringBack },
  })
}
