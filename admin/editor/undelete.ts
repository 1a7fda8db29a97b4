// Brings a record back that was deleted while its form was open, or by its form.
import type { ModelInfo } from '../service/model-info.js'
import { restoreDeleted } from '../service/revert-record.js'
import { client } from '../service/session.js'

/** Restores the last version of a record, if it is still deleted. */
export async function undelete(model: ModelInfo, id: number): Promise<void> {
  const { data } = await client.model(model.name).history(id, { limit: 1 })
  const [newest] = data
  if (newest?.action === 'delete')
    await restoreDeleted({ model, id, to: newest.version - 1, version: newest.version })
}
