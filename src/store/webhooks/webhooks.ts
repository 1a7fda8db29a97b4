// What is kept of webhooks beside their records: how far each has come, and who is calling it just now.
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import type { Dialect, Queryable, Row, Transaction } from '../engine/database.js'
import { LAST_SEQ_SQL } from '../log/feed.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

export const WEBHOOK_TABLE = 'verso_webhook'

const WEBHOOK_RECORDS_TABLE = quoteIdentifier(toTableName(WEBHOOK_MODEL))
/** A node follows no more of them. */
const MAX_ACTIVE_WEBHOOKS = 1_000

/** A webhook as it is followed: its record, and how far it has come. */
export interface Webhook {
  readonly id: number
  readonly url: string
  readonly secret: string | null
  /** Null for all that people declare. */
  readonly models: readonly string[] | null
  /** Null where everything is told. */
  readonly userId: number | null
  readonly isPaused: boolean
  /** The last Change that was delivered, or was not to be. */
  readonly cursor: number
  /** Where the call ended that is to be repeated. */
  readonly retryUntilSeq: number | null
  /** In a row, since the record was changed. */
  readonly failures: number
  readonly nextAttemptMs: number
  /** Until when nobody else calls, while somebody does. */
  readonly leasedUntilMs: number
}

/** In the transaction that makes the record: from the Log's end, so that it is told of everything that is committed later. */
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

/** In the transaction that changes the record: whatever kept calls from arriving may be mended. */
export async function resetWebhookFailures(tx: Transaction, id: number): Promise<void> {
  await tx.run(`update ${WEBHOOK_TABLE} set failures = 0, next_ms = 0 where webhook = ?`, [id])
}

export async function deleteWebhookCursor(tx: Transaction, id: number): Promise<void> {
  await tx.run(`delete from ${WEBHOOK_TABLE} where webhook = ?`, [id])
}

/** Those that are not paused. */
export async function listActiveWebhooks(db: Queryable): Promise<number[]> {
  const rows = await db.all(
    `select w."id" from ${WEBHOOK_RECORDS_TABLE} as w join ${WEBHOOK_TABLE} as s on s.webhook = w."id" ` +
      `where w."paused" is not true order by w."id" limit ${MAX_ACTIVE_WEBHOOKS}`,
  )
  return rows.map((row) => Number(row['id']))
}

/** The one place where the secret of a webhook is read. */
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
  /** Known to nobody else. */
  readonly token: string
}

/** Before a call, by one node at a time, and only from where the webhook still stands; false if another one was faster. */
export async function takeLease(
  tx: Transaction,
  { id, token }: WebhookLease,
  { from, until, nowMs, untilMs }: { from: number; until: number; nowMs: number; untilMs: number },
): Promise<boolean> {
  const taken = await tx.run(
    `update ${WEBHOOK_TABLE} set lease = ?, leased_until_ms = ?, until_seq = ? ` +
      `where webhook = ? and position = ? and next_ms <= ? and (lease is null or leased_until_ms <= ?)`,
    [token, untilMs, until, id, from, nowMs, nowMs],
  )
  return taken === 1
}

/** After a call that has arrived; false if it took so long that another node has the lease. */
export async function advanceWebhookCursor(
  tx: Transaction,
  { id, token }: WebhookLease,
  cursor: number,
): Promise<boolean> {
  const moved = await tx.run(
    `update ${WEBHOOK_TABLE} set position = ?, until_seq = null, failures = 0, next_ms = 0, lease = null ` +
      `where webhook = ? and lease = ?`,
    [cursor, id, token],
  )
  return moved === 1
}

/** After a call that has not arrived. */
export async function postponeDelivery(
  tx: Transaction,
  { id, token }: WebhookLease,
  nextMs: number,
): Promise<boolean> {
  const put = await tx.run(
    `update ${WEBHOOK_TABLE} set failures = failures + 1, next_ms = ?, lease = null where webhook = ? and lease = ?`,
    [nextMs, id, token],
  )
  return put === 1
}

/** A call that was cut off: it counts as none. */
export async function releaseLease(tx: Transaction, { id, token }: WebhookLease): Promise<void> {
  await tx.run(`update ${WEBHOOK_TABLE} set lease = null where webhook = ? and lease = ?`, [id, token])
}

/** Past Changes that are not for this webhook, unless somebody is calling it. */
export async function skipChanges(tx: Transaction, id: number, from: number, to: number): Promise<void> {
  await tx.run(
    `update ${WEBHOOK_TABLE} set position = ? where webhook = ? and position = ? and lease is null`,
    [to, id, from],
  )
}
