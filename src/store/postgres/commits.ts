import pg from 'pg'
import { CommitListeners } from '../engine/commit-listeners.js'

const CHANNEL = 'verso_commit'
/** Commits within this time are told of together. */
const TOGETHER_MS = 15
/** What a lost connection did not tell is looked for: nobody waits longer. */
const LOOK_EVERY_MS = 1_000

export interface PostgresCommitsOptions {
  readonly url: string
  /** Runs one statement on any connection. */
  readonly run: (sql: string) => Promise<unknown>
  readonly onLost?: ((error: Error) => void) | undefined
}

/**
 * Commits of all nodes, by NOTIFY. It is sent after the commit and not in the transaction, where it would be one more lock for all
 * writers; a node that ends between the two leaves a commit untold, and so everybody who listens looks by themselves now and then.
 */
export class PostgresCommits extends CommitListeners {
  #pending: NodeJS.Timeout | undefined
  #timer: NodeJS.Timeout | undefined
  #listening: pg.Client | undefined
  #isClosed = false

  constructor(private readonly options: PostgresCommitsOptions) {
    super()
  }

  announce(): void {
    if (this.#pending || this.#isClosed) return
    this.tell()
    this.#pending = setTimeout(() => {
      this.#pending = undefined
      void this.#notify()
    }, TOGETHER_MS)
  }

  protected startHearing(): void {
    void this.#connect()
    this.#timer = setInterval(() => {
      if (!this.#listening) void this.#connect()
      this.tell()
    }, LOOK_EVERY_MS)
    this.#timer.unref()
  }

  protected stopHearing(): void {
    clearInterval(this.#timer)
    void this.#disconnect()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    if (this.#pending) {
      clearTimeout(this.#pending)
      await this.#notify()
    }
    await this.#disconnect()
  }

  async #notify(): Promise<void> {
    this.tell()
    await this.options.run(`notify ${CHANNEL}`).catch(() => undefined)
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.options.url,
      application_name: 'verso',
      keepAlive: true,
      connectionTimeoutMillis: LOOK_EVERY_MS,
    })
    this.#listening = client
    const forget = () => {
      if (this.#listening === client) this.#listening = undefined
    }
    client.on('error', (error) => {
      forget()
      this.options.onLost?.(error)
    })
    client.on('end', forget)
    client.on('notification', () => {
      this.tell()
    })
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      this.tell()
    } catch {
      forget()
      await client.end().catch(() => undefined)
    }
  }

  async #disconnect(): Promise<void> {
    const client = this.#listening
    this.#listening = undefined
    await client?.end().catch(() => undefined)
  }
}
