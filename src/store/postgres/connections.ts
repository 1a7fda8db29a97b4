// The connections of a node, which can be replaced while requests use them.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Semaphore } from '../engine/semaphore.js'
import type { WaitingCalls } from '../engine/measures.js'
import { createPoolTimeoutError, PostgresFailure } from './errors.js'

const CONNECT_TIMEOUT_MS = 5_000
export const CLOSE_TIMEOUT_MS = 5_000
export const LOCK_TIMEOUT_MS = 3_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000
/** How long the server keeps the session of a node that has vanished. */
const TCP_IDLE_S = 5
const TCP_INTERVAL_S = 5
const TCP_COUNT = 2
const TCP_USER_TIMEOUT_MS = 15_000

// int8, int2, int4: all integers fit into a double. Other values stay text, and the dialect decodes them.
const NUMBER_TYPE_OIDS = new Set([20, 21, 23])

export type PoolName = 'readers' | 'queryClients' | 'writers'
type Pools = Readonly<Record<PoolName, pg.Pool>>

export interface ConnectionOptions {
  readonly url: string
  readonly poolSize: number
  readonly statementTimeoutMs: number
  /** Called for connections that were lost. */
  readonly onLost?: ((error: Error) => void) | undefined
}

interface PoolOptions {
  /** Sends statements without waiting for the results of earlier ones. */
  readonly pipeline?: boolean
  readonly statementTimeoutMs?: number
}

export class Connections {
  readonly writerCount: number
  readonly #readerCount: number
  #pools: Pools
  /** Waiting here, and not in a pool, lets all waiters be rejected at once. Writers wait for their group commit. */
  readonly #slots: Readonly<Record<Exclude<PoolName, 'writers'>, Semaphore>>
  readonly #clients = new Set<pg.Client>()
  /** Clients that were destroyed on purpose. */
  readonly #destroyed = new WeakSet<pg.ClientBase>()

  constructor(private readonly options: ConnectionOptions) {
    // Separate pools, so that writers that wait for a lock and long queries take no connection from readers.
    this.#readerCount = Math.max(1, Math.floor(options.poolSize / 3))
    this.writerCount = Math.max(1, options.poolSize - 2 * this.#readerCount)
    const newSlots = () => new Semaphore(this.#readerCount, CONNECT_TIMEOUT_MS, createPoolTimeoutError)
    this.#slots = { readers: newSlots(), queryClients: newSlots() }
    this.#pools = this.#openPools()
  }

  get inUse(): number {
    return Object.values(this.#pools).reduce(
      (total, { totalCount, idleCount }) => total + totalCount - idleCount,
      0,
    )
  }

  /** The number of calls that wait for a connection. */
  get awaited(): number {
    return Object.values(this.#slots).reduce((total, slots) => total + slots.waiting, 0)
  }

  /** The calls that wait for a connection for a read. */
  get waitingReads(): WaitingCalls {
    return this.#slots.readers.waitingCalls
  }

  /** Runs the work with a connection of the pool. */
  run<T>(name: PoolName, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const run = () => this.#use(this.#pools[name], work)
    return name === 'writers' ? run() : this.#slots[name].run(run)
  }

  /** Runs the work with a connection of its own, whose statements have another time limit. */
  async runAlone<T>(statementTimeoutMs: number, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const pool = this.#openPool(1, { statementTimeoutMs })
    try {
      return await this.#use(pool, work)
    } finally {
      await Promise.race([pool.end(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })])
    }
  }

  /** Opens new connections for later work. Connections in use are closed after their work. */
  replace(): void {
    const former = this.#pools
    this.#pools = this.#openPools()
    for (const pool of Object.values(former)) pool.end().catch(() => undefined)
  }

  /**
   * Fails all work that uses a connection or waits for one, and opens new connections for later work. Returns the process ids of the sessions
   * on the server.
   */
  destroy(createError: () => unknown): number[] {
    this.replace()
    const clients = [...this.#clients]
    for (const client of clients) {
      this.#destroyed.add(client)
      client.connection.stream.destroy()
    }
    for (const slots of Object.values(this.#slots)) slots.rejectAll(createError)
    return clients.flatMap(({ processID }: pg.Client & { processID?: number | null }) => processID ?? [])
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()))
  }

  async #use<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect().catch((error: unknown) => {
      throw new PostgresFailure(error, 'connecting')
    })
    // The pool does not handle errors of a client in use: without this a restart of the server would end the process.
    const onError = (error: Error) => {
      this.#reportLost(error, client)
    }
    client.on('error', onError)
    let isUsable = true
    try {
      return await work(client)
    } catch (error) {
      isUsable = !(error instanceof PostgresFailure && error.isConnectionUnusable)
      throw error
    } finally {
      client.removeListener('error', onError)
      client.release(!isUsable)
    }
  }

  #reportLost(error: Error, client: pg.ClientBase): void {
    if (!this.#destroyed.has(client)) this.options.onLost?.(error)
  }

  #openPools(): Pools {
    return {
      readers: this.#openPool(this.#readerCount),
      queryClients: this.#openPool(this.#readerCount),
      writers: this.#openPool(this.writerCount, { pipeline: true }),
    }
  }

  #openPool(max: number, options: PoolOptions = {}): pg.Pool {
    const { url } = this.options
    const { pipeline = false, statementTimeoutMs = this.options.statementTimeoutMs } = options
    const pool = new pg.Pool({
      // The types do not know this option.
      pipeline,
      connectionString: url,
      max,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      // Longer than the limit of the server: for a connection that is lost without a sign while the server responds.
      query_timeout: statementTimeoutMs + CONNECT_TIMEOUT_MS,
      keepAlive: true,
      application_name: 'verso',
      types: { getTypeParser: (oid: number) => (NUMBER_TYPE_OIDS.has(oid) ? Number : String) },
      onConnect: (client: pg.ClientBase) => configureConnection(client, statementTimeoutMs),
      Client: createTrackedClient(this.#clients),
    })
    // Without this handler a lost idle connection would end the process.
    pool.on('error', (error, client) => {
      this.#reportLost(error, client)
    })
    return pool
  }
}

/** A class of clients that are in the set from the first attempt to connect until their socket is closed. */
function createTrackedClient(clients: Set<pg.Client>): typeof pg.Client {
  return class TrackedClient extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config)
      clients.add(this)
      this.once('end', () => clients.delete(this))
    }
  }
}

/** The pool awaits the promise, although its types do not say so. */
function configureConnection(client: pg.ClientBase, statementTimeoutMs: number): unknown {
  return client.query(
    `set timezone = 'UTC'; set datestyle = 'ISO'; set statement_timeout = ${statementTimeoutMs};` +
      `set lock_timeout = ${LOCK_TIMEOUT_MS}; set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS};` +
      `set default_transaction_isolation = 'read committed';` +
      `set tcp_keepalives_idle = ${TCP_IDLE_S}; set tcp_keepalives_interval = ${TCP_INTERVAL_S};` +
      `set tcp_keepalives_count = ${TCP_COUNT}; set tcp_user_timeout = ${TCP_USER_TIMEOUT_MS};` +
      // Keeps a stronger setting of the operator.
      `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')`,
  )
}
