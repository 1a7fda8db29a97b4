// Operations on webhooks for administrators, besides reads and writes of their records.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import * as deliveries from '../../store/webhooks/deliveries.js'
import { readLastSeq } from '../../store/log/feed.js'
import * as records from '../../store/records/records.js'
import { findWebhook, type Webhook } from '../../store/webhooks/webhooks.js'
import type { Delivery, WebhookState, WireRecord } from '../../wire.js'
import { requireAccess } from '../context/session-cache.js'
import type { App } from '../context/app.js'
import { throwNotFound } from '../access/request-checks.js'
import { createRecord, updateRecord } from '../records/save.js'
import { buildDeliveryRow, sendMessage } from './delivery-worker.js'
import { buildPing } from './message.js'
import { createSecret } from './signature.js'
import type { Context } from '../context/context.js'

export interface CreatedWebhook {
  readonly record: WireRecord
  /** Returned only here; it cannot be read later. */
  readonly secret: string
}

/** Takes no idempotency key: a stored answer would contain the secret. */
export async function createWebhook(context: Context, data: unknown): Promise<CreatedWebhook> {
  if (!isObject(data)) throw new VersoError('bad-request', 'Send { "data": { "name": …, "url": … } }')
  const secret = typeof data['secret'] === 'string' ? data['secret'] : createSecret()
  const sent = { ...data, secret: data['secret'] ?? secret }
  const created = await createRecord(context, getWebhookModel(context.app), sent)
  return { record: created.data, secret }
}

/** Replaces the secret by an ordinary update of the record. The next call uses the new one. */
export async function rotateSecret(context: Context, id: number): Promise<CreatedWebhook> {
  const { app } = context
  const model = getWebhookModel(app)
  const secret = createSecret()
  for (;;) {
    const record = await records.readById(app.db.reader, app.tables.of(model), id)
    if (!record) return throwNotFound(model, id)
    try {
      const { data } = await updateRecord(context, model, { id, data: { version: record.version, secret } })
      return { record: data, secret }
    } catch (error) {
      // A concurrent update changed the record: retry with the new version.
      if (!(error instanceof VersoError) || error.kind !== 'conflict') throw error
    }
  }
}

export async function readWebhookState(app: App, id: number): Promise<WebhookState> {
  const { cursor, failures, nextAttemptMs, isPaused } = await requireWebhook(app, id)
  const last = await readLastSeq(app.db.reader)
  return {
    id,
    paused: isPaused,
    position: cursor,
    last,
    lag: Math.max(0, last - cursor),
    failures,
    nextAttemptOn: failures > 0 && !isPaused ? new Date(nextAttemptMs).toISOString() : null,
  }
}

/** Newest first. */
export async function listDeliveries(
  app: App,
  id: number,
  page: { readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly data: readonly Delivery[] }> {
  await requireWebhook(app, id)
  const { total, rows } = await deliveries.listDeliveryRows(app.db.reader, id, page)
  return { total, data: rows.map(toDelivery) }
}

/** Sends a ping immediately, even if the webhook is paused. Does not change the cursor. */
export async function pingWebhook(context: Context, id: number): Promise<Delivery> {
  const { app } = context
  await requireAccess(app, app.db.reader, context.principal)
  const webhook = await requireWebhook(app, id)
  const atMs = app.clock.now()
  const message = buildPing(webhook, atMs)
  const outcome = await sendMessage(app, webhook, message)
  const row = buildDeliveryRow(
    webhook,
    message,
    outcome ?? { status: null, error: 'interrupted', ms: 0 },
    atMs,
  )
  await app.db.transaction((tx) => deliveries.insertDelivery(tx, row))
  return toDelivery(row)
}

function getWebhookModel({ catalog }: App): Model {
  return catalog.get(WEBHOOK_MODEL)
}

async function requireWebhook(app: App, id: number): Promise<Webhook> {
  return (await findWebhook(app.db.reader, app.db.dialect, id)) ?? throwNotFound(getWebhookModel(app), id)
}

function toDelivery({ webhook: _, atMs, firstSeq, lastSeq, ...rest }: deliveries.DeliveryRow): Delivery {
  return { ...rest, on: new Date(atMs).toISOString(), first: firstSeq, last: lastSeq }
}
