import { EventEmitter, once } from 'node:events'
import type { Database, Queryable, QueryPool, Reader } from '../src/store/engine/database.js'
import { changedReader, queryPoolOf, unshared } from './queryables.js'

/** A real database that answers after a delay, or when it is released. */
export class HeldDatabase implements Database {
  readonly reader: Reader
  readonly queryPool: QueryPool
  readonly #events = new EventEmitter().setMaxListeners(0)
  #isHeld = false
  #asked = 0

  constructor(
    private readonly inner: Database,
    /** The delay of each statement; none by default. */
    private readonly late: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.reader = this.#laterReader(inner.reader)
    this.queryPool = queryPoolOf(this.#later(inner.queryPool), (work) =>
      this.#answer(() => inner.queryPool.snapshot((db) => work(unshared({ all: this.#later(db) })))),
    )
  }

  get dialect(): Database['dialect'] {
    return this.inner.dialect
  }

  get blobs(): Database['blobs'] {
    return this.inner.blobs
  }

  get commits(): Database['commits'] {
    return this.inner.commits
  }

  gauges: Database['gauges'] = () => ({ ...this.inner.gauges(), questionsAsked: this.#asked })

  measure: Database['measure'] = () => this.inner.measure()

  transaction: Database['transaction'] = (work, options) =>
    this.#answer(() => this.inner.transaction(work, options))

  writability: Database['writability'] = () => this.inner.writability()

  async close(): Promise<void> {
    await this.inner.close()
  }

  /** Holds all answers from now on. Resolves at the first statement. */
  async hold(): Promise<void> {
    this.#isHeld = true
    await once(this.#events, 'asked')
  }

  release(): void {
    this.#isHeld = false
    this.#events.emit('released')
  }

  async #answer<T>(ask: () => Promise<T>): Promise<T> {
    this.#asked++
    try {
      await this.late()
      if (this.#isHeld) {
        this.#events.emit('asked')
        await once(this.#events, 'released')
      }
      return await ask()
    } finally {
      this.#asked--
    }
  }

  #later(queryable: Queryable): Queryable['all'] {
    return (sql, params) => this.#answer(() => queryable.all(sql, params))
  }

  #laterReader(reader: Reader): Reader {
    return {
      ...changedReader(reader, this.#later(reader)),
      readInSnapshot: (work, otherwise) => this.#answer(() => reader.readInSnapshot(work, otherwise)),
    }
  }
}
