// Restores earlier versions of records, says so, and offers to undo it.
import { ConflictError, type Change } from 'verso-records/client'
import type { ModelInfo } from '../service/model-info.js'
import { showFailure, showMessage, UNDO_MS } from '../layout/message-list.js'
import { restoreDeleted, revertRecord, type Restored } from '../service/revert-record.js'
import { client } from '../service/session.js'
import { getTexts } from '../texts/texts.js'
import { refreshHistory } from './use-history.js'

export interface RestoreTarget {
  readonly model: ModelInfo
  readonly id: number
  readonly name: string
  /** The newest change that the person has seen. A change after it is a conflict. */
  readonly newest: Change
}

/** Restores a version and says so, or says why nothing was restored. */
export async function restoreVersion(target: RestoreTarget, to: number): Promise<void> {
  const { model, id, newest } = target
  const { common } = getTexts()
  const request = { model, id, to, version: newest.version }
  await attempt(target, async () => {
    const restored = newest.action === 'delete' ? await restoreDeleted(request) : await revertRecord(request)
    showMessage({
      text: describe(target, to, restored),
      severity: restored.lost > 0 ? 'warning' : 'success',
      action: { label: common.undo, run: () => void undo(target, restored.version) },
      durationMs: UNDO_MS,
    })
  })
}

/** Restores the last version of a deleted record. */
export async function restoreRecord(target: RestoreTarget): Promise<void> {
  await restoreVersion(target, target.newest.version - 1)
}

async function undo(target: RestoreTarget, version: number): Promise<void> {
  const { model, id, newest } = target
  await attempt(target, async () => {
    if (newest.action === 'delete') await client.model(model.name).remove(id, { version })
    else await revertRecord({ model, id, to: newest.version, version })
    showMessage({ text: getTexts().history.undone, severity: 'info' })
  })
}

/** Shows why a write failed. The history is read again in any case: after a conflict it shows who was faster. */
async function attempt({ model, id }: RestoreTarget, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const { history } = getTexts()
    if (error instanceof ConflictError) showMessage({ text: history.changedMeanwhile, severity: 'warning' })
    else showFailure(error)
  }
  await refreshHistory(model.name, id)
}

function describe({ name, newest }: RestoreTarget, to: number, { lost }: Restored): string {
  const { history } = getTexts()
  if (lost > 0) return history.restoredPartly(name, lost)
  return newest.action === 'delete' ? history.restoredRecord(name) : history.restored(to)
}
