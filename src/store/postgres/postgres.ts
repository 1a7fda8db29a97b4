// The engine for several nodes: connection pools, prepared statements, group commit, and retries after lost connections.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { WriteHealth, type OnWriteHealthChange, type UnwritableState } from '../engine/write-health.js'
import type { Database, Gauges, Row, QueryPool, Transaction, TransactionOptions } from '../engine/database.js'
import { Semaphore } from '../engine/semaphore.js'
import { PostgresCommitNotifier } from './commits.js'
import { PostgresBlobStore } from './blobs.js'
import { postgresDialect } from './dialect.js'
import { createPoolTimeoutError, PostgresFailure } from './errors.js'
import { OpenPostgresTransaction, PostgresQueryPool, PostgresReader } from './queryables.js'
import { UNPREPARED, runQuery, runSnapshot, runPostgresTransaction } from './statements.js'
import { GroupCommit, type GroupEngine } from '../engine/group-commit.js'
import type { GroupMember, OpenTransaction } from '../engine/group-transaction.js'

const MAX_CLIENT_ATTEMPTS = 3
/** For transactions that change tables: their locks conflict with many writers, and no client waits for them. */
const MAX_LONG_ATTEMPTS = 10
/**
 * The pause before a retry, multiplied by the attempt: lets conflicting writers finish. After a deadlock the other transaction must wake up
 * before it gets its lock; a retry without a pause can take that lock first, and both deadlock again.
 */
const RETRY_PAUSE_MS = 100
/** The writes of a group can be large, and stay in memory until all members are done. */
const MAX_GROUP_MEMBERS = 64
const CONNECT_TIMEOUT_MS = 5_000
const POOL_CLOSE_TIMEOUT_MS = 5_000
/** How long a write may wait for other writes. Each is short, but there may be a thousand. */
const WRITE_QUEUE_TIMEOUT_MS = 30_000
const LOCK_TIMEOUT_MS = 3_000
/** Short, because all members of a group wait for a lock that only one of them needs. */
const GROUP_LOCK_TIMEOUT_MS = 250
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000
/** The longest delay of a timer in Node. */
const MAX_TIMER_MS = 2 ** 31 - 1

// int8, int2, int4: all integers fit into a double. Other values stay text, and the dialect decodes them.
const NUMBER_TYPE_OIDS = new Set([20, 21, 23])

export interface PostgresOptions {
  readonly poolSize: number
  readonly statementTimeoutMs: number
  /** Called for connections that were lost while idle. */
  readonly onConnectionLost?: (error: Error) => void
  /** Called when the database starts to reject writes, and when it accepts them again. */
  readonly onWriteHealthChange?: OnWriteHealthChange
}

export async function openPostgres(url: string, options: PostgresOptions): Promise<Database> {
  // Separate pools, so that writers that wait for a lock and long queries take no connection from readers.
  const readerCount = Math.max(1, Math.floor(options.poolSize / 3))
  const writerCount = Math.max(1, options.poolSize - 2 * readerCount)
  const pools: ConnectionPools = {
    readers: openPool(url, readerCount, options),
    queryClients: openPool(url, readerCount, options),
    writers: openPool(url, writerCount, options, true),
  }
  return new PostgresDatabase(url, pools, options)
}

type ConnectionPools = Readonly<Record<'readers' | 'queryClients' | 'writers', pg.Pool>>

function openPool(
  url: string,
  max: number,
  { statementTimeoutMs, onConnectionLost }: PostgresOptions,
  /** Sends statements without waiting for the results of earlier ones. */
  pipeline = false,
): pg.Pool {
  const pool = new pg.Pool({
    // The types do not know this option.
    pipeline,
    connectionString: url,
    max,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    // Longer than the limit of the server: only for a server that does not respond.
    query_timeout: statementTimeoutMs + CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: 'verso',
    types: { getTypeParser: (oid: number) => (NUMBER_TYPE_OIDS.has(oid) ? Number : String) },
    onConnect: (client: pg.ClientBase) => configureConnection(client, statementTimeoutMs),
  })
  // Without this handler a lost idle connection would end the process.
  pool.on('error', (error) => onConnectionLost?.(error))
  return pool
}

/** The pool awaits the promise, although its types do not say so. */
function configureConnection(client: pg.ClientBase, statementTimeoutMs: number): unknown {
  return client.query(
    `set timezone = 'UTC'; set datestyle = 'ISO'; set statement_timeout = ${statementTimeoutMs};` +
      `set lock_timeout = ${LOCK_TIMEOUT_MS}; set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};` +
      `set default_transaction_isolation = 'read committed';` +
      // Keeps a stronger setting of the operator.
      `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')`,
  )
}

class PostgresDatabase implements Database, GroupEngine {
  readonly modes = ['concurrent'] as const
  readonly maxMembers = MAX_GROUP_MEMBERS
  readonly slots: Semaphore
  readonly dialect = postgresDialect
  readonly reader: PostgresReader
  readonly queryPool: QueryPool
  readonly blobs: PostgresBlobStore
  readonly commits: PostgresCommitNotifier
  readonly #writeHealth: WriteHealth
  readonly #groupCommit: GroupCommit

