import { EventEmitter, once } from 'node:events'
import type { Database, Queryable, Searcher } from '../src/store/engine/database.js'

/** A real database that answers later: after a time of its own choice, or when it is released. */
export class HeldDatabase implements Database {
  readonly reader: Queryable
  readonly searcher: Searcher
  readonly #events = new EventEmitter().setMaxListeners(0)
  #isHeld = false
  #asked = 0

  constructor(
    private readonly inner: Database,
    /** How late each statement is; not at all, if absent. */
    private readonly late: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.reader = this.#later(inner.reader)
    this.searcher = {
      ...this.#later(inner.searcher),
      snapshot: (work) => this.#answer(() => inner.searcher.snapshot((db) => work(this.#later(db)))),
    }
  }

  get dialect(): Database['dialect'] {
    return this.inner.dialect
  }

  get contents(): Database['contents'] {
    return this.inner.contents
  }

  get commits(): Database['commits'] {
    return this.inner.commits
  }

  gauges: NonNullable<Database['gauges']> = () => ({ ...this.inner.gauges?.(), questionsAsked: this.#asked })

  transaction: Database['transaction'] = (work, options) =>
    this.#answer(() => this.inner.transaction(work, options))

  writability: Database['writability'] = () => this.inner.writability()

  async close(): Promise<void> {
    await this.inner.close()
  }

  /** Nothing is answered from here on; answers when something is asked. */
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

  #later(queryable: Queryable): Queryable {
    const [together, atOnce] = [queryable.together?.bind(queryable), queryable.atOnce?.bind(queryable)]
    const inOneMoment = queryable.inOneMoment?.bind(queryable)
    return {
      all: (sql, params) => this.#answer(() => queryable.all(sql, params)),
      ...(together && { together }),
      ...(inOneMoment && { inOneMoment }),
      ...(atOnce && { atOnce: (work) => this.#answer(() => atOnce(work)) }),
    }
  }
}
