// What administrators do with webhooks, besides what they write in their records.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import * as deliveries from '../../store/webhooks/deliveries.js'
import { readLastSeq } from '../../store/log/feed.js'
import * as records from '../../store/records/records.js'
import { findWebhook, type Webhook } from '../../store/webhooks/webhooks.js'
import type { Delivery, WebhookState, WireRecord } from '../../wire.js'
import { requireAccess } from '../auth/access.js'
import type { App } from '../context/app.js'
import { missing } from '../context/ids.js'
import type { Caller } from '../context/principal.js'
import { create, update } from '../records/save.js'
import { rowOf, send } from './delivery-worker.js'
import { pingOf } from './message.js'
import { newSecret } from './signature.js'

export interface MadeWebhook {
  readonly record: WireRecord
  /** Nobody can read it again. */
  readonly secret: string
}

/** Never under an Idempotency-Key, where the answer would be kept. */
export async function makeWebhook(app: App, by: Caller, data: unknown): Promise<MadeWebhook> {
  if (!isObject(data)) throw new VersoError('bad-request', 'Send { "data": { "name": …, "url": … } }')
  const secret = typeof data['secret'] === 'string' ? data['secret'] : newSecret()
  const sent = { ...data, secret: data['secret'] ?? secret }
  const made = await create(app, by, modelOf(app), sent)
  return { record: made.data, secret }
}

/** Another secret from the next call on: an ordinary update of the record. */
export async function renewSecret(app: App, by: Caller, id: number): Promise<MadeWebhook> {
  const model = modelOf(app)
  const secret = newSecret()
  for (;;) {
    const record = await records.read(app.db.reader, app.tables.of(model), id)
    if (!record) return missing(model, id)
    try {
      const { data } = await update(app, by, model, id, { version: record.version, secret })
      return { record: data, secret }
    } catch (error) {
      // Somebody changed it at the same time: with what they wrote in it, once more.
      if (!(error instanceof VersoError) || error.kind !== 'conflict') throw error
    }
  }
}

/** How far it has come. */
export async function stateOf(app: App, id: number): Promise<WebhookState> {
  const { cursor, failures, nextAttemptMs, isPaused } = await webhookOf(app, id)
  const last = await readLastSeq(app.db.reader)
  return {
    ...{ id, paused: isPaused, position: cursor, last, lag: Math.max(0, last - cursor), failures },
    nextAttemptOn: failures > 0 && !isPaused ? new Date(nextAttemptMs).toISOString() : null,
  }
}

/** The newest first. */
export async function deliveriesOf(
  app: App,
  id: number,
  page: { readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly data: readonly Delivery[] }> {
  await webhookOf(app, id)
  const { total, rows } = await deliveries.listDeliveryRows(app.db.reader, id, page)
  return { total, data: rows.map(toDelivery) }
}

/** A call at once that tells nothing, also of one that is paused; it changes nothing of how far the webhook has come. */
export async function ping(app: App, by: Caller, id: number): Promise<Delivery> {
  await requireAccess(app, app.db.reader, by)
  const webhook = await webhookOf(app, id)
  const atMs = app.clock.now()
  const message = pingOf(webhook, atMs)
  const outcome = await send(app, webhook, message)
  const row = rowOf(webhook, message, outcome ?? { status: null, error: 'cut off', ms: 0 }, atMs)
  await app.db.transaction((tx) => deliveries.insertDelivery(tx, row))
  return toDelivery(row)
}

function modelOf({ catalog }: App): Model {
  return catalog.get(WEBHOOK_MODEL)
}

async function webhookOf(app: App, id: number): Promise<Webhook> {
  return (await findWebhook(app.db.reader, app.db.dialect, id)) ?? missing(modelOf(app), id)
}

function toDelivery({ webhook: _, atMs, firstSeq, lastSeq, ...rest }: deliveries.DeliveryRow): Delivery {
  return { ...rest, on: new Date(atMs).toISOString(), first: firstSeq, last: lastSeq }
}
