// Removes the values from the history of one record. The entries themselves stay in the Log.
import type { Model } from '../../model/definition/model.js'
import { toValues } from '../../model/definition/record-values.js'
import { purgeChangeValues, replaceChangeValues } from '../../store/log/retention.js'
import { findLastVersion } from '../../store/log/change-pages.js'
import { appendChanges } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { insertEvent } from '../auth/events.js'
import type { App } from '../context/app.js'
import { diffValues } from '../write/write-rows.js'
import { readFileValues } from '../write/held-files.js'
import { requireId, throwNotFound } from '../access/request-checks.js'

export interface PurgeResult {
  /** The number of Changes whose values were removed. */
  readonly changes: number
  /** False if the record is deleted. */
  readonly isThere: boolean
}

/**
 * Keeps the numbers, versions, users and times of the Changes, so readers of the Log see no gap. The newest Change of an existing record
 * receives all current values, so a reader that applies the Changes from any point on ends with the current record.
 */
export async function purgeHistory(app: App, model: Model, id: number): Promise<PurgeResult> {
  requireId(model, id)
  const table = app.tables.of(model)
  return app.db.transaction(async (tx) => {
    const record = await store.readForUpdate(tx, table, id)
    const newest = await findLastVersion(tx, model.name, id)
    if (newest === undefined) throwNotFound(model, id)
    const purged = await purgeChangeValues(tx, model.name, id, newest)
    const files = record ? Object.entries(await readFileValues(tx, table, id)) : []
    const fileChanges = files.flatMap(([name, after]) =>
      after === null ? [] : [[name, { before: null, after }] as const],
    )
    const values = record ? diffValues(model, {}, toValues(model, record)) : {}
    const changes = { ...values, ...Object.fromEntries(fileChanges) }
    await replaceChangeValues(tx, { model: model.name, id, version: newest, changes })
    const note = `${model.name} ${id}`
    await appendChanges(tx, app.tables, [await insertEvent(app, tx, { kind: 'history-purged', note })])
    return { changes: purged + 1, isThere: record !== undefined }
  })
}
