// Statements and transactions over one connection to PostgreSQL.
import { createHash } from 'node:crypto'
import type pg from 'pg'
import {
  UniqueViolation,
  type Queryable,
  type Row,
  type SqlValue,
  type Transaction,
} from '../engine/database.js'
import { Failure, isSqlError } from './errors.js'

const MAX_NAMED_STATEMENTS = 1_000

export async function snapshotOn<T>(client: pg.PoolClient, work: (db: Queryable) => Promise<T>): Promise<T> {
  await query(client, 'begin isolation level repeatable read read only', [], ONCE)
  try {
    const all: Queryable['all'] = async (sql, params) =>
      (await query(client, sql, params, ONCE)).rows as Row[]
    const result = await work({ all })
    await query(client, 'commit', [], ONCE)
    return result
  } catch (error) {
    if (!(error instanceof Failure && error.isLost)) await query(client, 'rollback', [], ONCE)
    throw error
  }
}

export interface TransactionLimits {
  /** How long each of its statements may take. */
  readonly limitMs?: number | undefined
  /** How long it waits for a lock, up to its last statements; as long as others, if absent. */
  readonly patienceMs?: number
}

/** Runs the work and answers after its COMMIT. */
export async function transactionOn<T>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<T>,
  { limitMs, patienceMs }: TransactionLimits = {},
): Promise<T> {
  let isCommitting = false
  const unawaited = new Unawaited()
  try {
    if (patienceMs === undefined) unawaited.add(query(client, 'begin'))
    else unawaited.add(query(client, `begin; set local lock_timeout = ${patienceMs}`, [], ONCE))
    const result = await work(statementsOn(client, unawaited, limitMs))
    isCommitting = true
    const committed = query(client, 'commit')
    committed.catch(() => undefined)
    await unawaited.done()
    const { command } = await committed
    // What PostgreSQL answers to the COMMIT of a transaction that had failed before.
    if (command !== 'COMMIT') throw new Error('an error inside a transaction was caught and kept')
    return result
  } catch (error) {
    if (error instanceof Failure && error.isLost)
      throw isCommitting ? new Failure(error.cause, 'committing') : error
    await query(client, 'rollback')
    throw error
  }
}

/** Statements that were sent and that nobody has waited for yet. */
class Unawaited {
  readonly #sent: Promise<unknown>[] = []

  add(statement: Promise<unknown>): void {
    // It is looked at in the end, or something before it has failed.
    statement.catch(() => undefined)
    this.#sent.push(statement)
  }

  async done(): Promise<void> {
    for (const statement of this.#sent) await statement
  }
}

function statementsOn(client: pg.PoolClient, unawaited: Unawaited, limitMs?: number): Transaction {
  // What makes tables is said once, and would take the place of what is said again and again.
  const options = { limitMs, isOnce: limitMs !== undefined }
  return {
    all: async (sql, params) => (await query(client, sql, params, options)).rows as Row[],
    run: async (sql, params) => (await query(client, sql, params, options)).rowCount ?? 0,
    insert: async (sql, params) => {
      const { rows } = await query(client, `${sql} returning "id"`, params, options)
      return (rows[0] as { id: number }).id
    },
    last: (sql, params) => {
      unawaited.add(query(client, sql, params, options))
    },
  }
}

export interface QueryOptions {
  /** Not to be prepared. */
  readonly isOnce?: boolean
  readonly limitMs?: number | undefined
}

export const ONCE: QueryOptions = { isOnce: true }

export async function query(
  client: pg.PoolClient,
  sql: string,
  params: readonly SqlValue[] = [],
  { isOnce = false, limitMs }: QueryOptions = {},
): Promise<pg.QueryResult> {
  try {
    const statement = isOnce ? { text: numbered(sql) } : prepared(sql)
    const limit = limitMs === undefined ? {} : { query_timeout: limitMs }
    return await client.query({ ...statement, ...limit, values: params as SqlValue[] })
  } catch (error) {
    if (isSqlError(error) && error.code === '23505')
      throw new UniqueViolation(error.constraint, [], { cause: error })
    throw new Failure(error)
  }
}

const statements = new Map<string, { readonly name?: string; readonly text: string }>()

/** Under a name, so that each connection parses and plans it once. */
function prepared(sql: string): { readonly name?: string; readonly text: string } {
  const known = statements.get(sql)
  if (known) return known
  const text = numbered(sql)
  // Past this number the shapes are too many to be worth keeping in every connection.
  if (statements.size >= MAX_NAMED_STATEMENTS) return { text }
  const statement = { name: createHash('sha256').update(sql).digest('base64url').slice(0, 32), text }
  statements.set(sql, statement)
  return statement
}

/** `?` → `$1`, `$2` … */
function numbered(sql: string): string {
  let count = 0
  return sql.replace(/\?/g, () => `$${++count}`)
}
