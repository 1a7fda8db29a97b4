// Searches on SQLite run in processes beside the service, because only a process can be stopped in the middle of a statement.
// See docs/decisions/statement-time.md.
import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { VersoError } from '../../errors.js'
import type { Gauges, Queryable, Row, QueryPool, SqlValue } from '../engine/database.js'
import { translateSqliteError } from './errors.js'
import type { WorkerResponse, WorkerRequest, WorkerError } from './query-worker.js'

const MAX_WORKERS = 2
const MAX_QUEUED_QUERIES = 1_000
const WORKER_CLOSE_TIMEOUT_MS = 5_000

interface PendingQuery {
  readonly request: WorkerRequest
  /** Its process runs nothing for others afterwards. */
  readonly reservesWorker: boolean
  /** And has run nothing for others before it. */
  readonly hasReservedWorker: boolean
  readonly resolve: (answered: WorkerResult) => void
  readonly reject: (error: unknown) => void
}

interface WorkerResult {
  readonly rows: Row[]
  readonly worker: ChildProcess
}

type WorkerState = 'starting' | 'idle' | 'held' | 'ending' | PendingQuery

export class SqliteQueryPool implements QueryPool {
  /** In the order of their arrival. */
  readonly #queue = new Set<PendingQuery>()
  /** Also those that have been told to end and have not yet: a disk that hangs must not make them many. */
  readonly #workers = new Map<ChildProcess, WorkerState>()
  #isClosed = false

  constructor(
    private readonly file: string,
    private readonly timeoutMs: number,
    /** Told of each error of a statement. */
    private readonly onError: (error: unknown) => void = () => undefined,
  ) {}

