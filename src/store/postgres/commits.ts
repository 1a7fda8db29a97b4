import pg from 'pg'
import { CommitNotifier } from '../engine/commit-listeners.js'

const COMMIT_CHANNEL = 'verso_commit'
/** Commits within this time are told of together. */
const NOTIFY_DELAY_MS = 15
/** What a lost connection did not tell is looked for: nobody waits longer. */
const FALLBACK_POLL_MS = 1_000

export interface PostgresCommitNotifierOptions {
  readonly url: string
  /** Runs one statement on any connection. */
  readonly run: (sql: string) => Promise<unknown>
  readonly onConnectionLost?: ((error: Error) => void) | undefined
}

/**
 * Commits of all nodes, by NOTIFY. It is sent after the commit and not in the transaction, where it would be one more lock for all
 * writers; a node that ends between the two leaves a commit untold, and so everybody who listens looks by themselves now and then.
 */
export class PostgresCommitNotifier extends CommitNotifier {
  #notifyTimer: NodeJS.Timeout | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #client: pg.Client | undefined
  #isClosed = false

  constructor(private readonly options: PostgresCommitNotifierOptions) {
    super()
  }

  publish(): void {
    if (this.#notifyTimer || this.#isClosed) return
    this.emit()
    this.#notifyTimer = setTimeout(() => {
      this.#notifyTimer = undefined
      void this.#notify()
    }, NOTIFY_DELAY_MS)
  }

  protected startListening(): void {
    void this.#connect()
    this.#pollTimer = setInterval(() => {
      if (!this.#client) void this.#connect()
      this.emit()
    }, FALLBACK_POLL_MS)
    this.#pollTimer.unref()
  }

  protected stopListening(): void {
    clearInterval(this.#pollTimer)
    void this.#disconnect()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#pollTimer)
    if (this.#notifyTimer) {
      clearTimeout(this.#notifyTimer)
      await this.#notify()
    }
    await this.#disconnect()
  }

  async #notify(): Promise<void> {
    this.emit()
    await this.options.run(`notify ${COMMIT_CHANNEL}`).catch(() => undefined)
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.options.url,
      application_name: 'verso',
      keepAlive: true,
      connectionTimeoutMillis: FALLBACK_POLL_MS,
    })
    this.#client = client
    const forget = () => {
      if (this.#client === client) this.#client = undefined
    }
    client.on('error', (error) => {
      forget()
      this.options.onConnectionLost?.(error)
    })
    client.on('end', forget)
    client.on('notification', () => {
      this.emit()
    })
    try {
      await client.connect()
      await client.query(`listen ${COMMIT_CHANNEL}`)
      this.emit()
    } catch {
      forget()
      await client.end().catch(() => undefined)
    }
  }

  async #disconnect(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }
}
