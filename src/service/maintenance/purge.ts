// Removes the values from the history of one record. The entries themselves stay in the Log.
import { NECESSARY_TRANSACTION, type Transaction } from '../../store/engine/database.js'
import type { Model } from '../../model/definition/model.js'
import { toValues } from '../../model/definition/record-values.js'
import { purgeChangeValues, replaceChangeValues } from '../../store/log/retention.js'
import { findLastFieldChanges, findLastVersion } from '../../store/log/change-pages.js'
import { readLastSeq } from '../../store/log/feed.js'
import { insertPurge, listPurges } from '../../store/log/purges.js'
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
    const seq = await readLastSeq(tx)
    const fields = await findReplacedFields(tx, model, id)
    const purged = await purgeChangeValues(tx, model.name, id, newest)
    const contents = record ? Object.entries(await readFileValues(tx, table, id)) : []
    const fileChanges = contents.flatMap(([name, after]) =>
      after === null ? [] : [[name, { before: null, after }] as const],
    )
    const values = record ? diffValues(model, {}, toValues(model, record)) : {}
    const changes = { ...values, ...Object.fromEntries(fileChanges) }
    await replaceChangeValues(tx, { model: model.name, id, version: newest, changes })
    const atMs = app.clock.now()
    await insertPurge(tx, { model: model.name, id, seq, atMs, isDeleted: !record, fields })
    const note = `${model.name} ${id}`
    await appendChanges(tx, app.tables, [await insertEvent(app, tx, { kind: 'history-purged', note })])
    return { changes: purged + 1, isThere: record !== undefined }
  }, NECESSARY_TRANSACTION)
}

/** When each field was last replaced. Earlier purges have removed this from the Log, and stored it. */
async function findReplacedFields(
  tx: Transaction,
  { name }: Model,
  id: number,
): Promise<Record<string, number>> {
  const last = await findLastFieldChanges(tx, name, id)
  for (const purge of await listPurges(tx)) {
    if (purge.model !== name || purge.id !== id) continue
    for (const [field, seq] of Object.entries(purge.fields))
      last.set(field, Math.max(seq, last.get(field) ?? 0))
  }
  return Object.fromEntries(last)
}
