// The engine for several nodes: connection pools, prepared statements, group commit, and retries after lost connections.
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import {
  createUnwritableError,
  WriteHealth,
  type OnWriteHealthChange,
  type UnwritableState,
} from '../engine/write-health.js'
import type {
  Database,
  Gauges,
  Row,
  QueryPool,
  SnapshotWork,
  Transaction,
  TransactionOptions,
} from '../engine/database.js'
import { MAX_TIMER_MS, Semaphore } from '../engine/semaphore.js'
import { sumWaiting } from '../engine/measures.js'
import { PostgresCommitNotifier } from './commits.js'
import { PostgresBlobStore } from './blobs.js'
import { CLOSE_TIMEOUT_MS, Connections, LOCK_TIMEOUT_MS, type PoolName } from './connections.js'
import { postgresDialect } from './dialect.js'
import { DiskRoom } from './disk-room.js'
import { createPoolTimeoutError, PostgresFailure } from './errors.js'
import { OpenPostgresTransaction, PostgresQueryPool, PostgresReader } from './queryables.js'
import { UNPREPARED, runQuery, runSnapshot, runPostgresTransaction } from './statements.js'
import { ServerHealth } from './server-health.js'
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
/** How long a write may wait for other writes. Each is short, but there may be a thousand. */
const WRITE_QUEUE_TIMEOUT_MS = 30_000
/** Short, because all members of a group wait for a lock that only one of them needs. */
const GROUP_LOCK_TIMEOUT_MS = 250
/** For the statements of a long snapshot, each of which reads a part of a table. */
const LONG_STATEMENT_TIMEOUT_MS = 10 * 60_000

export interface PostgresOptions {
  readonly poolSize: number
  readonly statementTimeoutMs: number
  /** Called for connections that were lost. */
  readonly onConnectionLost?: (error: Error) => void
  /** Called when the database starts to reject writes, and when it accepts them again. */
  readonly onWriteHealthChange?: OnWriteHealthChange
}

export async function openPostgres(url: string, options: PostgresOptions): Promise<Database> {
  const database = new PostgresDatabase(url, options)
  try {
    await database.start()
  } catch (error) {
    await database.close()
    throw error
  }
  return database
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
  readonly #connections: Connections
  readonly #room: DiskRoom
  readonly #server: ServerHealth

  constructor(url: string, options: PostgresOptions) {
    const { poolSize, statementTimeoutMs, onConnectionLost } = options
    this.#connections = new Connections({ url, poolSize, statementTimeoutMs, onLost: onConnectionLost })
    this.#writeHealth = new WriteHealth(options.onWriteHealthChange)
    this.#room = new DiskRoom(this.#writeHealth, (work, timeouts) =>
      this.#withClientOnce('writers', (client) => runPostgresTransaction(client, work, timeouts)),
    )
    this.slots = new Semaphore(this.#connections.writerCount, WRITE_QUEUE_TIMEOUT_MS, createPoolTimeoutError)
    this.#groupCommit = new GroupCommit(this)
    this.reader = new PostgresReader((sql, params) =>
      this.#withClient('readers', async (client) => (await runQuery(client, sql, params)).rows as Row[]),
    )
    // Long queries are not prepared: their texts rarely repeat, and a generic plan suits no value well.
    this.queryPool = new PostgresQueryPool(
      (sql, params) =>
        this.#withClient(
          'queryClients',
          async (client) => (await runQuery(client, sql, params, UNPREPARED)).rows as Row[],
        ),
      (work) => this.#withClient('queryClients', (client) => runSnapshot(client, work)),
      (work) => this.#runLongSnapshot(work),
    )
    this.blobs = new PostgresBlobStore(this.reader)
    this.commits = new PostgresCommitNotifier({
      url,
      run: (sql) => this.#withClient('readers', (client) => runQuery(client, sql, [], UNPREPARED)),
      onConnectionLost,
    })
    this.#server = new ServerHealth({
      url,
      writeHealth: this.#writeHealth,
      replaceConnections: () => {
        this.#connections.replace()
        this.commits.reconnect()
      },
      destroyConnections: () => {
        const createError = () => createUnwritableError('silent')
        const processIds = this.#connections.destroy(createError)
        this.slots.rejectAll(createError)
        this.commits.reconnect()
        return processIds
      },
    })
  }

  async start(): Promise<void> {
    await this.#server.start()
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    return this.#groupCommit.run(work, options)
  }

  requireAdmission(): void {
    this.#writeHealth.requireHealthy(true)
  }

  async runAlone({ work, options: { isLong = false } }: GroupMember): Promise<unknown> {
    const limits = isLong ? { statementMs: MAX_TIMER_MS } : {}
    const run = (client: pg.PoolClient) => runPostgresTransaction(client, work, limits)
    const result = await this.#withClient('writers', run, isLong)
    this.commits.publish()
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
      result = await this.#withClientOnce('writers', run)
    } catch (error) {
      if (error instanceof PostgresFailure && error.isCommitUncertain) throw error.translate()
      return undefined
    }
    this.commits.publish()
    return result
  }

  async writability(): Promise<UnwritableState | undefined> {
    // Not awaited: `/readyz` has little time. A write that waits for a connection tests the room itself.
    if (this.slots.waiting === 0) void this.#room.test()
    return Promise.resolve(this.#writeHealth.unwritable)
  }

  get waiting(): Database['waiting'] {
    return {
      reads: sumWaiting([this.reader.waiting, this.#connections.waitingReads]),
      writes: this.#groupCommit.waiting,
    }
  }

  gauges(): Gauges {
    return {
      connectionsInUse: this.#connections.inUse,
      connectionsAwaited: this.#connections.awaited,
      writesPending: this.slots.pending + this.#groupCommit.pending,
      uploadsPending: this.blobs.countPending(),
    }
  }

  measure: Database['measure'] = async () => Promise.resolve({ groupSizes: this.#groupCommit.sizes })

  async close(): Promise<void> {
    await this.blobs.close()
    const limit = () => sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })
    await Promise.race([this.commits.close(), limit()])
    // A connection that failed while connecting never emits its end.
    await Promise.race([Promise.all([this.#connections.close(), this.#server.close()]), limit()])
  }

  /** Runs the work with a connection of the pool. Retries with another connection if that one was lost before a commit. */
  async #withClient<T>(
    pool: PoolName,
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

  /** On a connection of its own. Never runs the work again. */
  async #runLongSnapshot<T>(work: SnapshotWork<T>): Promise<T> {
    this.#server.requireResponding()
    const run = (client: pg.PoolClient) =>
      runSnapshot(client, work, 'set local idle_in_transaction_session_timeout = 0')
    try {
      return await this.#connections.runAlone(LONG_STATEMENT_TIMEOUT_MS, run)
    } catch (error) {
      throw error instanceof PostgresFailure ? error.translate() : error
    }
  }

  async #withClientOnce<T>(pool: PoolName, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    this.#server.requireResponding()
    try {
      const result = await this.#connections.run(pool, work)
      if (pool === 'writers') this.#room.reportCommit()
      return result
    } catch (error) {
      if (error instanceof PostgresFailure) {
        // A search may lack room for its temporary files only.
        if (error.unwritableKind === 'full') {
          if (pool === 'writers') this.#room.reportFull(error.cause)
        } else if (error.unwritableKind) this.#writeHealth.report(error.unwritableKind, error.cause)
        // Waiting writes would fail one after the other, too.
        if (error.isConnecting && pool === 'writers') this.slots.rejectAll(() => error.translate())
      }
      throw error
    }
  }
}
