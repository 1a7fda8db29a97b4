import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

/** While connections arrive, tasks wait for at most this many turns of the event loop, and this long. */
const MAX_EXTRA_TURNS = 32
const MAX_EXTRA_MS = 5

/** During shutdown, a request that is still arriving gets this much time to arrive in full. */
const SHUTDOWN_ARRIVAL_MS = 2_000

/** The listener closes right after a turn of the event loop that was this short: hardly a connection can have arrived during it. */
const SHORT_TURN_MS = 0.2
/** Some clients never pause between their connections, and the event loop of a busy service has no short turn. */
const MAX_QUIET_WAIT_MS = 1_000
/** The part of that wait that is left for a short turn. */
const MAX_SHORT_TURN_WAIT_MS = 200

/** A client that reads no byte of its response for this long is disconnected. Until then the response occupies memory or disk. */
const CLIENT_STALL_MS = 60_000
/** Number of stall checks within `CLIENT_STALL_MS`. */
const STALL_CHECKS_PER_TIMEOUT = 6

interface ConnectionState {
  /** Number of requests without a finished response. */
  requests: number
  /** Pipelined responses that wait for the connection. Few clients pipeline requests, so the set is created on demand. */
  queued?: Set<ServerResponse>
  /** Bytes read when the last response was finished. If the socket has read more, another request is arriving. */
  bytesRead: number
  /** Closes the connection on a time-out. Set while the client has unread bytes. */
  onStall?: (() => void) | undefined
}

/** Requests that arrived between two calls of `separate`. */
interface RequestCount {
  unanswered: number
  onAnswered?: () => void
}

/**
 * Knows which connections arrive. Tracks which ones have requests in flight, because Node's `closeIdleConnections` is not enough for a
 * graceful shutdown:
 * - it treats a response as sent once it is written, and cuts off bytes that are still buffered;
 * - it never closes a connection that has sent no request yet;
 * - it does not close pipelined responses of a lost connection, so listeners of their `close` event would wait for ever.
 */
export class ConnectionTracker {
  readonly #connections = new Map<Socket, ConnectionState>()
  #count: RequestCount = { unanswered: 0 }
  #isDraining = false
  /** Number of connections so far. */
  #accepted = 0
  #tasks: (() => void)[] = []
  #firstTaskMs = 0
  #extraTurns = 0
  /** Number of connections when tasks last ran or were postponed. */
  #acceptedBefore = 0
  #onEmpty: () => void = () => undefined

  readonly #timer: NodeJS.Timeout

