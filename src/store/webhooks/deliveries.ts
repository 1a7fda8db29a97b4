// The calls of webhooks, as far as they are remembered: never what was answered, never what they were signed with.
import type { Queryable, Row, Transaction } from '../engine/database.js'

export const DELIVERY_TABLE = 'verso_webhook_delivery'

export interface DeliveryRow {
  readonly webhook: number
  /** The same for all attempts to deliver the same. */
  readonly message: string
  readonly firstSeq: number | null
  readonly lastSeq: number | null
  readonly changes: number
  readonly attempt: number
  readonly atMs: number
  readonly ms: number
  /** Null where nothing was answered. */
  readonly status: number | null
  /** In short words; null where it has arrived. */
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

/** The newest first, and how many there are: of one moment. */
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

/** All that are older, and of each webhook all but the newest. */
export async function deleteOldDeliveries(tx: Transaction, beforeMs: number, kept: number): Promise<number> {
  const old = await tx.run(`delete from ${DELIVERY_TABLE} where at_ms < ?`, [beforeMs])
  const ranked = `select id, row_number() over (partition by webhook order by id desc) as place from ${DELIVERY_TABLE}`
  const many = await tx.run(
    `delete from ${DELIVERY_TABLE} where id in (select id from (${ranked}) as ranked where place > ?)`,
    [kept],
  )
  return old + many
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
