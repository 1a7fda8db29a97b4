// What a change of a user means for the sessions of that user, in the same transaction.
import { USER_MODEL, type Model } from '../model/model.js'
import type { Values } from '../model/value.js'
import type { Transaction } from '../store/database.js'
import { closeSessionsOf } from '../store/sessions.js'

export async function endSessionsIfChanged(
  tx: Transaction,
  model: Model,
  id: number,
  sent: Values,
): Promise<void> {
  if (model.name === USER_MODEL && ('password' in sent || sent['disabled'] === true))
    await closeSessionsOf(tx, id)
}

export async function endSessionsIfRemoved(tx: Transaction, model: Model, id: number): Promise<void> {
  if (model.name === USER_MODEL) await closeSessionsOf(tx, id)
}
