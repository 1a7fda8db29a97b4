// Opens a form: reads the record, and brings a draft back that no other tab has.
import { buildInitialValues } from '../fields/initial-values.js'
import type { ModelInfo } from '../service/model-info.js'
import { findDraft } from './drafts.js'
import { readRecord } from './read-record.js'
import { RecordEditor, type SaveReport } from './record-editor.js'
import { listLineFields, listLines, type RecordValues } from './record-values.js'

interface EditorOptions {
  readonly model: ModelInfo
  /** Undefined for a new record. */
  readonly id: number | undefined
  /** The values of a record to copy into a new one. */
  readonly copyOf: RecordValues | undefined
  readonly onSaved: (report: SaveReport, editor: RecordEditor) => void
}

export async function openEditor({ model, id, copyOf, onSaved }: EditorOptions): Promise<RecordEditor> {
  // A new record is compared with an empty one, so that defaults and copied values are sent.
  const record = id === undefined ? {} : await readRecord(model, id)
  const draft = copyOf ? undefined : await findDraft(model.name, id ?? 'new')
  const editor: RecordEditor = new RecordEditor(model, id, record, (report) => onSaved(report, editor))
  if (id === undefined) {
    const initial = { ...buildInitialValues(model), ...(copyOf && toCopy(model, copyOf)) }
    for (const [name, value] of Object.entries(initial)) editor.setValue(name, value)
  }
  if (draft) editor.restore(draft)
  editor.start()
  return editor
}

/** Lines of a copy are new lines. Files, secrets and what the service computes are not copied. */
function toCopy({ fields }: ModelInfo, record: RecordValues): RecordValues {
  const copied = fields.filter(
    ({ isReadonly, isSystem, isSecret, kind, name }) =>
      !isReadonly && !isSystem && !isSecret && kind !== 'file' && record[name] !== undefined,
  )
  return Object.fromEntries(
    copied.map(({ name, kind }) => [
      name,
      kind === 'owned-list' ? listLines(record[name]).map(toNewLine) : record[name],
    ]),
  )
}

function toNewLine(line: RecordValues, index: number): RecordValues {
  const values = listLineFields(line).map((name) => [name, line[name]] as const)
  return { ...Object.fromEntries(values), $key: `copy-${index}` }
}
