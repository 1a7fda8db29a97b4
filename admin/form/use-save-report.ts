// Says after a save what was saved and merged, and offers to undo it.
import { useCallback } from 'react'
import { useNavigate } from 'react-router'
import { findListAddress } from '../list/remembered-place.js'
import { getRecordName, type ModelInfo } from '../service/model-info.js'
import { showFailure, showMessage, UNDO_MS } from '../layout/message-list.js'
import { revertRecord } from '../service/revert-record.js'
import { buildRecordPath } from '../service/paths.js'
import { client } from '../service/session.js'
import { nameAuthor } from '../texts/author-name.js'
import { getTexts } from '../texts/texts.js'
import type { RecordEditor } from '../editor/record-editor.js'
import type { SaveReport } from '../editor/save-run.js'

const HISTORY_LIMIT = 20

export function useSaveReport(model: ModelInfo) {
  const navigate = useNavigate()
  return useCallback(
    (report: SaveReport, editor: RecordEditor) => {
      void announce(model, report, editor)
      if (report.isNew)
        void navigate(buildRecordPath(model.name, Number(report.record['id'])), { replace: true })
    },
    [model, navigate],
  )
}

async function announce(model: ModelInfo, report: SaveReport, editor: RecordEditor): Promise<void> {
  const { form, common } = getTexts()
  const name = getRecordName(report.record, model.nameField)
  const fields = report.merged.map(({ title }) => title).join(', ')
  const text = report.isNew
    ? form.created(name)
    : report.merged.length === 0
      ? form.saved(name)
      : form.mergedWith(name, fields, await findAuthors(model, report))
  showMessage({
    text,
    severity: 'success',
    group: `${model.name}/${String(report.record['id'])}`,
    durationMs: UNDO_MS,
    action: { label: common.undo, run: () => void undo(model, report, editor) },
  })
}

/** The people who changed the record between our version and the one before the save. */
async function findAuthors(model: ModelInfo, { record, merged, since, to }: SaveReport): Promise<string> {
  const { form } = getTexts()
  try {
    const { data } = await client.model(model.name).history(Number(record['id']), { limit: HISTORY_LIMIT })
    const names = data
      .filter(
        ({ version, changes }) =>
          version > since && version < to && merged.some(({ name }) => name in changes),
      )
      .map(({ by }) => nameAuthor(by))
    return [...new Set(names)].join(', ') || form.others
  } catch {
    return form.others
  }
}

/** Reverts through the history: the version before the save. */
async function undo(
  model: ModelInfo,
  { record, isNew, from, to }: SaveReport,
  editor: RecordEditor,
): Promise<void> {
  const { form } = getTexts()
  const records = client.model(model.name)
  const id = Number(record['id'])
  try {
    if (isNew) {
      location.hash = findListAddress(model.name)
      await records.remove(id, { version: to })
    } else await revertRecord({ model, id, to: from, version: to })
    showMessage({ text: form.undone, severity: 'success' })
    await editor.refresh()
  } catch (error) {
    if (error instanceof Error && 'kind' in error && error.kind === 'conflict')
      showMessage({ text: form.undoFailed, severity: 'warning' })
    else showFailure(error)
  }
}
