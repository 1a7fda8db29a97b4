// The hooks of webhooks: their rules, and the delivery state beside their records.
import type { Draft } from '../../model/write/draft.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import { didYouMean, shortenForMessage } from '../../model/values/did-you-mean.js'
import * as store from '../../store/records/records.js'
import { WEBHOOK_FROM_BEGINNING, WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import type { NewChange } from '../../store/log/log.js'
import { deleteDeliveriesOfWebhook } from '../../store/webhooks/deliveries.js'
import {
  createWebhookCursor,
  deleteWebhookCursor,
  resetWebhookFailures,
} from '../../store/webhooks/webhooks.js'
import type { App, Context, ModelHooks, TransactionHooks, WriteContext } from '../context/app.js'
import { findUrlError } from '../egress/destination.js'
import { isValidSecret, createSecret, SECRET_RULE } from './signature.js'

const MAX_WEBHOOK_MODELS = 100

export const WEBHOOK_HOOKS: readonly (readonly [string, ModelHooks])[] = [
  [WEBHOOK_MODEL, { prepare: validateWebhook, preparedFields: ['url', 'models', 'secret', 'from'] }],
]

/** Over all Changes of a transaction: a batch may write a webhook more than once. */
export const WEBHOOK_CURSOR_HOOKS: TransactionHooks = {
  models: [WEBHOOK_MODEL],
  beforeCommit: syncWebhookCursors,
}

/** Adds errors. Returns the draft, with a generated secret if a new webhook has none. */
async function validateWebhook(
  { app, principal }: Context,
  draft: Draft,
  errors: FieldErrors,
): Promise<Draft> {
  // Only administrators may write webhooks, and the errors would reveal models to others.
  if (principal.permissions) return draft
  const { model, key, values, path } = draft
  const { url, models, secret, from } = values
  const add = (name: string, error: string | undefined) => {
    if (error !== undefined) errors.add(path + name, error)
  }
  if (typeof url === 'string') add('url', findUrlError(url, app.outgoing.egressPolicy))
  if (models !== undefined && models !== null) add('models', findModelsError(app, models))
  if (typeof secret === 'string' && !isValidSecret(secret)) add('secret', SECRET_RULE)
  if (key && secret === null) add('secret', 'cannot be removed: receivers could not verify the calls')
  const before =
    key && from !== undefined && (await store.readById(app.db.reader, app.tables.of(model), key.id))
  if (before && before['from'] !== from) add('from', 'cannot be changed after the webhook was created')
  const isMissing = !key && (secret === undefined || secret === null)
  return isMissing ? { ...draft, values: { ...values, secret: createSecret() } } : draft
}

function findModelsError({ catalog }: App, models: unknown): string | undefined {
  if (!Array.isArray(models) || !models.every((name) => typeof name === 'string'))
    return 'must be a list of model names, or empty for all models except those of the service'
  if (models.length > MAX_WEBHOOK_MODELS) return `must have at most ${MAX_WEBHOOK_MODELS} names`
  const unknown = models.find((name) => !catalog.find(name))
  if (unknown === undefined) return undefined
  const names = catalog.storedModels.map(({ name }) => name)
  return `has an unknown model: ${shortenForMessage(unknown)}${didYouMean(unknown, names)}`
}

/** Creates, resets or deletes the delivery state of webhooks in the transaction that writes their records. */
async function syncWebhookCursors({ tx }: WriteContext, changes: readonly NewChange[]): Promise<void> {
  for (const { id, action, changes: fieldChanges } of changes) {
    if (action === 'create')
      await createWebhookCursor(tx, id, fieldChanges['from']?.after === WEBHOOK_FROM_BEGINNING)
    else if (action === 'update') await resetWebhookFailures(tx, id)
    else {
      await deleteWebhookCursor(tx, id)
      await deleteDeliveriesOfWebhook(tx, id)
    }
  }
}
