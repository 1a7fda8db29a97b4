// One call of the client: its time limit, its signal, and the line of the program that made it.
import { createRequestError, RequestError } from './errors.js'

/** Timers with a longer delay fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Options of every call. */
export interface CallOptions {
  /** Rejects the call with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the whole call, with its login and its retries. */
  readonly timeout?: number | undefined
}

export class CallScope {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal | undefined
  /** Taken when the call begins: later the caller is no longer on the stack. */
  readonly #trace = new Error()
  #timer: ReturnType<typeof setTimeout> | undefined
  #deadlineMs = Infinity
  readonly #timeoutMs: number
  /** Why the latest attempt failed; the cause of a timeout. */
  lastFailure: unknown
  /** Idempotency key of the current write. */
  idempotencyKey: string | undefined

  constructor({ signal, timeout = Infinity }: CallOptions) {
    // Leaves more room for the frames of the caller, where the engine can do it.
    ;(Error as Partial<ErrorConstructor>).captureStackTrace?.(this.#trace, CallScope)
    this.#outer = signal
    this.#timeoutMs = timeout
    if (signal?.aborted) this.#abort()
    else signal?.addEventListener('abort', this.#abort)
    this.#startTimer(timeout)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get remainingMs(): number {
    return this.#deadlineMs - performance.now()
  }

  /** Releases the timer and the listener. */
  close(): void {
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#abort)
  }

  /** Aborts what the call is doing. */
  end(): void {
    this.close()
    this.#controller.abort()
  }

  /** Ends the time limit, but not the signal. */
  stopTimer(): void {
    clearTimeout(this.#timer)
    this.#deadlineMs = Infinity
  }

  /** Throws the reason of the signal, or the timeout. */
  throwIfAborted(): void {
    this.signal.throwIfAborted()
  }

  /** Waits for a promise, or until the call ends. */
  async race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this
    signal.throwIfAborted()
    let stop: (() => void) | undefined
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason as Error)
      signal.addEventListener('abort', stop)
    })
    try {
      return await Promise.race([work, aborted])
    } finally {
      if (stop) signal.removeEventListener('abort', stop)
    }
  }

  async wait(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      await this.race(
        new Promise<void>((resolve) => (timer = setTimeout(resolve, Math.min(ms, MAX_TIMER_MS)))),
      )
    } finally {
      clearTimeout(timer)
    }
  }

  /** Runs code of the caller. Its time does not count: a person may have to decide. */
  async runOutside<T>(work: () => T | Promise<T>): Promise<T> {
    const { remainingMs } = this
    clearTimeout(this.#timer)
    try {
      return await this.race(Promise.resolve().then(work))
    } finally {
      this.#startTimer(remainingMs)
    }
  }

  /** Gives an error of the client the stack of the caller. Leaves other errors alone: they belong to the caller. */
  explain(error: unknown): unknown {
    const isOurs = error instanceof RequestError && error !== this.#outer?.reason
    const { stack = '' } = this.#trace
    // V8 begins with a line for the error; other engines list only frames.
    const frames = stack.startsWith('Error') ? stack.slice(stack.indexOf('\n') + 1) : stack
    if (isOurs && frames !== '') error.stack = `${error.name}: ${error.message}\n${frames}`
    return error
  }

  readonly #abort = (): void => {
    this.#controller.abort(this.#outer?.reason)
  }

  #startTimer(ms: number): void {
    if (ms > MAX_TIMER_MS) return
    this.#deadlineMs = performance.now() + ms
    this.#timer = setTimeout(() => {
      const { idempotencyKey, lastFailure: cause } = this
      const message = `The call took longer than its timeout of ${this.#timeoutMs} ms`
      this.#controller.abort(createRequestError({ kind: 'timeout', message, idempotencyKey, cause }))
    }, ms)
  }
}
