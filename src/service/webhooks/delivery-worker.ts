// Delivers Changes to one receiver in order. A lease in the database permits one call at a time over all nodes.
import { randomUUID } from 'node:crypto'
import { summarizeError, VersoError } from '../../errors.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import * as deliveries from '../../store/webhooks/deliveries.js'
import * as records from '../../store/records/records.js'
import * as store from '../../store/webhooks/webhooks.js'
import type { Webhook } from '../../store/webhooks/webhooks.js'
import type { App } from '../context/app.js'
import { BACKGROUND_POLL_MS, computeBackoff, sleepUnlessStopped } from '../background/background-work.js'
import { SERVICE_PRINCIPAL } from '../context/principal.js'
import { updateRecord } from '../records/save.js'
import { callWebhook, type CallOutcome } from '../egress/call.js'
import { readNextMessage, type WebhookMessage } from './message.js'
import { buildSignatureHeaders } from './signature.js'
import { createContext } from '../context/context.js'

/** The minimum interval between saves of the cursor while no Change matches. */
const CURSOR_SAVE_INTERVAL_MS = 5_000
/** The lease outlasts the timeout of a call by this time. */
const LEASE_MARGIN_MS = 5_000
const HTTP_GONE = 410
const NO_SECRET_ERROR = 'the webhook has no secret: create one with POST /ws/webhooks/:id/secret'

/** `stopping` prevents further calls; `abort` interrupts the current one. */
export interface DeliveryShutdown {
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
}

export class DeliveryWorker {
  /** The last scanned Change that does not match this webhook; may be ahead of the saved cursor. */
  #scannedSeq = 0
  #cursorSavedMs = 0

  constructor(
    private readonly app: App,
    private readonly id: number,
    private readonly shutdown: DeliveryShutdown,
  ) {}

  /** Runs until the webhook is paused or removed, or the service stops. */
  async run(): Promise<void> {
    while (!this.shutdown.stopping.aborted) {
      try {
        if (!(await this.#step())) return
      } catch (error) {
        this.app.log.warn(
          { webhook: this.id, ...summarizeError(error) },
          'webhook worker failed; it will be retried',
        )
        await sleepUnlessStopped(BACKGROUND_POLL_MS, this.shutdown.stopping)
      }
    }
  }

  /** Makes at most one call. Returns false if the webhook is paused or removed. */
  async #step(): Promise<boolean> {
    const { app, id } = this
    const webhook = await store.findWebhook(app.db.reader, app.db.dialect, id)
    if (!webhook || webhook.isPaused) return false
    const restMs = Math.max(webhook.nextAttemptMs, webhook.leasedUntilMs) - app.clock.now()
    if (restMs > 0) {
      await sleepUnlessStopped(Math.min(restMs, BACKGROUND_POLL_MS), this.shutdown.stopping)
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
    if (isLast) await this.app.changeWaiters.wait(next, BACKGROUND_POLL_MS, this.shutdown.stopping)
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
      // The cursor advances after the response, so a crash repeats the call: at-least-once delivery.
      const isOurs =
        outcome.error === null
          ? await store.advanceWebhookCursor(tx, lease, next)
          : await store.postponeDelivery(tx, lease, app.clock.now() + computeBackoff(failures))
      if (isOurs) await deliveries.insertDelivery(tx, row)
    })
    if (outcome.status === HTTP_GONE) await pauseWebhook(app, webhook.id)
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

/** Signs and sends a message. Returns undefined if the signal aborted the call. */
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

/** Pauses the webhook by an ordinary update of its record, as the service. */
async function pauseWebhook(app: App, id: number): Promise<void> {
  const model = app.catalog.get(WEBHOOK_MODEL)
  for (;;) {
    const record = await records.readById(app.db.reader, app.tables.of(model), id)
    if (!record || record['paused'] === true) return
    try {
      await updateRecord(createContext(app, SERVICE_PRINCIPAL), model, {
        id,
        data: {
          version: record.version,
          paused: true,
        },
      })
      app.log.warn({ webhook: id }, 'paused a webhook: its receiver responded with 410 Gone')
    } catch (error) {
      // A concurrent update changed the record: retry with the new version.
      if (!(error instanceof VersoError) || error.kind !== 'conflict') throw error
    }
  }
}
