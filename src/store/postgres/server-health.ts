// Acts on the answers of the watchdog: replaces connections and rejects requests if the server is silent, was replaced, or is read-only.
import type pg from 'pg'
import { createUnwritableError, type WriteHealth } from '../engine/write-health.js'
import { TOO_MANY_CONNECTIONS } from './errors.js'
import { refuseTransactionPooler } from './transaction-pooler.js'
import { Watchdog, type ServerAnswer } from './watchdog.js'

/** Ends the sessions whose connections were destroyed, which may hold locks. A later session with the same process id is another one. */
const END_SESSIONS = `select pg_terminate_backend(pid) from pg_stat_activity where pid = any($1::int[])
  and datname = current_database() and usename = current_user and backend_start < to_timestamp($2::float8 / 1000)`

export interface ServerHealthOptions {
  readonly url: string
  readonly writeHealth: WriteHealth
  /** Lets later requests use new connections. */
  readonly replaceConnections: () => void
  /** Also fails the requests that use a connection or wait for one. Returns the process ids of the sessions. */
  readonly destroyConnections: () => readonly number[]
}

interface AbandonedSessions {
  readonly processIds: readonly number[]
  /** When their connections were destroyed. */
  readonly atMs: number
}

export class ServerHealth {
  readonly #watchdog: Watchdog
  #last: ServerAnswer | undefined
  #abandoned: AbandonedSessions | undefined

  constructor(private readonly options: ServerHealthOptions) {
    this.#watchdog = new Watchdog({
      url: options.url,
      onAnswer: (answer) => {
        this.#handleAnswer(answer)
      },
      onRefused: (error) => {
        this.#handleRefusal(error)
      },
      onSilence: () => {
        this.#abandoned = { processIds: options.destroyConnections(), atMs: performance.now() }
        options.writeHealth.report('silent')
      },
      needsNewConnection: () =>
        options.writeHealth.unwritable?.kind === 'read-only' ||
        options.writeHealth.unwritable?.kind === 'no-connections',
    })
  }

  /** Rejects a connection through a pooler that the service cannot use. Requests report any other problem. */
  async start(): Promise<void> {
    const answer = await this.#watchdog.start().catch(() => undefined)
    if (answer?.isThroughPooler) await refuseTransactionPooler(this.options.url)
  }

  /** Rejects a request that would wait in vain. */
  requireResponding(): void {
    if (this.#watchdog.isSilent) throw createUnwritableError('silent')
  }

  async close(): Promise<void> {
    await this.#watchdog.close()
  }

  #handleAnswer(answer: ServerAnswer): void {
    const { writeHealth, destroyConnections, replaceConnections } = this.options
    const last = this.#last
    this.#last = answer
    // Connections to the former server may be read-only, or lost without a sign.
    if (last && last.startedAt !== answer.startedAt) destroyConnections()
    else if (this.#abandoned) this.#endSessions(answer, this.#abandoned)
    this.#abandoned = undefined
    const kind = writeHealth.unwritable?.kind
    if (kind === 'silent') writeHealth.clear(kind)
    if (answer.isReadOnly) writeHealth.report('read-only')
    else if (answer.isFirst && kind === 'read-only') {
      replaceConnections()
      writeHealth.clear(kind)
    } else if (answer.isFirst && kind === 'no-connections') writeHealth.clear(kind)
  }

  #endSessions({ serverMs, receivedAtMs }: ServerAnswer, { processIds, atMs }: AbandonedSessions): void {
    const values = [processIds, serverMs - (receivedAtMs - atMs)]
    // If this statement fails, the server ends them later, when it notices that their connections are closed.
    this.#watchdog.run(END_SESSIONS, values).catch(() => undefined)
  }

  #handleRefusal(error: pg.DatabaseError): void {
    if (error.code !== TOO_MANY_CONNECTIONS) return
    this.options.writeHealth.clear('silent')
    this.options.writeHealth.report('no-connections', error)
  }
}
