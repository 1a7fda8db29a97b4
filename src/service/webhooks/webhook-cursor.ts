import { WEBHOOK_FROM_BEGINNING, WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import type { Transaction } from '../../store/engine/database.js'
import { deleteDeliveriesOfWebhook } from '../../store/webhooks/deliveries.js'
import type { NewChange } from '../../store/log/log.js'
import {
  createWebhookCursor,
  deleteWebhookCursor,
  resetWebhookFailures,
} from '../../store/webhooks/webhooks.js'

/** Creates, resets or deletes the delivery state of webhooks in the transaction that writes their records. */
export async function syncWebhookCursors(tx: Transaction, changes: readonly NewChange[]): Promise<void> {
  for (const { model, id, action, changes: fieldChanges } of changes) {
    if (model !== WEBHOOK_MODEL) continue
    if (action === 'create')
      await createWebhookCursor(tx, id, fieldChanges['from']?.after === WEBHOOK_FROM_BEGINNING)
    else if (action === 'update') await resetWebhookFailures(tx, id)
    else {
      await deleteWebhookCursor(tx, id)
      await deleteDeliveriesOfWebhook(tx, id)
    }
  }
}
