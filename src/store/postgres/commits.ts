import pg from 'pg'
import { CommitNotifier } from '../engine/commit-notifier.js'

const COMMIT_CHANNEL = 'verso_commit'
/** Commits within this time share one NOTIFY. */
const NOTIFY_DELAY_MS = 15
/** Listeners are called at least this often, in case a connection or a node was lost. */
const FALLBACK_POLL_MS = 1_000

export interface PostgresCommitNotifierOptions {
  readonly url: string
  /** Runs one statement on any connection. */
  readonly run: (sql: string) => Promise<unknown>
  readonly onConnectionLost?: ((error: Error) => void) | undefined
}

/**
 * Signals commits of all nodes with NOTIFY. It is sent after the commit, because inside the transaction it would take a lock that all writers
 * share. A node that crashes between the two sends nothing, so listeners also poll.
 */
export class PostgresCommitNotifier extends CommitNotifier {
  #notifyTimer: NodeJS.Timeout | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #client: pg.Client | undefined
  #isClosed = false

  constructor(private readonly options: PostgresCommitNotifierOptions) {
    super()
  }

  override publish(): void {
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

  /** Closes a connection that may lead to a server that was replaced, or that is lost. The timer opens another one. */
  reconnect(): void {
    const client = this.#client
    this.#client = undefined
    client?.connection.stream.destroy()
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
      if (this.#client === client) this.options.onConnectionLost?.(error)
      forget()
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
