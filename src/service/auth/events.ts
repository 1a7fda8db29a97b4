// What has happened at the doors, as records: nobody but the service writes them, and each has its Change in the Log.
import { EVENT_MODEL, type EventKind } from '../../model/catalog/auth-models.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { userOf, type Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import { differences } from '../write/changes.js'
import { nowOf } from '../context/context.js'

const MAX_ADDRESS = 100
const MAX_NOTE = 255

export interface NewEvent {
  readonly kind: EventKind
  /** The account that it is about, if there is one. */
  readonly userId?: number | undefined
  /** Where it came from. */
  readonly address?: string | undefined
  /** Never what somebody typed: people type passwords into the wrong field. */
  readonly note?: string | undefined
  /** Who did it; the service itself if nobody is named. */
  readonly by?: Actor | null
}

type Composed = Pick<App, 'catalog' | 'db' | 'tables' | 'clock'>

/** In the caller's transaction, as the last thing that it does. */
export async function noteEvent(app: Composed, tx: Transaction, event: NewEvent): Promise<void> {
  await appendChanges(tx, app.tables, [await storeEvent(app, tx, event)])
}

/** For a transaction that has more to append to the Log: stores the record and answers its Change. */
export async function storeEvent(
  app: Composed,
  tx: Transaction,
  { kind, userId, address, note, by = null }: NewEvent,
): Promise<NewChange> {
  const model = app.catalog.get(EVENT_MODEL)
  const user = userId === undefined ? null : { id: userId }
  const values: Values = {
    ...{
      kind,
      user,
      address: address?.slice(0, MAX_ADDRESS) ?? null,
      note: note?.slice(0, MAX_NOTE) ?? null,
    },
    ...{ createdOn: nowOf(app), createdBy: userOf(by) },
  }
  const [id = 0] = await store.insert(tx, app.tables.of(model), [values])
  return {
    ...{ model: model.name, id, version: 0, action: 'create', by: by?.id ?? null, atMs: app.clock.now() },
    // The service keeps this reference, so that an account can go while its events stay.
    changes: { ...differences(model, {}, values), ...(user ? { user: { before: null, after: user } } : {}) },
  }
}