  constructor(
    /** Maximum number of connections of each tracked server. */
    private readonly max: number,
    private readonly stallMs = CLIENT_STALL_MS,
    private readonly maxExtraTurns = MAX_EXTRA_TURNS,
  ) {
    this.#timer = setInterval(() => {
      this.#checkStalled()
    }, stallMs / STALL_CHECKS_PER_TIMEOUT).unref()
  }

  track(server: Server): void {
    server.maxConnections = this.max
    server.on('connection', (socket) => {
      this.#accepted++
      if (this.#isDraining) {
        socket.destroy()
        return
      }
      const state: ConnectionState = { requests: 0, bytesRead: 0 }
      this.#connections.set(socket, state)
      socket.once('close', () => {
        this.#connections.delete(socket)
        closeQueuedResponses(state.queued ?? [])
        if (this.#connections.size === 0) this.#onEmpty()
      })
    })
    server.on('request', ({ socket }, response) => {
      const state = this.#connections.get(socket)
      if (!state) return
      const count = this.#count
      count.unanswered++
      if (state.requests++ > 0) (state.queued ??= new Set()).add(response)
      response.on('close', () => {
        state.requests--
        if (--count.unanswered === 0) count.onAnswered?.()
        state.queued?.delete(response)
        state.bytesRead = socket.bytesRead
        if (this.#isDraining && state.requests === 0) socket.destroySoon()
      })
    })
  }

  /**
   * Runs a task at the end of a turn of the event loop, or some turns later. Node accepts one connection in a turn, and under load a turn
   * takes long: new clients would wait in a queue. So while connections arrive, the task waits for some turns.
   */
  atTurnEnd(task: () => void): void {
    if (this.#tasks.push(task) > 1) return
    this.#firstTaskMs = performance.now()
    setImmediate(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    const hasAccepted = this.#accepted !== this.#acceptedBefore
    this.#acceptedBefore = this.#accepted
    const hasTime = performance.now() - this.#firstTaskMs < MAX_EXTRA_MS
    if (hasAccepted && hasTime && this.#extraTurns < this.maxExtraTurns) {
      this.#extraTurns++
      setImmediate(this.#endTurn)
      return
    }
    this.#extraTurns = 0
    const tasks = this.#tasks
    this.#tasks = []
    for (const task of tasks) runApart(task)
  }

  /** Counts later requests apart. Resolves when all earlier ones have been answered. */
  async separate(): Promise<void> {
    const earlier = this.#count
    this.#count = { unanswered: 0 }
    if (earlier.unanswered > 0)
      await new Promise<void>((resolve) => {
        earlier.onAnswered = resolve
      })
  }

  /**
   * Stops listening. The kernel resets connections that the event loop has not accepted yet. So this first waits until no connection was
   * accepted for `quietMs`, then for one short turn without one: the event loop accepts one in each turn. Resolves with the time right before
   * the listeners closed.
   */
  async stopListening(servers: readonly Server[], quietMs = 0): Promise<number> {
    const deadlineMs = performance.now() + MAX_QUIET_WAIT_MS
    let isQuiet = false
    while (!isQuiet && performance.now() < deadlineMs - MAX_SHORT_TURN_WAIT_MS) {
      const acceptedBefore = this.#accepted
      await sleep(quietMs)
      // Timers run before the event loop accepts a connection.
      await nextTurn()
      isQuiet = this.#accepted === acceptedBefore
    }
    let isShort = false
    while (!isShort && performance.now() < deadlineMs) {
      await nextTurn()
      const [startMs, acceptedBefore] = [performance.now(), this.#accepted]
      await nextTurn()
      isShort = this.#accepted === acceptedBefore && performance.now() - startMs < SHORT_TURN_MS
    }
    const closedAtMs = Date.now()
    // `http.Server.close` would also close idle connections, see above; `net.Server.close` only stops listening.
    for (const server of servers) if (server.listening) NetServer.prototype.close.call(server)
    return closedAtMs
  }

  /**
   * Closes idle connections after the grace, and resolves when all requests in flight have been answered. Requests that arrive during the grace
   * are answered: their clients have sent them before the listener closed.
   */
  async drain(graceMs = 0): Promise<void> {
    if (graceMs > 0) {
      await Promise.race([sleep(graceMs), this.#whenEmpty()])
      // The event loop has just read what has arrived. A socket that closes with unread bytes resets its connection.
      await nextTurn()
    }
    this.#isDraining = true
    this.#closeIdle(false)
    const arrivalTimer = setTimeout(() => {
      this.#closeIdle(true)
    }, SHUTDOWN_ARRIVAL_MS)
    await this.#whenEmpty()
    clearTimeout(arrivalTimer)
    clearInterval(this.#timer)
  }

  async #whenEmpty(): Promise<void> {
    if (this.#connections.size === 0) return
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
  }

  /** Sets the socket time-out while bytes are unread; Node restarts it on every read. Between responses Node's keep-alive time-out applies. */
  #checkStalled(): void {
    for (const [socket, state] of this.#connections) {
      const isWaiting = socket.writableLength > 0
      if (isWaiting === (state.onStall !== undefined)) continue
      if (state.onStall) socket.off('timeout', state.onStall)
      state.onStall = isWaiting ? () => socket.destroy() : undefined
      if (state.onStall) socket.setTimeout(this.stallMs, state.onStall)
      else if (state.requests > 0) socket.setTimeout(0)
    }
  }

  #closeIdle(alsoArriving: boolean): void {
    for (const [socket, { requests, bytesRead }] of this.#connections) {
      const isArriving = socket.bytesRead > bytesRead
      if (requests === 0 && (alsoArriving || !isArriving)) socket.destroy()
    }
  }
}

/** Closes the pipelined responses that were never assigned the socket. Node itself closes the response that holds the socket. */
function closeQueuedResponses(responses: Iterable<ServerResponse>): void {
  for (const response of [...responses]) {
    if (response.socket !== null) continue
    response.destroy()
    response.emit('close')
  }
}

/** An error stops neither the tasks after this one nor later turns. It ends the process, as any error that nothing catches. */
function runApart(task: () => void): void {
  try {
    task()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
