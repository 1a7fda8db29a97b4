// Runs long SQLite queries in worker processes, because only a process can be stopped in the middle of a statement.
// See docs/decisions/statement-time.md.
import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Gauges, Queryable, Row, QueryPool, SnapshotWork, SqlValue } from '../engine/database.js'
import { MAX_TIMER_MS } from '../engine/semaphore.js'
import { QueueLimit } from '../engine/queue-limit.js'
import { FunctionQueryable, UnsharedQueryable } from '../engine/unshared.js'
import { createBusyError, createClosedError, translateSqliteError } from './errors.js'
import type { WorkerError, WorkerMode, WorkerRequest, WorkerResponse } from './query-worker.js'

const MAX_WORKERS = 2
const MAX_QUEUED_QUERIES = 1_000
const WORKER_CLOSE_TIMEOUT_MS = 5_000

interface PendingQuery {
  readonly request: WorkerRequest
  readonly queuedAtMs: number
  /** True if the worker stays reserved for the same snapshot afterwards. */
  readonly reservesWorker: boolean
  /** True if the worker was reserved for the same snapshot before. */
  readonly hasReservedWorker: boolean
  readonly resolve: (result: WorkerResult) => void
  readonly reject: (error: unknown) => void
}

interface WorkerResult {
  readonly rows: Row[]
  readonly worker: ChildProcess
}

export interface QueryPoolOptions {
  /** The time limit of a query, including its time in the queue. */
  readonly timeoutMs: number
  /** While queries wait much longer, those that cannot run soon are rejected. 0 or undefined rejects none. */
  readonly maxDelayMs?: number | undefined
  /** The kind of the connections of the workers; `read` by default. */
  readonly mode?: WorkerMode
  /** Called for each error of a statement. */
  readonly onError?: (error: unknown) => void
}

type WorkerState = 'starting' | 'idle' | 'held' | 'ending' | PendingQuery

export class SqliteQueryPool extends UnsharedQueryable implements QueryPool {
  /** In order of arrival. */
  readonly #queue = new Set<PendingQuery>()
  /** Includes killed workers that have not ended yet, so that a hanging disk does not lead to more and more processes. */
  readonly #workers = new Map<ChildProcess, WorkerState>()
  readonly #longSnapshots = new Set<SqliteQueryPool>()
  readonly #limit: QueueLimit | undefined
  #isClosed = false

  constructor(
    private readonly file: string,
    private readonly options: QueryPoolOptions,
  ) {
    super()
    const { maxDelayMs = 0 } = options
    this.#limit = maxDelayMs > 0 ? new QueueLimit(maxDelayMs) : undefined
  }