  async all(sql: string, params: readonly SqlValue[] = []): Promise<Row[]> {
    return (await this.#enqueue({ sql, params }, false)).rows
  }

  /** A read transaction sees what was there at its first statement. */
  async snapshot<T>(work: (db: Queryable) => Promise<T>): Promise<T> {
    const { worker } = await this.#enqueue({ sql: 'begin', params: [] }, true)
    try {
      return await work({
        all: async (sql, params = []) => (await this.#enqueue({ sql, params }, true, worker)).rows,
      })
    } finally {
      // One that was ended, because it took too long, has nothing to finish.
      if (this.#workers.get(worker) === 'held')
        await this.#enqueue({ sql: 'commit', params: [] }, false, worker)
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
    held?: ChildProcess,
  ): Promise<WorkerResult> {
    if (this.#isClosed) throw createBusyError('The database is closed')
    if (this.#queue.size >= MAX_QUEUED_QUERIES) throw createBusyError('Too many searches are waiting')
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<WorkerResult>((resolve, reject) => {
        const search = { request, reservesWorker, hasReservedWorker: held !== undefined, resolve, reject }
        timer = setTimeout(() => {
          this.#timeOut(search)
        }, this.timeoutMs)
        if (held) this.#sendToReserved(held, search)
        else this.#queue.add(search)
        this.#dispatch()
      })
    } finally {
      clearTimeout(timer)
    }
  }

  #sendToReserved(child: ChildProcess, search: PendingQuery): void {
    if (this.#workers.get(child) === 'held') this.#send(child, search)
    else search.reject(createBusyError('The search was lost'))
  }

  #send(child: ChildProcess, search: PendingQuery): void {
    this.#workers.set(child, search)
    // One that has died meanwhile is noticed by its end.
    child.send(search.request, () => undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    process.off('exit', this.#killAllWorkers)
    for (const search of this.#queue) search.reject(createBusyError('The database is closed'))
    this.#queue.clear()
    const ends = [...this.#workers.keys()].map((child) => {
      // Somebody waits for it now.
      child.ref()
      return new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
    })
    this.#killAllWorkers()
    // One that hangs in the disk's driver does not end before the disk answers.
    await Promise.race([Promise.all(ends), sleep(WORKER_CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  }

  /** Hands out what is waiting, as far as there are processes for it. */
  #dispatch(): void {
    for (const [child, state] of this.#workers) {
      const [search] = this.#queue
      if (!search) return
      if (state !== 'idle' || !child.connected) continue
      this.#queue.delete(search)
      this.#send(child, search)
    }
    const starting = [...this.#workers.values()].filter((state) => state === 'starting').length
    if (this.#queue.size > starting && this.#workers.size < MAX_WORKERS) this.#startWorker()
  }

  #startWorker(): void {
    try {
      const child = forkWorker(this.file)
      if (this.#workers.size === 0) process.off('exit', this.#killAllWorkers).on('exit', this.#killAllWorkers)
      this.#workers.set(child, 'starting')
      child.on('message', (answer: WorkerResponse) => {
        this.#handleResponse(child, answer)
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

  #handleResponse(child: ChildProcess, answer: WorkerResponse): void {
    const state = this.#workers.get(child)
    if (state === undefined || state === 'ending') return
    const isHeld =
      typeof state === 'object' &&
      state.reservesWorker &&
      (state.hasReservedWorker || (answer !== 'ready' && 'rows' in answer))
    this.#workers.set(child, isHeld ? 'held' : 'idle')
    if (typeof state === 'object' && answer !== 'ready') {
      if ('rows' in answer) state.resolve({ rows: answer.rows, worker: child })
      else state.reject(this.#translateAndReport(answer.trouble))
    }
    this.#dispatch()
  }

  #translateAndReport(trouble: WorkerError): unknown {
    const error = translateSqliteError(toError(trouble))
    this.onError(error)
    return error
  }

  /** Ends the processes, so that others open the file as it is now. A search that is in one of them is lost. */
  restart(): void {
    for (const [child, state] of this.#workers) {
      if (typeof state === 'object') state.reject(createBusyError('The search was lost'))
      this.#killWorker(child)
    }
  }

  #timeOut(search: PendingQuery): void {
    search.reject(createBusyError(`The search took longer than ${this.timeoutMs / 1_000} s`))
    // One that waited while a process started: that goes on, or with a short limit none would ever be ready.
    if (this.#queue.delete(search)) return
    for (const [child, state] of this.#workers) if (state === search) this.#killWorker(child)
  }

  #killWorker(child: ChildProcess): void {
    this.#workers.set(child, 'ending')
    child.kill('SIGKILL')
  }

  readonly #killAllWorkers = (): void => {
    for (const [child, state] of this.#workers) {
      if (typeof state === 'object') state.reject(createBusyError('The database is closed'))
      this.#killWorker(child)
    }
  }

  /** It has ended, or never began. */
  #handleExit(child: ChildProcess, cause?: unknown): void {
    const state = this.#workers.get(child)
    if (!this.#workers.delete(child)) return
    if (typeof state === 'object') state.reject(createBusyError('The search was lost', cause))
    // Where no process can be started, each try answers one search: not one is tried without end.
    if (state === 'starting') this.#rejectOldest(cause)
    this.#dispatch()
  }

  #rejectOldest(cause: unknown): void {
    const [search] = this.#queue
    if (!search) return
    this.#queue.delete(search)
    search.reject(createBusyError('The search could not be started', cause))
  }
}

function forkWorker(file: string): ChildProcess {
  // From the sources, under vitest for one: Node 20 loads no TypeScript, so it is what was built of them.
  const folder = import.meta.url.endsWith('.ts') ? '../../../dist/store/sqlite/' : ''
  const child = fork(new URL(`${folder}query-worker.js`, import.meta.url), [file], {
    execArgv: [],
    // JSON has no bytes and no infinity; a page of records crosses as bytes.
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // Idle, it must not keep the service from ending; while somebody waits, the timer of the limit does.
  child.unref()
  child.channel?.unref()
  return child
}

function toError({ message, ...codes }: WorkerError): Error {
  return Object.assign(new Error(message), codes)
}

function createBusyError(message: string, cause?: unknown): VersoError {
  return new VersoError('busy', message, { retryAfterS: 1, ...(cause === undefined ? {} : { cause }) })
}
