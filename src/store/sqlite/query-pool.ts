// Searches on SQLite run in processes beside the service, because only a process can be stopped in the middle of a statement.
// See docs/decisions/statement-time.md.
import { fork, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../../errors.js'
import type { Gauges, Queryable, Row, Searcher, SqlValue } from '../engine/database.js'
import { translate } from './errors.js'
import type { Answer, Question, Trouble } from './query-worker.js'

const MAX_PROCESSES = 2
const MAX_WAITING = 1_000
const CLOSE_MS = 5_000

interface Search {
  readonly question: Question
  /** Its process runs nothing for others afterwards. */
  readonly holds: boolean
  /** And has run nothing for others before it. */
  readonly isHeld: boolean
  readonly resolve: (answered: Answered) => void
  readonly reject: (error: unknown) => void
}

interface Answered {
  readonly rows: Row[]
  readonly by: ChildProcess
}

type State = 'starting' | 'idle' | 'held' | 'ending' | Search

export class SqliteSearcher implements Searcher {
  /** In the order of their arrival. */
  readonly #waiting = new Set<Search>()
  /** Also those that have been told to end and have not yet: a disk that hangs must not make them many. */
  readonly #processes = new Map<ChildProcess, State>()
  #isClosed = false

  constructor(
    private readonly file: string,
    private readonly limitMs: number,
    /** Told of each error of a statement. */
    private readonly onError: (error: unknown) => void = () => undefined,
  ) {}

  async all(sql: string, params: readonly SqlValue[] = []): Promise<Row[]> {
    return (await this.#ask({ sql, params }, false)).rows
  }

  /** A read transaction sees what was there at its first statement. */
  async snapshot<T>(work: (db: Queryable) => Promise<T>): Promise<T> {
    const { by } = await this.#ask({ sql: 'begin', params: [] }, true)
    try {
      return await work({
        all: async (sql, params = []) => (await this.#ask({ sql, params }, true, by)).rows,
      })
    } finally {
      // One that was ended, because it took too long, has nothing to finish.
      if (this.#processes.get(by) === 'held') await this.#ask({ sql: 'commit', params: [] }, false, by)
    }
  }

  gauges(): Gauges {
    const isBusy = (state: State) => state === 'held' || typeof state === 'object'
    return {
      searchesRunning: [...this.#processes.values()].filter(isBusy).length,
      searchesWaiting: this.#waiting.size,
    }
  }

  async #ask(question: Question, holds: boolean, held?: ChildProcess): Promise<Answered> {
    if (this.#isClosed) throw busy('The database is closed')
    if (this.#waiting.size >= MAX_WAITING) throw busy('Too many searches are waiting')
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Answered>((resolve, reject) => {
        const search = { question, holds, isHeld: held !== undefined, resolve, reject }
        timer = setTimeout(() => {
          this.#giveUp(search)
        }, this.limitMs)
        if (held) this.#continue(held, search)
        else this.#waiting.add(search)
        this.#proceed()
      })
    } finally {
      clearTimeout(timer)
    }
  }

  #continue(child: ChildProcess, search: Search): void {
    if (this.#processes.get(child) === 'held') this.#send(child, search)
    else search.reject(busy('The search was lost'))
  }

  #send(child: ChildProcess, search: Search): void {
    this.#processes.set(child, search)
    // One that has died meanwhile is noticed by its end.
    child.send(search.question, () => undefined)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    process.off('exit', this.#endAll)
    for (const search of this.#waiting) search.reject(busy('The database is closed'))
    this.#waiting.clear()
    const ends = [...this.#processes.keys()].map((child) => {
      // Somebody waits for it now.
      child.ref()
      return new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
    })
    this.#endAll()
    // One that hangs in the disk's driver does not end before the disk answers.
    await Promise.race([Promise.all(ends), sleep(CLOSE_MS, undefined, { ref: false })])
  }

  /** Hands out what is waiting, as far as there are processes for it. */
  #proceed(): void {
    for (const [child, state] of this.#processes) {
      const [search] = this.#waiting
      if (!search) return
      if (state !== 'idle' || !child.connected) continue
      this.#waiting.delete(search)
      this.#send(child, search)
    }
    const starting = [...this.#processes.values()].filter((state) => state === 'starting').length
    if (this.#waiting.size > starting && this.#processes.size < MAX_PROCESSES) this.#start()
  }

  #start(): void {
    try {
      const child = startProcess(this.file)
      if (this.#processes.size === 0) process.off('exit', this.#endAll).on('exit', this.#endAll)
      this.#processes.set(child, 'starting')
      child.on('message', (answer: Answer) => {
        this.#hear(child, answer)
      })
      child.once('exit', () => {
        this.#lose(child)
      })
      child.on('error', (error) => {
        this.#lose(child, error)
      })
    } catch (error) {
      this.#refuseOldest(error)
    }
  }

  #hear(child: ChildProcess, answer: Answer): void {
    const state = this.#processes.get(child)
    if (state === undefined || state === 'ending') return
    const isHeld =
      typeof state === 'object' && state.holds && (state.isHeld || (answer !== 'ready' && 'rows' in answer))
    this.#processes.set(child, isHeld ? 'held' : 'idle')
    if (typeof state === 'object' && answer !== 'ready') {
      if ('rows' in answer) state.resolve({ rows: answer.rows, by: child })
      else state.reject(this.#translated(answer.trouble))
    }
    this.#proceed()
  }

  #translated(trouble: Trouble): unknown {
    const error = translate(asError(trouble))
    this.onError(error)
    return error
  }

  /** Ends the processes, so that others open the file as it is now. A search that is in one of them is lost. */
  restart(): void {
    for (const [child, state] of this.#processes) {
      if (typeof state === 'object') state.reject(busy('The search was lost'))
      this.#end(child)
    }
  }

  #giveUp(search: Search): void {
    search.reject(busy(`The search took longer than ${this.limitMs / 1_000} s`))
    // One that waited while a process started: that goes on, or with a short limit none would ever be ready.
    if (this.#waiting.delete(search)) return
    for (const [child, state] of this.#processes) if (state === search) this.#end(child)
  }

  #end(child: ChildProcess): void {
    this.#processes.set(child, 'ending')
    child.kill('SIGKILL')
  }

  readonly #endAll = (): void => {
    for (const [child, state] of this.#processes) {
      if (typeof state === 'object') state.reject(busy('The database is closed'))
      this.#end(child)
    }
  }

  /** It has ended, or never began. */
  #lose(child: ChildProcess, cause?: unknown): void {
    const state = this.#processes.get(child)
    if (!this.#processes.delete(child)) return
    if (typeof state === 'object') state.reject(busy('The search was lost', cause))
    // Where no process can be started, each try answers one search: not one is tried without end.
    if (state === 'starting') this.#refuseOldest(cause)
    this.#proceed()
  }

  #refuseOldest(cause: unknown): void {
    const [search] = this.#waiting
    if (!search) return
    this.#waiting.delete(search)
    search.reject(busy('The search could not be started', cause))
  }
}

function startProcess(file: string): ChildProcess {
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

function asError({ message, ...codes }: Trouble): Error {
  return Object.assign(new Error(message), codes)
}

function busy(message: string, cause?: unknown): Refusal {
  return new Refusal('busy', message, { retryAfterS: 1, ...(cause === undefined ? {} : { cause }) })
}
