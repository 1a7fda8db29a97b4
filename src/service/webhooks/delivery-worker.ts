// Brings Changes to one receiver, in order: one call at a time, by one node at a time.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { summarizeError, VersoError } from '../../errors.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import * as deliveries from '../../store/webhooks/deliveries.js'
import * as records from '../../store/records/records.js'
import * as store from '../../store/webhooks/webhooks.js'
import type { Webhook } from '../../store/webhooks/webhooks.js'
import type { App } from '../context/app.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { updateRecord } from '../records/save.js'
import { callWebhook, type CallOutcome } from '../egress/call.js'
import { readNextMessage, type WebhookMessage } from './message.js'
import { buildSignatureHeaders } from './signature.js'
import { createContext } from '../context/context.js'

/** How long it goes without looking at its record: whoever pauses it need not wait longer. */
const WORKER_POLL_MS = 1_000
/** Of what is passed over, a note is made at most so often. */
const CURSOR_SAVE_INTERVAL_MS = 5_000
/** What a call may take beyond its time-out before another node makes it. */
const LEASE_MARGIN_MS = 5_000
const MIN_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 60 * 60_000
const HTTP_GONE = 410
const NO_SECRET_ERROR = 'it has no secret: make one with POST /ws/webhooks/:id/secret'

/** When to stop: without another call, or in the middle of one. */
export interface DeliveryShutdown {
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
}

/** The pause after so many failures in a row, each about twice as long as the one before: never the same for two. */
export function computeBackoff(failures: number, random = Math.random()): number {
  const doubled = MIN_BACKOFF_MS * 2 ** Math.min(failures - 1, 30)
  return Math.round(Math.min(MAX_BACKOFF_MS, doubled) * (0.75 + random / 4))
}

export class DeliveryWorker {
  /** What was looked at and is not for this webhook, beyond what is noted of it. */
  #scannedSeq = 0
  #cursorSavedMs = 0

  constructor(
    private readonly app: App,
    private readonly id: number,
    private readonly shutdown: DeliveryShutdown,
  ) {}

  /** Until the webhook is paused or removed, or the service stops. */
  async run(): Promise<void> {
    while (!this.shutdown.stopping.aborted) {
      try {
        if (!(await this.#step())) return
      } catch (error) {
        this.app.log.warn(
          { webhook: this.id, ...summarizeError(error) },
          'webhook worker failed; it will be retried',
        )
        await this.#sleep(WORKER_POLL_MS)
      }
    }
  }

  /** One step; false when there is nothing left to look after. */
  async #step(): Promise<boolean> {
    const { app, id } = this
    const webhook = await store.findWebhook(app.db.reader, app.db.dialect, id)
    if (!webhook || webhook.isPaused) return false
    const restMs = Math.max(webhook.nextAttemptMs, webhook.leasedUntilMs) - app.clock.now()
    if (restMs > 0) {
      await this.#sleep(Math.min(restMs, WORKER_POLL_MS))
      return true
    }
    const next = await readNextMessage(app, webhook, Math.max(webhook.cursor, this.#scannedSeq))
    if (next.kind === 'nothing') await this.#skipChanges(webhook, next.next, next.isLast)
    else if (next.kind === 'message') await this.#deliver(webhook, next.message, next.next)
    else await this.#deliver(webhook, undefined, webhook.cursor, next.error)
    return true
  }

  async #skipChanges(webhook: Webhook, next: number, isLast: boolean): Promise<void> {
    this.#scannedSeq = next
    const now = performance.now()
    if (next > webhook.cursor && now - this.#cursorSavedMs > CURSOR_SAVE_INTERVAL_MS) {
      this.#cursorSavedMs = now
      await this.app.db.transaction((tx) => store.skipChanges(tx, webhook.id, webhook.cursor, next))
    }
    if (isLast) await this.app.changeWaiters.wait(next, WORKER_POLL_MS, this.shutdown.stopping)
  }

  async #deliver(
    webhook: Webhook,
    message: WebhookMessage | undefined,
    next: number,
    error?: string,
  ): Promise<void> {
    const { app } = this
    const lease = { id: webhook.id, token: randomUUID() }
    const atMs = app.clock.now()
    const untilMs = atMs + app.outgoing.timeoutMs + LEASE_MARGIN_MS
    const leaseRange = { from: webhook.cursor, until: next, nowMs: atMs, untilMs }
    if (!(await app.db.transaction((tx) => store.takeLease(tx, lease, leaseRange)))) return
    const outcome = message
      ? await sendMessage(app, webhook, message, this.shutdown.abort)
      : { status: null, error: error ?? '', ms: 0 }
    if (!outcome) return app.db.transaction((tx) => store.releaseLease(tx, lease))
    const failures = webhook.failures + 1
    const row = { ...buildDeliveryRow(webhook, message, outcome, atMs), attempt: failures }
    await app.db.transaction(async (tx) => {
      // Only now: what has not arrived is sent again, wherever a process ends.
      const isOurs =
        outcome.error === null
          ? await store.advanceWebhookCursor(tx, lease, next)
          : await store.postponeDelivery(tx, lease, app.clock.now() + computeBackoff(failures))
      if (isOurs) await deliveries.insertDelivery(tx, row)
    })
    if (outcome.status === HTTP_GONE) await pauseWebhook(app, webhook.id)
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.shutdown.stopping }).catch(() => undefined)
  }
}

export function buildDeliveryRow(
  { id }: Pick<Webhook, 'id'>,
  message: WebhookMessage | undefined,
  { status, error, ms }: CallOutcome,
  atMs: number,
): deliveries.DeliveryRow {
  const { id: name = '', firstSeq = null, lastSeq = null, changes = 0 } = message ?? {}
  return { webhook: id, message: name, firstSeq, lastSeq, changes, attempt: 1, atMs, ms, status, error }
}

/** Signs a message and sends it; undefined if it was cut off. */
export async function sendMessage(
  { outgoing, clock }: Pick<App, 'outgoing' | 'clock'>,
  { url, secret }: Webhook,
  { id, body }: WebhookMessage,
  abort?: AbortSignal,
): Promise<CallOutcome | undefined> {
  if (secret === null) return { status: null, error: NO_SECRET_ERROR, ms: 0 }
  const timestampS = Math.floor(clock.now() / 1_000)
  const headers = buildSignatureHeaders(secret, { id, timestampS, body })
  return callWebhook(outgoing, { url, headers, body }, abort)
}

/** The receiver is gone for good, as it says itself: an ordinary update, in the service's own name. */
async function pauseWebhook(app: App, id: number): Promise<void> {
  const model = app.catalog.get(WEBHOOK_MODEL)
  for (;;) {
    const record = await records.read(app.db.reader, app.tables.of(model), id)
    if (!record || record['paused'] === true) return
    try {
      await updateRecord(createContext(app, SERVICE_PRINCIPAL), model, {
        id,
        data: {
          version: record.version,
          paused: true,
        },
      })
      app.log.warn({ webhook: id }, 'paused a webhook: its receiver answered 410 Gone')
    } catch (error) {
      // Somebody changed it at the same time: with what they wrote in it, once more.
      if (!(error instanceof VersoError) || error.kind !== 'conflict') throw error
    }
  }
}
