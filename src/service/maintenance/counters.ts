// The counters held against the tables, and put right where they differ, while the service runs.
import type { Field } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { countedFields } from '../../store/counters/counted-fields.js'
import {
  blockDifferences,
  portionsOf,
  valueDifferences,
  type Difference,
} from '../../store/counters/counter-check.js'
import * as rebuild from '../../store/counters/counter-rebuild.js'
import type { SqlValue, Transaction } from '../../store/engine/database.js'
import type { App } from '../context/app.js'

export type { Difference } from '../../store/counters/counter-check.js'

type Composed = Pick<App, 'db'>

/** Waits for others a little longer than a write does. */
const LONG = { isLong: true }

/** All of one moment. */
export async function counterDifferences({ db }: Composed, model: Model): Promise<Difference[]> {
  return db.searcher.snapshot(async (snapshot) => [
    ...(await blockDifferences(snapshot, model)),
    ...(await valueDifferences(snapshot, model)),
  ])
}

/** Each portion is a transaction of its own: whoever writes waits for one of them at most. */
export async function rebuildCounters(app: Composed, model: Model): Promise<void> {
  const { db } = app
  const inTurn = (work: (tx: Transaction) => Promise<void>) => db.transaction(work, LONG)
  for await (const portion of portionsOf(db.searcher, model))
    await inTurn((tx) => rebuild.recountPortion(tx, db.dialect, model, portion))
  await inTurn((tx) => rebuild.recountLarge(tx, db.dialect, model))
  for (const field of countedFields(model)) await rebuildValues(app, model, field)
  await inTurn((tx) => rebuild.dropStray(tx, db.dialect, model))
}

async function rebuildValues({ db }: Composed, model: Model, field: Field): Promise<void> {
  const { dialect, searcher } = db
  let after: SqlValue = null
  for (let isLast = false; !isLast;) {
    const end: SqlValue | undefined = await rebuild.endOfValues(searcher, model, field, after)
    const range = [after, end] as const
    await db.transaction((tx) => rebuild.recountValues(tx, dialect, model, field, range), LONG)
    isLast = end === undefined
    after = end ?? null
  }
  await db.transaction((tx) => rebuild.recountNull(tx, dialect, model, field), LONG)
  for (let from = ''; ;) {
    const stale = await rebuild.staleValues(searcher, dialect, model, field, from)
    const last = stale.at(-1)
    if (last === undefined) return
    await db.transaction((tx) => rebuild.dropStale(tx, dialect, model, field, stale), LONG)
    from = last
  }
}