  async all(sql: string, params: readonly SqlValue[] = []): Promise<Row[]> {
    return (await this.#enqueue({ sql, params }, false)).rows
  }

  /** Runs the work in a read transaction of one reserved worker, one statement after the other. */
  async snapshot<T>(work: SnapshotWork<T>): Promise<T> {
    const { worker } = await this.#enqueue({ sql: 'begin', params: [] }, true)
    let last: Promise<unknown> = Promise.resolve()
    const all: Queryable['all'] = (sql, params = []) => {
      const rows = last.then(async () => (await this.#enqueue({ sql, params }, true, worker)).rows)
      last = rows.catch(() => undefined)
      return rows
    }
    try {
      return await work(new FunctionQueryable(all))
    } finally {
      await last
      // A worker that was killed after a timeout has no transaction to end.
      if (this.#workers.get(worker) === 'held')
        await this.#enqueue({ sql: 'commit', params: [] }, false, worker)
    }
  }

  /** In a worker of its own. */
  async longSnapshot<T>(work: SnapshotWork<T>): Promise<T> {
    if (this.#isClosed) throw createClosedError()
    const pool = new SqliteQueryPool(this.file, { ...this.options, timeoutMs: MAX_TIMER_MS })
    this.#longSnapshots.add(pool)
    try {
      return await pool.snapshot(work)
    } finally {
      this.#longSnapshots.delete(pool)
      await pool.close()
    }
  }

  gauges(): Gauges {
    const isBusy = (state: WorkerState) => state === 'held' || typeof state === 'object'
    return {
      searchesRunning: [...this.#workers.values()].filter(isBusy).length,
      searchesWaiting: this.#queue.size,
    }
  }

  async #enqueue(
    request: WorkerRequest,
    reservesWorker: boolean,
    reserved?: ChildProcess,
  ): Promise<WorkerResult> {
    if (this.#isClosed) throw createClosedError()
    if (!reserved) this.#requireRoom()
    const { timeoutMs } = this.options
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<WorkerResult>((resolve, reject) => {
        const query = {
          ...{ request, queuedAtMs: performance.now() },
          ...{ reservesWorker, hasReservedWorker: reserved !== undefined },
          ...{ resolve, reject },
        }
        timer = setTimeout(() => {
          this.#timeOut(query)
        }, timeoutMs)
        if (reserved) this.#sendToReserved(reserved, query)
        else this.#queue.add(query)
        this.#dispatch()
      })
    } finally {
      clearTimeout(timer)
    }
  }

  /** A query that would wait too long is rejected before any work for it begins. */
  #requireRoom(): void {
    const [first] = this.#queue
    const waiting = { count: this.#queue.size, sinceMs: first?.queuedAtMs ?? Infinity }
    this.#limit?.startTurn(waiting, performance.now())
    if (this.#queue.size >= MAX_QUEUED_QUERIES || this.#limit?.hasRoom() === false)
      throw createBusyError('Too many searches are waiting: retry after the seconds in Retry-After')
    this.#limit?.add()
  }

  #sendToReserved(child: ChildProcess, query: PendingQuery): void {
    if (this.#workers.get(child) === 'held') this.#send(child, query)
    else query.reject(createBusyError('The search was interrupted: retry after the seconds in Retry-After'))
  }

  #send(child: ChildProcess, query: PendingQuery): void {
    this.#workers.set(child, query)
    // If the worker has died, `#handleExit` rejects the query.
    child.send(query.request, () => undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    process.off('exit', this.#killAllWorkers)
    for (const query of this.#queue) query.reject(createClosedError())
    this.#queue.clear()
    await Promise.all([...this.#longSnapshots].map((pool) => pool.close()))
    const ends = [...this.#workers.keys()].map((child) => {
      // Keeps the event loop alive until the worker has ended.
      child.ref()
      return new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
    })
    this.#killAllWorkers()
    // A worker that hangs in a disk driver ends only when the disk responds.
    await Promise.race([Promise.all(ends), sleep(WORKER_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  }

  /** Sends waiting queries to idle workers, and starts a worker if there are too few. */
  #dispatch(): void {
    for (const [child, state] of this.#workers) {
      const [query] = this.#queue
      if (!query) return
      if (state !== 'idle' || !child.connected) continue
      this.#queue.delete(query)
      this.#send(child, query)
    }
    const starting = [...this.#workers.values()].filter((state) => state === 'starting').length
    if (this.#queue.size > starting && this.#workers.size < MAX_WORKERS) this.#startWorker()
  }

  #startWorker(): void {
    try {
      const child = forkWorker(this.file, this.options.mode ?? 'read')
      if (this.#workers.size === 0) process.off('exit', this.#killAllWorkers).on('exit', this.#killAllWorkers)
      this.#workers.set(child, 'starting')
      child.on('message', (response: WorkerResponse) => {
        this.#handleResponse(child, response)
      })
      child.once('exit', () => {
        this.#handleExit(child)
      })
      child.on('error', (error) => {
        this.#handleExit(child, error)
      })
    } catch (error) {
      this.#rejectOldest(error)
    }
  }

  #handleResponse(child: ChildProcess, response: WorkerResponse): void {
    const state = this.#workers.get(child)
    if (state === undefined || state === 'ending') return
    const isReserved =
      typeof state === 'object' &&
      state.reservesWorker &&
      (state.hasReservedWorker || (response !== 'ready' && 'rows' in response))
    this.#workers.set(child, isReserved ? 'held' : 'idle')
    if (typeof state === 'object' && response !== 'ready') {
      if ('rows' in response) state.resolve({ rows: response.rows, worker: child })
      else state.reject(this.#translateAndReport(response.trouble))
    }
    this.#dispatch()
  }

  #translateAndReport(workerError: WorkerError): unknown {
    const error = translateSqliteError(toError(workerError))
    this.options.onError?.(error)
    return error
  }

  /** Kills the workers, so that new ones open the file in its current state. Running queries are rejected. */
  restart(): void {
    for (const [child, state] of this.#workers) {
      if (typeof state === 'object')
        state.reject(createBusyError('The search was interrupted: retry after the seconds in Retry-After'))
      this.#killWorker(child)
    }
  }

  #timeOut(query: PendingQuery): void {
    query.reject(
      createBusyError(
        `The search exceeded its time limit of ${this.options.timeoutMs / 1_000} s (--statement-timeout)`,
      ),
    )
    // If the query waited for a starting worker, that worker continues: with a short limit no worker would ever become ready.
    if (this.#queue.delete(query)) return
    for (const [child, state] of this.#workers) if (state === query) this.#killWorker(child)
  }

  #killWorker(child: ChildProcess): void {
    this.#workers.set(child, 'ending')
    child.kill('SIGKILL')
  }

  readonly #killAllWorkers = (): void => {
    for (const [child, state] of this.#workers) {
      if (typeof state === 'object') state.reject(createClosedError())
      this.#killWorker(child)
    }
  }

  /** The worker has ended, or could not start. */
  #handleExit(child: ChildProcess, cause?: unknown): void {
    const state = this.#workers.get(child)
    if (!this.#workers.delete(child)) return
    if (typeof state === 'object')
      state.reject(
        createBusyError('The search was interrupted: retry after the seconds in Retry-After', cause),
      )
    // If no worker can start, each attempt rejects one query, so that no query is retried forever.
    if (state === 'starting') this.#rejectOldest(cause)
    this.#dispatch()
  }

  #rejectOldest(cause: unknown): void {
    const [query] = this.#queue
    if (!query) return
    this.#queue.delete(query)
    query.reject(
      createBusyError('The search could not be started: retry after the seconds in Retry-After', cause),
    )
  }
}

function forkWorker(file: string, mode: WorkerMode): ChildProcess {
  // When run from the sources (under vitest), use the built worker, because Node 20 cannot load TypeScript.
  const folder = import.meta.url.endsWith('.ts') ? '../../../dist/store/sqlite/' : ''
  const child = fork(new URL(`${folder}query-worker.js`, import.meta.url), [file, mode], {
    execArgv: [],
    // JSON supports neither bytes nor infinity, and a page of records is sent as bytes.
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // An idle worker must not keep the service alive. While a query runs, the timer of its limit does.
  child.unref()
  child.channel?.unref()
  return child
}

function toError({ message, ...codes }: WorkerError): Error {
  return Object.assign(new Error(message), codes)
}
