// What a change of a user means for the sessions of that user, in the same transaction.
import { USER_MODEL, type Model } from '../model/model.js'
import type { Values } from '../model/value.js'
import type { Transaction } from '../store/database.js'
import { closeSessionsOf } from '../store/sessions.js'

export async function endSessionsIfChanged(
  tx: Transaction,
  model: Model,
  id: number,
  /** What becomes different. */
  changed: Values,
): Promise<void> {
  const isOver = 'password' in changed || 'username' in changed || changed['disabled'] === true
  if (model.name === USER_MODEL && isOver) await closeSessionsOf(tx, id)
}

export async function endSessionsIfRemoved(tx: Transaction, model: Model, id: number): Promise<void> {
  if (model.name === USER_MODEL) await closeSessionsOf(tx, id)
}
