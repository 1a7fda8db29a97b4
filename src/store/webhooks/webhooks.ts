// The delivery state of webhooks, beside their records: the cursor of each, and the lease of the node that delivers to it.
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

export const WEBHOOK_TABLE = 'verso_webhook'

const WEBHOOK_RECORDS_TABLE = quoteIdentifier(toTableName(WEBHOOK_MODEL))
/** A node delivers to at most this many webhooks. */
const MAX_ACTIVE_WEBHOOKS = 1_000

/** A webhook: its record and its delivery state. */
export interface Webhook {
  readonly id: number
  readonly url: string
  readonly secret: string | null
  /** Null for all models that are not system models. */
  readonly models: readonly string[] | null
  /** The user whose permissions limit the deliveries; null if nothing limits them. */
  readonly userId: number | null
  readonly isPaused: boolean
  /** The sequence number of the last Change that was delivered or skipped. */
  readonly cursor: number
  /** The last sequence number of the delivery that is to be retried. */
  readonly retryUntilSeq: number | null
  /** Consecutive failures since the last change of the record. */
  readonly failures: number
  readonly nextAttemptMs: number
  /** The end of the lease during which only one node delivers; 0 without a lease. */
  readonly leasedUntilMs: number
}

/** Creates the cursor at the end of the Log, or at its beginning, in the transaction that creates the webhook record. */
export async function createWebhookCursor(
  tx: Transaction,
  id: number,
  isFromBeginning: boolean,
): Promise<void> {
  await tx.run(
    `insert into ${WEBHOOK_TABLE} (webhook, position, failures, next_ms) ` +
      `values (?, ${isFromBeginning ? '0' : LAST_SEQ_SQL}, 0, 0) on conflict (webhook) do nothing`,
    [id],
  )
}

/** Resets the retry delay, in the transaction that changes the webhook record. The change may have fixed the cause of the failures. */
export async function resetWebhookFailures(tx: Transaction, id: number): Promise<void> {
  await tx.run(`update ${WEBHOOK_TABLE} set failures = 0, next_ms = 0 where webhook = ?`, [id])
}

export async function deleteWebhookCursor(tx: Transaction, id: number): Promise<void> {
  await tx.run(`delete from ${WEBHOOK_TABLE} where webhook = ?`, [id])
}

/** Lists the ids of webhooks that are not paused. */
export async function listActiveWebhooks(db: Queryable): Promise<number[]> {
  const rows = await db.all(
    `select w."id" from ${WEBHOOK_RECORDS_TABLE} as w join ${WEBHOOK_TABLE} as s on s.webhook = w."id" ` +
      `where w."paused" is not true order by w."id" limit ${MAX_ACTIVE_WEBHOOKS}`,
  )
  return rows.map((row) => Number(row['id']))
}

export interface WebhookPosition {
  readonly id: number
  readonly cursor: number
  readonly failures: number
  readonly isPaused: boolean
}

/** Lists the webhooks that are furthest behind. */
export async function listWebhookPositions(
  db: Queryable,
  { columns: { boolean } }: Dialect,
  limit: number,
): Promise<WebhookPosition[]> {
  const rows = await db.all(
    `select w."id", w."paused", s.position, s.failures from ${WEBHOOK_RECORDS_TABLE} as w ` +
      `join ${WEBHOOK_TABLE} as s on s.webhook = w."id" order by s.position, w."id" limit ${limit}`,
  )
  return rows.map((row) => ({
    id: Number(row['id']),
    cursor: Number(row['position']),
    failures: Number(row['failures']),
    isPaused: boolean.decode(row['paused'] ?? null) === true,
  }))
}

/** The only function that reads the secret of a webhook. */
export async function findWebhook(db: Queryable, dialect: Dialect, id: number): Promise<Webhook | undefined> {
  const [row] = await db.all(
    `select w."id", w."url", w."secret", w."models", w."user", w."paused", ` +
      `s.position, s.until_seq, s.failures, s.next_ms, s.lease, s.leased_until_ms ` +
      `from ${WEBHOOK_RECORDS_TABLE} as w join ${WEBHOOK_TABLE} as s on s.webhook = w."id" where w."id" = ?`,
    [id],
  )
  return row && toWebhook(row, dialect)
}

function toWebhook(row: Row, { columns: { json, boolean } }: Dialect): Webhook {
  const models = json.decode(row['models'] ?? null) as readonly string[] | null
  return {
    id: Number(row['id']),
    url: String(row['url']),
    secret: row['secret'] as string | null,
    models: models && models.length > 0 ? models : null,
    userId: toNumberOrNull(row['user']),
    isPaused: boolean.decode(row['paused'] ?? null) === true,
    cursor: Number(row['position']),
    retryUntilSeq: toNumberOrNull(row['until_seq']),
    failures: Number(row['failures']),
    nextAttemptMs: Number(row['next_ms']),
    leasedUntilMs: row['lease'] === null ? 0 : Number(row['leased_until_ms']),
  }
}

function toNumberOrNull(value: Row[string] | undefined): number | null {
  return value === null || value === undefined ? null : Number(value)
}

export interface WebhookLease {
  readonly id: number
  /** A random text that identifies the holder of the lease. */
  readonly token: string
}

/** Takes the lease before a delivery. Returns false if another node has the lease or has moved the cursor. */
export async function takeLease(
  tx: Transaction,
  { id, token }: WebhookLease,
  { from, until, nowMs, untilMs }: { from: number; until: number; nowMs: number; untilMs: number },
): Promise<boolean> {
  const rows = await tx.run(
    `update ${WEBHOOK_TABLE} set lease = ?, leased_until_ms = ?, until_seq = ? ` +
      `where webhook = ? and position = ? and next_ms <= ? and (lease is null or leased_until_ms <= ?)`,
    [token, untilMs, until, id, from, nowMs, nowMs],
  )
  return rows === 1
}

/** Moves the cursor after a successful delivery. Returns false if the lease has expired and another node has taken it. */
export async function advanceWebhookCursor(
  tx: Transaction,
  { id, token }: WebhookLease,
  cursor: number,
): Promise<boolean> {
  const rows = await tx.run(
    `update ${WEBHOOK_TABLE} set position = ?, until_seq = null, failures = 0, next_ms = 0, lease = null ` +
      `where webhook = ? and lease = ?`,
    [cursor, id, token],
  )
  return rows === 1
}

/** Schedules the next attempt after a failed delivery. Returns false if the lease has expired and another node has taken it. */
export async function postponeDelivery(
  tx: Transaction,
  { id, token }: WebhookLease,
  nextMs: number,
): Promise<boolean> {
  const rows = await tx.run(
    `update ${WEBHOOK_TABLE} set failures = failures + 1, next_ms = ?, lease = null where webhook = ? and lease = ?`,
    [nextMs, id, token],
  )
  return rows === 1
}

/** Releases the lease of an aborted delivery, which does not count as a failure. */
export async function releaseLease(tx: Transaction, { id, token }: WebhookLease): Promise<void> {
  await tx.run(`update ${WEBHOOK_TABLE} set lease = null where webhook = ? and lease = ?`, [id, token])
}

/** Moves the cursor past Changes that the webhook does not receive, unless a node has the lease. */
export async function skipChanges(tx: Transaction, id: number, from: number, to: number): Promise<void> {
  await tx.run(
    `update ${WEBHOOK_TABLE} set position = ? where webhook = ? and position = ? and lease is null`,
    [to, id, from],
  )
}
