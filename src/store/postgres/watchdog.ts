// Asks the server once a second whether it responds and accepts writes. All requests depend on the answers, so no request has to find out.
import { Socket } from 'node:net'
import pg from 'pg'
import { isSqlError, TOO_MANY_CONNECTIONS } from './errors.js'

const TICK_MS = 500
/** A connection that answers is asked this often. */
const PROBE_TICKS = 2
/** An answer that takes longer may be lost with its connection, so a new connection is asked, too. */
const OVERDUE_TICKS = 4
/**
 * The server is silent after 3 to 3.5 s without an answer. Ticks are counted, not time: a process that was stopped, or whose event loop was
 * blocked, has to read the answers that have arrived before it judges the server.
 */
const SILENT_TICKS = 7

const PROBE = `select current_setting('transaction_read_only') = 'on' as "isReadOnly", pg_backend_pid() as "processId",
  extract(epoch from pg_postmaster_start_time())::text as "startedAt",
  (extract(epoch from clock_timestamp()) * 1000)::float8 as "serverMs"`

interface ProbeRow {
  readonly isReadOnly: boolean
  readonly processId: number
  /** Differs between servers, and after a restart. */
  readonly startedAt: string
  readonly serverMs: number
}

export interface ServerAnswer extends ProbeRow {
  /** The time of `performance.now()`. */
  readonly receivedAtMs: number
  /** True for the first answer on a connection. */
  readonly isFirst: boolean
  /** True if something between the service and the server has named another process than the server. */
  readonly isThroughPooler: boolean
}

export interface WatchdogOptions {
  readonly url: string
  readonly onAnswer: (answer: ServerAnswer) => void
  /** The server rejected a connection. */
  readonly onRefused: (error: pg.DatabaseError) => void
  readonly onSilence: () => void
  /** True while only a new connection can show that the server has recovered. */
  readonly needsNewConnection: () => boolean
}

export class Watchdog {
  /** True from the moment when the server counts as silent until it answers. */
  isSilent = false
  #ticksWithoutAnswer = 0
  /** The connection that was the last one to answer for the first time. */
  #client: pg.Client | undefined
  #isAsking = false
  /** Connections without an answer, the oldest first, with their age in ticks. */
  readonly #attempts = new Map<pg.Client, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly options: WatchdogOptions) {}

  /** Resolves after the first answer. Rejects if the first connection fails; the watchdog continues. */
  async start(): Promise<ServerAnswer> {
    this.#timer = setInterval(() => {
      this.#tick()
    }, TICK_MS)
    this.#timer.unref()
    return this.#connect()
  }

  /** Runs a statement on the connection that answered last. */
  async run(sql: string, values: unknown[]): Promise<void> {
    await this.#client?.query(sql, values)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    for (const client of this.#attempts.keys()) this.#destroy(client)
    const client = this.#client
    this.#client = undefined
    if (client?.connection.stream instanceof Socket) client.connection.stream.ref()
    await client?.end()
  }

  #tick(): void {
    this.#ticksWithoutAnswer++
    for (const [client, age] of [...this.#attempts]) {
      if (age >= SILENT_TICKS) this.#destroy(client)
      else this.#attempts.set(client, age + 1)
    }
    if (this.#ticksWithoutAnswer >= SILENT_TICKS) this.#declareSilence()
    if (this.#ticksWithoutAnswer >= PROBE_TICKS) this.#probe()
    if ((!this.#client || this.#ticksWithoutAnswer >= OVERDUE_TICKS) && !this.#hasRecentAttempt())
      this.#reconnect()
  }

  /** True if the server has accepted a connection but not answered yet. A server that was stopped has to serve each one when it continues. */
  #hasRecentAttempt(): boolean {
    return [...this.#attempts].some(
      ([{ connection }, age]) =>
        age < PROBE_TICKS && connection.stream instanceof Socket && !connection.stream.connecting,
    )
  }

  #probe(): void {
    if (this.options.needsNewConnection() && this.#attempts.size === 0) this.#reconnect()
    if (!this.#client || this.#isAsking) return
    this.#isAsking = true
    const client = this.#client
    this.#ask(client, false).catch(() => {
      this.#destroy(client)
    })
  }

  #reconnect(): void {
    this.#connect().catch(() => undefined)
  }

  async #connect(): Promise<ServerAnswer> {
    const client = new pg.Client({
      connectionString: this.options.url,
      application_name: 'verso',
      keepAlive: true,
    })
    this.#attempts.set(client, 0)
    const forget = () => {
      this.#forget(client)
    }
    client.on('error', forget)
    client.on('end', forget)
    try {
      await client.connect()
      return await this.#ask(client, true)
    } catch (error) {
      this.#destroy(client)
      if (isSqlError(error)) {
        this.#ticksWithoutAnswer = 0
        if (error.code === TOO_MANY_CONNECTIONS) this.isSilent = false
        this.options.onRefused(error)
      }
      throw error
    }
  }

  async #ask(client: pg.Client, isFirst: boolean): Promise<ServerAnswer> {
    const { rows } = await client.query<ProbeRow>(PROBE)
    const [row] = rows
    if (!row) throw new Error('the probe returned no row')
    const { processID }: pg.Client & { processID?: number | null } = client
    const isThroughPooler = processID !== row.processId
    const answer = { ...row, isFirst, isThroughPooler, receivedAtMs: performance.now() }
    if (isFirst) this.#adopt(client)
    else this.#isAsking = false
    this.#ticksWithoutAnswer = 0
    this.isSilent = false
    this.options.onAnswer(answer)
    return answer
  }

  #adopt(client: pg.Client): void {
    // An older attempt may lead to a server that was replaced.
    for (const older of [...this.#attempts.keys()]) {
      if (older === client) break
      this.#destroy(older)
    }
    this.#attempts.delete(client)
    const former = this.#client
    this.#client = client
    this.#isAsking = false
    // A process that has nothing else to do may end.
    if (client.connection.stream instanceof Socket) client.connection.stream.unref()
    if (former) former.end().catch(() => undefined)
  }

  #declareSilence(): void {
    if (this.isSilent) return
    this.isSilent = true
    if (this.#client) this.#destroy(this.#client)
    this.options.onSilence()
  }

  #destroy(client: pg.Client): void {
    this.#forget(client)
    client.connection.stream.destroy()
  }

  #forget(client: pg.Client): void {
    this.#attempts.delete(client)
    if (this.#client !== client) return
    this.#client = undefined
    this.#isAsking = false
  }
}
