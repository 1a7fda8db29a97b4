// Runs statements and transactions on one connection to PostgreSQL.
import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { Queryable, Row, SnapshotWork, SqlValue, Transaction } from '../engine/database.js'
import { UniqueViolation } from '../engine/unique-violation.js'
import { FunctionQueryable, UnsharedTransaction } from '../engine/unshared.js'
import { PostgresFailure, isSqlError } from './errors.js'

const MAX_PREPARED_STATEMENTS = 1_000

export async function runSnapshot<T>(
  client: pg.PoolClient,
  work: SnapshotWork<T>,
  /** A statement that runs first. */
  setUp?: string,
): Promise<T> {
  await runQuery(client, 'begin isolation level repeatable read read only', [], UNPREPARED)
  try {
    if (setUp !== undefined) await runQuery(client, setUp, [], UNPREPARED)
    const all: Queryable['all'] = async (sql, params) =>
      (await runQuery(client, sql, params, UNPREPARED)).rows as Row[]
    const result = await work(new FunctionQueryable(all))
    await runQuery(client, 'commit', [], UNPREPARED)
    return result
  } catch (error) {
    if (!(error instanceof PostgresFailure && error.isConnectionLost))
      await runQuery(client, 'rollback', [], UNPREPARED)
    throw error
  }
}

export interface TransactionTimeouts {
  /** The time limit of each statement. */
  readonly statementMs?: number | undefined
  /** How long the members of a group wait for a lock; the limit of the connection by default. */
  readonly lockMs?: number
}

/** Runs the work and resolves after its COMMIT. */
export async function runPostgresTransaction<T>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<T>,
  { statementMs, lockMs }: TransactionTimeouts = {},
): Promise<T> {
  let isCommitting = false
  const unawaited = new PipelinedStatements()
  try {
    if (lockMs === undefined) unawaited.add(runQuery(client, 'begin'))
    else unawaited.add(runQuery(client, `begin; set local lock_timeout = ${lockMs}`, [], UNPREPARED))
    const result = await work(new PostgresTransaction(client, unawaited, statementMs))
    isCommitting = true
    const committed = runQuery(client, 'commit')
    committed.catch(() => undefined)
    await unawaited.awaitAll()
    const { command } = await committed
    // PostgreSQL answers the COMMIT of an aborted transaction with ROLLBACK.
    if (command !== 'COMMIT') throw new Error('the work caught an error of its transaction')
    return result
  } catch (error) {
    if (error instanceof PostgresFailure && error.isConnectionLost)
      throw isCommitting ? new PostgresFailure(error.cause, 'committing') : error
    await runQuery(client, 'rollback')
    throw error
  }
}

/** Statements that were sent and not awaited yet. */
class PipelinedStatements {
  readonly #sent: Promise<unknown>[] = []

  add(statement: Promise<unknown>): void {
    // `awaitAll` reports the error, unless an earlier statement has failed.
    statement.catch(() => undefined)
    this.#sent.push(statement)
  }

  async awaitAll(): Promise<void> {
    for (const statement of this.#sent) await statement
  }
}

class PostgresTransaction extends UnsharedTransaction {
  statementCount = 0
  readonly #options: QueryOptions

  constructor(
    private readonly client: pg.PoolClient,
    private readonly unawaited: PipelinedStatements,
    timeoutMs?: number,
  ) {
    super()
    // Long transactions change tables: their statements do not repeat and would displace prepared statements that do.
    this.#options = { timeoutMs, isUnprepared: timeoutMs !== undefined }
  }

  async all(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    return (await this.#query(sql, params)).rows as Row[]
  }

  async run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    return (await this.#query(sql, params)).rowCount ?? 0
  }

  async insert(sql: string, params?: readonly SqlValue[]): Promise<number> {
    const { rows } = await this.#query(`${sql} returning "id"`, params)
    return (rows[0] as { id: number }).id
  }

  override sendWithCommit(sql: string, params: readonly SqlValue[]): Promise<void> {
    this.unawaited.add(this.#query(sql, params))
    return Promise.resolve()
  }

  #query(sql: string, params?: readonly SqlValue[]): Promise<pg.QueryResult> {
    this.statementCount++
    return runQuery(this.client, sql, params, this.#options)
  }
}

export interface QueryOptions {
  /** Runs the statement without preparing it. */
  readonly isUnprepared?: boolean
  readonly timeoutMs?: number | undefined
}

export const UNPREPARED: QueryOptions = { isUnprepared: true }

export async function runQuery(
  client: pg.PoolClient,
  sql: string,
  params: readonly SqlValue[] = [],
  { isUnprepared = false, timeoutMs }: QueryOptions = {},
): Promise<pg.QueryResult> {
  try {
    const statement = isUnprepared ? { text: numberPlaceholders(sql) } : prepareStatement(sql)
    const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs }
    return await client.query({ ...statement, ...limit, values: params as SqlValue[] })
  } catch (error) {
    if (isSqlError(error) && error.code === '23505')
      throw new UniqueViolation(error.constraint, [], { cause: error })
    throw new PostgresFailure(error)
  }
}

const preparedStatements = new Map<string, { readonly name?: string; readonly text: string }>()

/** Gives the statement a name, so that each connection parses and plans it once. */
function prepareStatement(sql: string): { readonly name?: string; readonly text: string } {
  const prepared = preparedStatements.get(sql)
  if (prepared) return prepared
  const text = numberPlaceholders(sql)
  // Each connection keeps its prepared statements in memory, so their number is limited.
  if (preparedStatements.size >= MAX_PREPARED_STATEMENTS) return { text }
  const statement = { name: createHash('sha256').update(sql).digest('base64url').slice(0, 32), text }
  preparedStatements.set(sql, statement)
  return statement
}

/** `?` → `$1`, `$2` … */
export function numberPlaceholders(sql: string): string {
  let count = 0
  return sql.replace(/\?/g, () => `$${++count}`)
}
