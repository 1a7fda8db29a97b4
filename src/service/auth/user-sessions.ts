// What a change of a user means for the sessions and the reset link of that user, in the same transaction.
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import { deleteResetLink } from '../../store/auth/reset-links.js'
import { deleteUserSessions } from '../../store/auth/sessions.js'
import { insertEvent } from './events.js'
import type { WriteContext } from '../context/context.js'

/** `changed` is what becomes different. Answers what is to go into the Log besides. */
export async function endSessionsAfterUpdate(
  { app, tx, principal, keptSessionHash }: WriteContext,
  model: Model,
  id: number,
  changed: Values,
): Promise<readonly NewChange[]> {
  const endsSessions = 'password' in changed || 'username' in changed || changed['disabled'] === true
  if (model.name !== USER_MODEL || !endsSessions) return []
  await endAllSessions(tx, id, keptSessionHash)
  if (!('password' in changed)) return []
  return [await insertEvent(app, tx, { kind: 'password-changed', userId: id, by: principal.user })]
}

export async function endSessionsAfterRemove(tx: Transaction, model: Model, id: number): Promise<void> {
  if (model.name === USER_MODEL) await endAllSessions(tx, id)
}

async function endAllSessions(tx: Transaction, id: number, except?: string): Promise<void> {
  await deleteUserSessions(tx, id, except)
  await deleteResetLink(tx, id)
}
