// Security events: records that only the service writes, each with a Change in the Log.
import { EVENT_MODEL, type EventKind } from '../../model/catalog/auth-models.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import { insertRows } from '../../store/records/write.js'
import type { UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { diffValues, toUserReference } from '../write/write-rows.js'
import { getTimestamp } from '../context/context.js'

const MAX_ADDRESS_LENGTH = 100
const MAX_NOTE_LENGTH = 255

export interface NewAuthEvent {
  readonly kind: EventKind
  /** The user that the event is about. */
  readonly userId?: number | undefined
  /** The address of the client. */
  readonly address?: string | undefined
  /** Must not contain typed text: users type passwords into the wrong field. */
  readonly note?: string | undefined
  /** The acting user; null for the service itself. */
  readonly by?: UserIdentity | null
}

type EventApp = Pick<App, 'catalog' | 'db' | 'tables' | 'clock'>

/** Stores an event and appends its Change to the Log. Must be the last step of the transaction. */
export async function appendEvent(app: EventApp, tx: Transaction, event: NewAuthEvent): Promise<void> {
  await appendChanges(tx, app.tables, [await insertEvent(app, tx, event)])
}

/** Stores an event and returns its Change, for a transaction that appends further Changes to the Log. */
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
  const [id = 0] = await insertRows(tx, app.tables.of(model), [values])
  return {
    model: model.name,
    id,
    version: 0,
    action: 'create',
    userId: actingUser?.id ?? null,
    atMs: app.clock.now(),
    // The reference is a system field, so a user can be deleted while the events remain.
    changes: { ...diffValues(model, {}, values), ...(user ? { user: { before: null, after: user } } : {}) },
  }
}
