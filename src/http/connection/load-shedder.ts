// Decides which requests an overloaded node refuses, before any work for them begins. The others are then answered soon, and almost as many
// of them as without overload.

/** A garbage collection, one large request or a burst of small ones is no overload. */
const MIN_SLOW_TURNS = 3
const MIN_SLOW_MS = 200
/** While the event loop waits for more than this part of the time, no request waits for it for long. */
const MAX_IDLE_SHARE = 0.1
/** Under overload, the accepted requests of a turn take this part of the maximum delay: each waits for one or two turns. With
 * a smaller part there are more turns, and each turn with writes costs a commit. */
const WORK_PER_TURN = 0.08
/** Fewer requests in a turn are never too many: each of them may be a long one. */
const MIN_REQUESTS = 8
/** Responses take at least this part of the time of refusals, so that clients that repeat refused requests at once do not stop all work. */
const MIN_WORK_PER_REFUSALS = 0.25
/** How far one turn moves the estimates of the costs: a turn may have been slow for other reasons. */
const LEARNING_RATE = 0.2
const REFUSAL_LEARNING_RATE = 0.01
/** A refusal takes so many times the time of its write, because Node also reads the request and frees its memory. */
const REFUSAL_PARTS = { min: 1, first: 2, max: 3.5 }
const MIN_COST_MS = 0.01
/** After this time without a refused request the overload is over. */
const CALM_MS = 1_000

/** The clock of the event loop: its time, and the part of it that it spent waiting for events. */
export interface LoopTimes {
  readonly nowMs: number
  readonly idleMs: number
}

/**
 * Requests that arrive while a turn of the event loop handles others wait for the next turn. So requests wait as long as a turn takes. While turns take
 * longer than the maximum, each of them accepts a limited number of requests. The limit comes from what a request costs, and not from the
 * length of the turn: most of a turn may be refusals, and a lower limit would cause more of them.
 */
export class LoadShedder {
  #isOverloaded = false
  #costMs = 0
  #refusalParts = REFUSAL_PARTS.first
  /** The time that it takes to write a refusal. */
  #refusalMs = 0
  #limit = Infinity
  /** Of the requests that have arrived since the last turn. */
  #accepted = 0
  #refused = 0
  /** The number of requests that were accepted before them, and were handled meanwhile. */
  #handled = 0
  #slow = { turns: 0, ms: 0, requests: 0 }
  #lastRefusedMs = 0
  #turn: LoopTimes | undefined

  constructor(
    private readonly maxDelayMs: number,
    private readonly readTimes: () => LoopTimes = readLoopTimes,
  ) {}

  /** Call it when all requests of a turn have arrived, before those that were accepted are handled. */
  startTurn(): void {
    const turn = this.readTimes()
    if (this.#turn) {
      const busyMs = turn.nowMs - this.#turn.nowMs - (turn.idleMs - this.#turn.idleMs)
      if (this.#isOverloaded) this.#learn(busyMs, turn.nowMs)
      else this.#watch(busyMs, { elapsedMs: turn.nowMs - this.#turn.nowMs, nowMs: turn.nowMs })
    }
    this.#turn = turn
    const count = this.#accepted + this.#refused
    this.#handled = this.#accepted
    this.#accepted = 0
    this.#refused = 0
    this.#limit = this.#isOverloaded ? this.#computeLimit(count) : Infinity
  }

  /** Accepts a request that has arrived, or refuses it. */
  accepts(): boolean {
    if (this.#isOverloaded && this.#accepted + this.#refused === 0) this.#endAfterPause()
    if (this.#accepted < this.#limit) {
      this.#accepted++
      return true
    }
    this.#refused++
    return false
  }

  /** Call it after each refusal, with the time that it took. */
  addRefusalTime(ms: number): void {
    this.#refusalMs =
      this.#refusalMs === 0 ? ms : this.#refusalMs + REFUSAL_LEARNING_RATE * (ms - this.#refusalMs)
  }

  /** The limit comes from the last turn with requests. The event loop may have waited for a long time since then. */
  #endAfterPause(): void {
    if (this.readTimes().idleMs - (this.#turn?.idleMs ?? 0) <= CALM_MS) return
    this.#isOverloaded = false
    this.#limit = Infinity
  }

  /** Between two turns with requests, the event loop may have had many short ones. */
  #watch(busyMs: number, { elapsedMs, nowMs }: { readonly elapsedMs: number; readonly nowMs: number }): void {
    if (busyMs <= this.maxDelayMs || busyMs < elapsedMs * (1 - MAX_IDLE_SHARE)) {
      this.#slow = { turns: 0, ms: 0, requests: 0 }
      return
    }
    this.#slow.turns++
    this.#slow.ms += busyMs
    this.#slow.requests += this.#handled
    if (this.#slow.turns < MIN_SLOW_TURNS || this.#slow.ms < MIN_SLOW_MS) return
    this.#isOverloaded = true
    this.#lastRefusedMs = nowMs
    this.#costMs = this.#slow.ms / Math.max(1, this.#slow.requests)
    this.#slow = { turns: 0, ms: 0, requests: 0 }
  }

  /** Divides the error of the estimated time of the turn by the parts that accepted and refused requests have in it. */
  #learn(busyMs: number, nowMs: number): void {
    if (this.#refused === 0) {
      this.#isOverloaded = nowMs - this.#lastRefusedMs <= CALM_MS
      return
    }
    this.#lastRefusedMs = nowMs
    const workMs = this.#handled * this.#costMs
    const refusalsMs = this.#refused * this.#refusalMs * this.#refusalParts
    const expectedMs = workMs + refusalsMs
    if (expectedMs === 0) return
    const errorMs = Math.max(-expectedMs, Math.min(expectedMs, busyMs - expectedMs))
    const step = (LEARNING_RATE * errorMs) / (workMs ** 2 + refusalsMs ** 2)
    this.#costMs = Math.max(MIN_COST_MS, this.#costMs * (1 + step * workMs))
    const parts = this.#refusalParts * (1 + step * refusalsMs)
    this.#refusalParts = Math.min(REFUSAL_PARTS.max, Math.max(REFUSAL_PARTS.min, parts))
  }

  /** `count` is the number of requests in the last turn. */
  #computeLimit(count: number): number {
    const minWorkMs = count * this.#refusalMs * this.#refusalParts * MIN_WORK_PER_REFUSALS
    const workMs = Math.min(this.maxDelayMs, Math.max(this.maxDelayMs * WORK_PER_TURN, minWorkMs))
    return Math.max(MIN_REQUESTS, Math.floor(workMs / this.#costMs))
  }
}

function readLoopTimes(): LoopTimes {
  return { nowMs: performance.now(), idleMs: performance.nodeTiming.idleTime }
}
