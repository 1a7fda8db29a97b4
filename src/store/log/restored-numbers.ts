// Raises the versions, ids and sequence numbers of a restored database beyond all numbers that clients hold from later states.
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import type { Dialect, Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'
import { FILE_TABLE } from '../records/files.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import { readLastSeq, setRestoreFloor } from './feed.js'
import { findLastLoggedId } from './log.js'

/** The sum of all jumps of a database and of those that it was restored from. */
const RAISED_BY_ROW = 'restore-jumps'

/** On average since the last restore, versions, ids and sequence numbers grow more slowly than this. */
const NUMBERS_PER_MS = 50
/** Databases of this release are newer. Counting from here keeps the numbers small. */
const JUMPS_START_MS = Date.UTC(2026, 0, 1)
/** For a clock that went back. */
const MIN_JUMP = 1_000_000

/** The number that a restore adds to the numbers of a database. */
export interface RestoreJump {
  readonly jump: number
  /** The sum of this jump and of all earlier ones. */
  readonly sum: number
}

/**
 * Computes the jump of a restore. The sum of all jumps depends on the time alone. So a later restore leads to greater numbers than any earlier
 * one, even if its backup is older, or was made from the restored database.
 */
export async function computeRestoreJump(db: Queryable, nowMs: number): Promise<RestoreJump> {
  const [row] = await db.all(`select max(value) as "sum" from ${VERSIONS_TABLE} where name = ?`, [
    RAISED_BY_ROW,
  ])
  const earlier = Number(row?.['sum'] ?? 0)
  const jump = Math.max(MIN_JUMP, Math.ceil((nowMs - JUMPS_START_MS) * NUMBERS_PER_MS) - earlier)
  return { jump, sum: earlier + jump }
}

/**
 * Raises the versions of all records, live and deleted, in their rows and in all of their Changes. The history has no gap and begins at a
 * greater version, so the code that reads it needs no exception.
 */
export async function raiseVersions(
  tx: Transaction,
  models: Iterable<string>,
  { jump }: RestoreJump,
): Promise<void> {
  for (const model of models)
    await tx.run(`update ${quoteIdentifier(toTableName(model))} set "version" = "version" + ?`, [jump])
  await tx.run(`update ${LOG_TABLE} set version = version + ?`, [jump])
}

/** Raises the next ids of all models and files, so that no id that was assigned after the backup is assigned again. */
export async function raiseNextIds(
  tx: Transaction,
  dialect: Dialect,
  models: Iterable<string>,
  { jump }: RestoreJump,
): Promise<void> {
  for (const model of models) {
    const lastId = Math.max(await findLastLoggedId(tx, model), await readGreatest(tx, toTableName(model)))
    for (const sql of dialect.advanceIds(toTableName(model), lastId + jump)) await tx.run(sql)
  }
  const lastFile = await readGreatest(tx, FILE_TABLE)
  for (const sql of dialect.advanceIds(FILE_TABLE, lastFile + jump)) await tx.run(sql)
}

async function readGreatest(db: Queryable, table: string): Promise<number> {
  const [row] = await db.all(`select max("id") as "last" from ${quoteIdentifier(table)}`)
  return Number(row?.['last'] ?? 0)
}

/** Raises the next sequence number of the Log, and refuses the numbers in between as cursors. The caller appends a Change afterwards. */
export async function raiseNextSeq(
  tx: Transaction,
  dialect: Dialect,
  { jump, sum }: RestoreJump,
): Promise<void> {
  const last = (await readLastSeq(tx)) + jump
  for (const sql of dialect.advanceIds(LOG_TABLE, last, 'seq')) await tx.run(sql)
  await setRestoreFloor(tx, last)
  await tx.run(
    `insert into ${VERSIONS_TABLE} (name, value) values ('${RAISED_BY_ROW}', ?) on conflict (name) do update set value = excluded.value`,
    [sum],
  )
}
