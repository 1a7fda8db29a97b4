// Compares the counters with the tables and rebuilds them, while the service runs.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import {
  findBlockMismatches,
  iterateIdBatches,
  findValueMismatches,
  type CounterMismatch,
} from '../../store/counters/check.js'
import * as rebuild from '../../store/counters/rebuild-batches.js'
import { LONG_TRANSACTION, type SqlValue, type Transaction } from '../../store/engine/database.js'
import type { App } from '../context/app.js'

export type { CounterMismatch } from '../../store/counters/check.js'

type CounterApp = Pick<App, 'db'>

/** Reads from one snapshot. */
export async function findCounterDifferences({ db }: CounterApp, model: Model): Promise<CounterMismatch[]> {
  return db.queryPool.snapshot(async (snapshot) => [
    ...(await findBlockMismatches(snapshot, model)),
    ...(await findValueMismatches(snapshot, model)),
  ])
}

/** Each batch has its own transaction, so a concurrent write waits for one batch at most. */
export async function rebuildCounters(app: CounterApp, model: Model): Promise<void> {
  const { db } = app
  const runInTransaction = (work: (tx: Transaction) => Promise<void>) =>
    db.transaction(work, LONG_TRANSACTION)
  for await (const batch of iterateIdBatches(db.queryPool, model))
    await runInTransaction((tx) => rebuild.rebuildIdBatch(tx, db.dialect, model, batch))
  await runInTransaction((tx) => rebuild.rebuildLargeBlocks(tx, db.dialect, model))
  for (const field of model.countedFields) await rebuildValueCounters(app, { model, field })
  await runInTransaction((tx) => rebuild.deleteStrayCounters(tx, db.dialect, model))
}

async function rebuildValueCounters({ db }: CounterApp, counted: ModelField): Promise<void> {
  const { dialect, queryPool } = db
  let after: SqlValue = null
  for (let isLast = false; !isLast;) {
    const end: SqlValue | undefined = await rebuild.findValueBatchEnd(queryPool, counted, after)
    const range = { after, end }
    await db.transaction((tx) => rebuild.rebuildValueRange(tx, dialect, counted, range), LONG_TRANSACTION)
    isLast = end === undefined
    after = end ?? null
  }
  await db.transaction((tx) => rebuild.rebuildNullCounter(tx, dialect, counted), LONG_TRANSACTION)
}
