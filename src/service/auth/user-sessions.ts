// What a change of a user means for the sessions and the reset link of that user, in the same transaction.
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import { deleteResetLink } from '../../store/auth/reset-links.js'
import { deleteUserSessions } from '../../store/auth/sessions.js'
import { storeEvent } from './events.js'
import type { Work } from '../context/context.js'

/** `changed` is what becomes different. Answers what is to go into the Log besides. */
export async function endSessionsIfChanged(
  { app, tx, actor, keptSession }: Work,
  model: Model,
  id: number,
  changed: Values,
): Promise<readonly NewChange[]> {
  const isOver = 'password' in changed || 'username' in changed || changed['disabled'] === true
  if (model.name !== USER_MODEL || !isOver) return []
  await endAll(tx, id, keptSession)
  if (!('password' in changed)) return []
  return [await storeEvent(app, tx, { kind: 'password-changed', userId: id, by: actor })]
}

export async function endSessionsIfRemoved(tx: Transaction, model: Model, id: number): Promise<void> {
  if (model.name === USER_MODEL) await endAll(tx, id)
}

async function endAll(tx: Transaction, id: number, except?: string): Promise<void> {
  await deleteUserSessions(tx, id, except)
  await deleteResetLink(tx, id)
}
