// The shared engine: a pool of connections, prepared statements, and lost connections survived.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import {
  UniqueViolation,
  type Database,
  type Queryable,
  type Row,
  type Searcher,
  type SqlValue,
  type Transaction,
  type TransactionOptions,
} from './database.js'
import { Line } from './line.js'
import { PostgresCommits } from './postgres-commits.js'
import { PostgresContents } from './postgres-contents.js'
import { postgresDialect } from './postgres-dialect.js'
import { crowded, Failure, isSqlError } from './postgres-failure.js'

const MAX_NAMED_STATEMENTS = 1_000
const MAX_ATTEMPTS = 3
const CONNECT_MS = 5_000
const CLOSE_MS = 5_000
/** How long a write may wait for others to be done: each is quick, and they may be a thousand. */
const PATIENCE_MS = 30_000
const LOCK_MS = 3_000
const IDLE_IN_TRANSACTION_MS = 30_000
/** The longest that a timer can wait. */
const NO_LIMIT_MS = 2 ** 31 - 1

// int8, int2, int4: every number of ours fits into a double. All else stays text for the dialect to decode.
const NUMBERS = new Set([20, 21, 23])

export interface PostgresOptions {
  readonly poolSize: number
  readonly statementTimeoutMs: number
  /** Told of connections that were lost while idle, for the log. */
  readonly onLost?: (error: Error) => void
}

export async function openPostgres(url: string, options: PostgresOptions): Promise<Database> {
  // Writers that wait for a lock, and searches that take long, must not keep readers from theirs.
  const third = Math.max(1, Math.floor(options.poolSize / 3))
  const [readers, searchers] = [openPool(url, third, options), openPool(url, third, options)]
  const writing = Math.max(1, options.poolSize - 2 * third)
  const writers = openPool(url, writing, options, true)
  return new Postgres(url, readers, searchers, writers, writing, options)
}

function openPool(
  url: string,
  max: number,
  { statementTimeoutMs, onLost }: PostgresOptions,
  /** Sends statements without waiting for the answers to those before. */
  pipeline = false,
): pg.Pool {
  const pool = new pg.Pool({
    ...{ pipeline },
    connectionString: url,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    // The server ends a statement first; this is for a server that no longer answers.
    query_timeout: statementTimeoutMs + CONNECT_MS,
    keepAlive: true,
    application_name: 'verso',
    types: { getTypeParser: (oid: number) => (NUMBERS.has(oid) ? Number : String) },
    onConnect: (client: pg.ClientBase) => prepareConnection(client, statementTimeoutMs),
  })
  // Without this a lost idle connection would end the process.
  pool.on('error', (error) => onLost?.(error))
  return pool
}

/** The pool waits for the promise, though its types expect none. */
function prepareConnection(client: pg.ClientBase, statementTimeoutMs: number): unknown {
  return client.query(
    `set timezone = 'UTC'; set datestyle = 'ISO'; set statement_timeout = ${statementTimeoutMs};` +
      `set lock_timeout = ${LOCK_MS}; set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};` +
      `set default_transaction_isolation = 'read committed';` +
      // A stronger setting of the operator's stays.
      `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')`,
  )
}

class Postgres implements Database {
  readonly dialect = postgresDialect
  readonly reader: Queryable
  readonly searcher: Searcher
  readonly contents: PostgresContents
  readonly commits: PostgresCommits
  readonly #line: Line

  constructor(
    url: string,
    private readonly readers: pg.Pool,
    private readonly searchers: pg.Pool,
    private readonly writers: pg.Pool,
    writing: number,
    private readonly options: PostgresOptions,
  ) {
    this.#line = new Line(writing, PATIENCE_MS, crowded)
    this.reader = {
      all: (sql, params) =>
        this.#withClient(readers, async (client) => (await query(client, sql, params)).rows as Row[]),
    }
    // Searches have as many texts as people have questions: none is worth keeping, and a plan for any value suits none.
    this.searcher = {
      all: (sql, params) =>
        this.#withClient(searchers, async (client) => (await query(client, sql, params, ONCE)).rows as Row[]),
      snapshot: (work) => this.#withClient(searchers, (client) => snapshotOn(client, work)),
    }
    this.contents = new PostgresContents(this.reader)
    this.commits = new PostgresCommits({
      url,
      run: (sql) => this.#withClient(readers, (client) => query(client, sql, [], ONCE)),
      onLost: options.onLost,
    })
  }

  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    { isLong = false }: TransactionOptions = {},
  ): Promise<T> {
    // The pool would wait as long for others as for a server that does not answer.
    const result = await this.#line.inTurn(() => this.#transaction(work, isLong))
    this.commits.announce()
    return result
  }

  async #transaction<T>(work: (tx: Transaction) => Promise<T>, isLong: boolean): Promise<T> {
    return this.#withClient(this.writers, async (client) => {
      let isCommitting = false
      const unawaited = new Unawaited()
      try {
        unawaited.add(query(client, 'begin'))
        const result = await work(transactionOn(client, unawaited, isLong ? NO_LIMIT_MS : undefined))
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
    })
  }

  async close(): Promise<void> {
    await this.contents.close()
    await Promise.race([this.commits.close(), sleep(CLOSE_MS, undefined, { ref: false })])
    // A connection that failed half-way never says that it has ended.
    await Promise.race([
      Promise.all([this.readers, this.searchers, this.writers].map((pool) => pool.end())),
      sleep(CLOSE_MS, undefined, { ref: false }),
    ])
  }

  /** Lends a connection to the work, again with another one if it was lost before anything was committed. */
  async #withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(pool, work)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        if (!error.mayRepeat || attempt >= MAX_ATTEMPTS) throw error.translate()
      }
    }
  }

  async #once<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch((error: unknown) => {
      const failure = new Failure(error, 'connecting')
      // Those behind would find out one after the other.
      if (pool === this.writers) this.#line.refuseAll(() => failure.translate())
      throw failure
    })
    // The pool does not listen while a client is lent out: a database restart would end the process.
    const onError = (error: Error) => this.options.onLost?.(error)
    client.on('error', onError)
    let isUsable = true
    try {
      return await work(client)
    } catch (error) {
      isUsable = !(error instanceof Failure && error.isLost)
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(!isUsable)
    }
  }
}

async function snapshotOn<T>(client: pg.PoolClient, work: (db: Queryable) => Promise<T>): Promise<T> {
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

function transactionOn(client: pg.PoolClient, unawaited: Unawaited, limitMs?: number): Transaction {
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

interface QueryOptions {
  /** Not to be prepared. */
  readonly isOnce?: boolean
  readonly limitMs?: number | undefined
}

const ONCE: QueryOptions = { isOnce: true }

async function query(
  client: pg.PoolClient,
  sql: string,
  params: readonly SqlValue[] = [],
  { isOnce = false, limitMs }: QueryOptions = {},
): Promise<pg.QueryResult> {
  try {
    const statement = isOnce ? { text: numbered(sql) } : prepared(sql)
    const limit = limitMs === undefined ? {} : { query_timeout: limitMs }
    return await client.query({ ...statement, ...limit, values: [...params] })
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