  constructor(
    url: string,
    private readonly pools: ConnectionPools,
    private readonly options: PostgresOptions,
  ) {
    const { readers, queryClients, writers } = pools
    this.#writeHealth = new WriteHealth(options.onWriteHealthChange)
    // The timeout of the pool is meant for a server that does not respond; waiting for other writes may take longer.
    this.slots = new Semaphore(writers.options.max, WRITE_QUEUE_TIMEOUT_MS, createPoolTimeoutError)
    this.#groupCommit = new GroupCommit(this)
    this.reader = new PostgresReader((sql, params) =>
      this.#withClient(readers, async (client) => (await runQuery(client, sql, params)).rows as Row[]),
    )
    // Long queries are not prepared: their texts rarely repeat, and a generic plan suits no value well.
    this.queryPool = new PostgresQueryPool(
      (sql, params) =>
        this.#withClient(
          queryClients,
          async (client) => (await runQuery(client, sql, params, UNPREPARED)).rows as Row[],
        ),
      (work) => this.#withClient(queryClients, (client) => runSnapshot(client, work)),
    )
    this.blobs = new PostgresBlobStore(this.reader)
    this.commits = new PostgresCommitNotifier({
      url,
      run: (sql) => this.#withClient(readers, (client) => runQuery(client, sql, [], UNPREPARED)),
      onConnectionLost: options.onConnectionLost,
    })
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    return this.#groupCommit.run(work, options)
  }

  requireAdmission(): void {
    this.#writeHealth.requireHealthy()
  }

  async runAlone({ work, options: { isLong = false } }: GroupMember): Promise<unknown> {
    const limits = isLong ? { statementMs: MAX_TIMER_MS } : {}
    const run = (client: pg.PoolClient) => runPostgresTransaction(client, work, limits)
    const result = await this.#withClient(this.pools.writers, run, isLong)
    await this.#afterCommit()
    return result
  }

  /** After any error before the COMMIT nothing is stored, and each member can run alone. */
  async runShared<T>(
    _: readonly GroupMember[],
    work: (open: OpenTransaction) => Promise<T>,
  ): Promise<T | undefined> {
    const run = (client: pg.PoolClient) =>
      runPostgresTransaction(client, (tx) => work(new OpenPostgresTransaction(tx, LOCK_TIMEOUT_MS)), {
        lockMs: GROUP_LOCK_TIMEOUT_MS,
      })
    let result: T
    try {
      result = await this.#withClientOnce(this.pools.writers, run)
    } catch (error) {
      if (error instanceof PostgresFailure && error.isCommitUncertain) throw error.translate()
      return undefined
    }
    await this.#afterCommit()
    return result
  }

  /** Runs outside of the block that handles failures: a committed group must not run again. */
  async #afterCommit(): Promise<void> {
    this.commits.publish()
    if (this.#writeHealth.unwritable) await this.#refreshWritability()
  }

  /** After a commit the server may be writable again; but the transaction may have only read. */
  async #refreshWritability(): Promise<void> {
    await this.writability().catch(() => undefined)
  }

  /** The server is read-only if it is a standby or an operator has made it read-only. */
  async writability(): Promise<UnwritableState | undefined> {
    const pool = this.#writeHealth.unwritable ? this.pools.writers : this.pools.readers
    const [row] = await this.#withClient(
      pool,
      async (client) => (await runQuery(client, 'show transaction_read_only', [], UNPREPARED)).rows as Row[],
    )
    if (row?.['transaction_read_only'] === 'on') this.#writeHealth.report('read-only')
    else this.#writeHealth.clearReadOnly()
    return this.#writeHealth.unwritable
  }

  gauges(): Gauges {
    const pools = Object.values(this.pools)
    const sum = (count: (pool: pg.Pool) => number) => pools.reduce((total, pool) => total + count(pool), 0)
    return {
      connectionsInUse: sum(({ totalCount, idleCount }) => totalCount - idleCount),
      connectionsAwaited: sum(({ waitingCount }) => waitingCount),
      writesPending: this.slots.pending + this.#groupCommit.pending,
      uploadsPending: this.blobs.countPending(),
    }
  }

  async close(): Promise<void> {
    await this.blobs.close()
    await Promise.race([this.commits.close(), sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
    // A connection that failed while connecting never emits its end.
    await Promise.race([
      Promise.all(Object.values(this.pools).map((pool) => pool.end())),
      sleep(POOL_CLOSE_TIMEOUT_MS, undefined, { ref: false }),
    ])
  }

  /** Runs the work with a connection of the pool. Retries with another connection if that one was lost before a commit. */
  async #withClient<T>(
    pool: pg.Pool,
    work: (client: pg.PoolClient) => Promise<T>,
    isLong = false,
  ): Promise<T> {
    const maxAttempts = isLong ? MAX_LONG_ATTEMPTS : MAX_CLIENT_ATTEMPTS
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#withClientOnce(pool, work)
      } catch (error) {
        if (!(error instanceof PostgresFailure)) throw error
        if (!error.canRetry || attempt >= maxAttempts) throw error.translate()
        // Different pauses, so that two transactions do not meet again.
        if (!error.isConnectionLost || isLong) await sleep(attempt * RETRY_PAUSE_MS * (1 + Math.random()))
      }
    }
  }

  async #withClientOnce<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch((error: unknown) => {
      const failure = new PostgresFailure(error, 'connecting')
      // Waiting writes would fail one after the other, too.
      if (pool === this.pools.writers) this.slots.rejectAll(() => failure.translate())
      throw failure
    })
    // The pool does not handle errors of a client in use: without this a restart of the server would end the process.
    const onError = (error: Error) => this.options.onConnectionLost?.(error)
    client.on('error', onError)
    let isUsable = true
    try {
      return await work(client)
    } catch (error) {
      isUsable = !(error instanceof PostgresFailure && error.isConnectionUnusable)
      if (error instanceof PostgresFailure && error.unwritableKind)
        this.#writeHealth.report(error.unwritableKind, error.cause)
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(!isUsable)
    }
  }
}
