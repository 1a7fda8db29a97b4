import { listFormFields } from '../fields/initial-values.js'
import type { EditorState } from '../editor/editor-state.js'
import type { RecordEditor } from '../editor/record-editor.js'
import type { FieldInfo } from '../service/model-info.js'

/** The fields of a form. A field that the service leaves out of a stored record may not be read there. */
export function listShownFields({ model, id }: RecordEditor, { values }: EditorState): readonly FieldInfo[] {
  return listFormFields(model).filter(
    ({ name, isSecret, isWriteOnly, kind }) =>
      id === undefined || isSecret || isWriteOnly || kind === 'file' || kind === 'inverse' || name in values,
  )
}
