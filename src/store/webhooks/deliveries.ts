// The delivery log of webhooks. It stores neither response bodies nor signing secrets.
import type { Queryable, Row, Transaction } from '../engine/database.js'

export const DELIVERY_TABLE = 'verso_webhook_delivery'

export interface DeliveryRow {
  readonly webhook: number
  /** The message id, which all attempts to deliver the same Changes share. */
  readonly message: string
  readonly firstSeq: number | null
  readonly lastSeq: number | null
  readonly changes: number
  readonly attempt: number
  readonly atMs: number
  readonly ms: number
  /** The HTTP status; null if there was no response. */
  readonly status: number | null
  /** A short description; null if the delivery succeeded. */
  readonly error: string | null
}

export async function insertDelivery(tx: Transaction, row: DeliveryRow): Promise<void> {
  const { webhook, message, firstSeq, lastSeq, changes, attempt, atMs, ms, status, error } = row
  await tx.run(
    `insert into ${DELIVERY_TABLE} (webhook, message, first_seq, last_seq, changes, attempt, at_ms, ms, status, error) ` +
      `values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [webhook, message, firstSeq, lastSeq, changes, attempt, atMs, ms, status, error],
  )
}

/** Lists deliveries, the newest first, and their total, in one statement and so from one snapshot. */
export async function listDeliveryRows(
  db: Queryable,
  webhook: number,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<{ readonly total: number; readonly rows: readonly DeliveryRow[] }> {
  const rows = await db.all(
    `select "all".total, page.* from (select count(*) as total from ${DELIVERY_TABLE} where webhook = ?) as "all" ` +
      `left join (select * from ${DELIVERY_TABLE} where webhook = ? order by id desc limit ? offset ?) as page on true ` +
      `order by page.id desc`,
    [webhook, webhook, limit, offset],
  )
  return {
    total: Number(rows[0]?.['total'] ?? 0),
    rows: rows.filter((row) => row['id'] !== null).map(toDeliveryRow),
  }
}

export async function deleteDeliveriesOfWebhook(tx: Transaction, webhook: number): Promise<void> {
  await tx.run(`delete from ${DELIVERY_TABLE} where webhook = ?`, [webhook])
}

/** Deletes deliveries before `beforeMs`, and all but the newest `maxPerWebhook` of each webhook. */
export async function deleteOldDeliveries(
  tx: Transaction,
  beforeMs: number,
  maxPerWebhook: number,
): Promise<number> {
  const old = await tx.run(`delete from ${DELIVERY_TABLE} where at_ms < ?`, [beforeMs])
  const ranked = `select id, row_number() over (partition by webhook order by id desc) as place from ${DELIVERY_TABLE}`
  const excess = await tx.run(
    `delete from ${DELIVERY_TABLE} where id in (select id from (${ranked}) as ranked where place > ?)`,
    [maxPerWebhook],
  )
  return old + excess
}

function toDeliveryRow(row: Row): DeliveryRow {
  const numberIn = (name: string) => (row[name] === null ? null : Number(row[name]))
  return {
    webhook: Number(row['webhook']),
    message: String(row['message']),
    firstSeq: numberIn('first_seq'),
    lastSeq: numberIn('last_seq'),
    changes: Number(row['changes']),
    attempt: Number(row['attempt']),
    atMs: Number(row['at_ms']),
    ms: Number(row['ms']),
    status: numberIn('status'),
    error: row['error'] as string | null,
  }
}
