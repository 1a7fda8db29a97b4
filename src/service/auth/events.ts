// What has happened at the doors, as records: nobody but the service writes them, and each has its Change in the Log.
import { EVENT_MODEL, type EventKind } from '../../model/catalog/auth-models.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { toUserReference, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { diffValues } from '../write/changes.js'
import { getTimestamp } from '../context/context.js'

const MAX_ADDRESS_LENGTH = 100
const MAX_NOTE_LENGTH = 255

export interface NewAuthEvent {
  readonly kind: EventKind
  /** The account that it is about, if there is one. */
  readonly userId?: number | undefined
  /** Where it came from. */
  readonly address?: string | undefined
  /** Never what somebody typed: people type passwords into the wrong field. */
  readonly note?: string | undefined
  /** Who did it; the service itself if nobody is named. */
  readonly by?: UserIdentity | null
}

type EventApp = Pick<App, 'catalog' | 'db' | 'tables' | 'clock'>

/** In the caller's transaction, as the last thing that it does. */
export async function appendEvent(app: EventApp, tx: Transaction, event: NewAuthEvent): Promise<void> {
  await appendChanges(tx, app.tables, [await insertEvent(app, tx, event)])
}

/** For a transaction that has more to append to the Log: stores the record and answers its Change. */
export async function insertEvent(
  app: EventApp,
  tx: Transaction,
  { kind, userId, address, note, by: actingUser = null }: NewAuthEvent,
): Promise<NewChange> {
  const model = app.catalog.get(EVENT_MODEL)
  const user = userId === undefined ? null : { id: userId }
  const values: Values = {
    kind,
    user,
    address: address?.slice(0, MAX_ADDRESS_LENGTH) ?? null,
    note: note?.slice(0, MAX_NOTE_LENGTH) ?? null,
    createdOn: getTimestamp(app),
    createdBy: toUserReference(actingUser),
  }
  const [id = 0] = await store.insert(tx, app.tables.of(model), [values])
  return {
    model: model.name,
    id,
    version: 0,
    action: 'create',
    by: actingUser?.id ?? null,
    atMs: app.clock.now(),
    // The service keeps this reference, so that an account can go while its events stay.
    changes: { ...diffValues(model, {}, values), ...(user ? { user: { before: null, after: user } } : {}) },
  }
}
