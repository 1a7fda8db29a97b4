// The shared engine: a pool of connections, prepared statements, and lost connections survived.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Condition, type OnCondition, type Unwritable } from '../engine/database-condition.js'
import type {
  Database,
  Gauges,
  Queryable,
  Row,
  Searcher,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { Gathering } from '../engine/batcher.js'
import { Line } from '../engine/semaphore.js'
import { PostgresCommits } from './commits.js'
import { PostgresContents } from './blobs.js'
import { postgresDialect } from './dialect.js'
import { crowded, Failure } from './errors.js'
import { ONCE, query, snapshotOn, transactionOn } from './statements.js'
import { Sharing, shareTransaction, type Outcome, type Works } from '../engine/group-commit.js'

const MAX_ATTEMPTS = 3
/** Of a transaction that changes tables: its locks meet those of many writers, and nobody waits for its answer. */
const LONG_ATTEMPTS = 10
/** Before each further attempt of such a transaction, times the attempt: the writers it met are done by then. */
const PAUSE_MS = 50
/** More would only make each of them smaller. */
const READS_AT_ONCE = 2
/** They may be large. */
const MOST_TOGETHER = 32
/** Writes that share a transaction. */
const GROUPS_AT_ONCE = 1
const CONNECT_MS = 5_000
const CLOSE_MS = 5_000
/** How long a write may wait for others to be done: each is quick, and they may be a thousand. */
const PATIENCE_MS = 30_000
const LOCK_MS = 3_000
/** Of those who share a transaction nobody is to wait long for what only one of them needs. */
const SHARED_LOCK_MS = 250
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
  /** Called when writes begin to be refused, and when they are taken again. */
  readonly onCondition?: OnCondition
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
  readonly #condition: Condition
  readonly #line: Line
  readonly #sharing: Sharing

  constructor(
    url: string,
    private readonly readers: pg.Pool,
    private readonly searchers: pg.Pool,
    private readonly writers: pg.Pool,
    writing: number,
    private readonly options: PostgresOptions,
  ) {
    this.#condition = new Condition(options.onCondition)
    this.#line = new Line(writing, PATIENCE_MS, crowded)
    this.#sharing = new Sharing(this.#line, GROUPS_AT_ONCE, {
      alone: (work) => this.#alone(work),
      together: (works) => this.#together(works),
    })
    const reads = new Gathering({ most: MOST_TOGETHER, atOnce: READS_AT_ONCE })
    this.reader = {
      all: (sql, params) =>
        this.#withClient(readers, async (client) => (await query(client, sql, params)).rows as Row[]),
      together: (key, input, run) => reads.together(key, input, run),
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
    { isLong = false, plain }: TransactionOptions = {},
  ): Promise<T> {
    this.#condition.requireSound()
    if (plain) return this.#sharing.add(work, plain.record)
    // The pool would wait as long for others as for a server that does not answer.
    return this.#line.inTurn(() => this.#alone(work, isLong))
  }

  async #alone<T>(work: (tx: Transaction) => Promise<T>, isLong = false): Promise<T> {
    const limits = isLong ? { limitMs: NO_LIMIT_MS } : {}
    const run = (client: pg.PoolClient) => transactionOn(client, work, limits)
    const result = await this.#withClient(this.writers, run, isLong)
    this.commits.announce()
    if (this.#condition.unwritable) await this.#lookAgain()
    return result
  }

  /** Whatever goes wrong before the COMMIT, nothing of it is stored, and each may run alone. */
  async #together(works: Works): Promise<readonly Outcome[] | undefined> {
    const patient = `set local lock_timeout = ${LOCK_MS}`
    const limits = { patienceMs: SHARED_LOCK_MS }
    try {
      const outcomes = await this.#once(this.writers, (client) =>
        transactionOn(client, (tx) => shareTransaction(tx, works, () => tx.last?.(patient, [])), limits),
      )
      this.commits.announce()
      if (this.#condition.unwritable) await this.#lookAgain()
      return outcomes
    } catch (error) {
      if (error instanceof Failure && error.isInDoubt) throw error.translate()
      return undefined
    }
  }

  /** After a commit the server may be writable again. The transaction may also have been one that only read. */
  async #lookAgain(): Promise<void> {
    await this.writability().catch(() => undefined)
  }

  /** A standby, or a server whose operator has made it read-only. */
  async writability(): Promise<Unwritable | undefined> {
    const pool = this.#condition.unwritable ? this.writers : this.readers
    const [row] = await this.#withClient(
      pool,
      async (client) => (await query(client, 'show transaction_read_only', [], ONCE)).rows as Row[],
    )
    if (row?.['transaction_read_only'] === 'on') this.#condition.note('read-only')
    else this.#condition.clearReadOnly()
    return this.#condition.unwritable
  }

  gauges(): Gauges {
    const pools = [this.readers, this.searchers, this.writers]
    const sum = (count: (pool: pg.Pool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
    return {
      connectionsInUse: sum(({ totalCount, idleCount }) => totalCount - idleCount),
      connectionsAwaited: sum(({ waitingCount }) => waitingCount),
      writesPending: this.#line.pending + this.#sharing.pending,
      uploadsPending: this.contents.pending(),
    }
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
  async #withClient<T>(
    pool: pg.Pool,
    work: (client: pg.PoolClient) => Promise<T>,
    isLong = false,
  ): Promise<T> {
    const most = isLong ? LONG_ATTEMPTS : MAX_ATTEMPTS
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(pool, work)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        if (!error.mayRepeat || attempt >= most) throw error.translate()
        if (isLong) await sleep(attempt * PAUSE_MS)
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
      isUsable = !(error instanceof Failure && error.isSpent)
      if (error instanceof Failure && error.trouble) this.#condition.note(error.trouble, error.cause)
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(!isUsable)
    }
  }
}
