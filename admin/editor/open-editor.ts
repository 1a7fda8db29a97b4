// Opens a form: reads the record, and brings a draft back that no other tab has.
import { buildInitialValues } from '../fields/initial-values.js'
import type { ModelInfo } from '../service/model-info.js'
import { takeCopy } from './copied-record.js'
import { findDraft } from './drafts.js'
import { findLineSecrets, readRecord } from './read-record.js'
import { RecordEditor } from './record-editor.js'
import type { SaveReport } from './save-run.js'

/** Without an id, the form makes a new record. */
export async function openEditor(
  model: ModelInfo,
  id: number | undefined,
  onSaved: (report: SaveReport, editor: RecordEditor) => void,
): Promise<RecordEditor> {
  const copy = id === undefined ? takeCopy(model) : undefined
  // A new record is compared with an empty one, so that defaults and copied values are sent.
  const record = id === undefined ? {} : await readRecord(model, id)
  const source = { id, record, lineSecrets: await findLineSecrets(model) }
  const draft = copy ? undefined : await findDraft(model.name, id ?? 'new')
  const editor: RecordEditor = new RecordEditor(model, source, (report) => onSaved(report, editor))
  if (draft) editor.restore(draft)
  else if (id === undefined)
    for (const [name, value] of Object.entries({ ...buildInitialValues(model), ...copy }))
      editor.setValue(name, value)
  editor.follow()
  return editor
}
