import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const CHECK_MS = 500

interface Slots {
  count: number
}

/** How much this process has to do: the requests under way, and whether its event loop keeps up. */
export class Load {
  #inFlight = 0
  #isLate = false
  readonly #slots = new WeakMap<Socket, Slots>()
  readonly #counted = new WeakMap<ServerResponse, Slots>()
  readonly #timer: NodeJS.Timeout | undefined

  /** No lateness is too much where `maxLateMs` is 0. */
  constructor(
    private readonly maxInFlight: number,
    maxLateMs: number,
  ) {
    if (maxLateMs === 0) return
    let due = performance.now() + CHECK_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.#isLate = now - due > maxLateMs
      due = now + CHECK_MS
    }, CHECK_MS).unref()
  }

  get isTooMuch(): boolean {
    return this.#inFlight >= this.maxInFlight || this.#isLate
  }

  /** Counts a request until its answer is sent, or its connection is gone. */
  add({ socket }: Pick<IncomingMessage, 'socket'>, response: ServerResponse): void {
    const slots = this.#slots.get(socket) ?? this.#watch(socket)
    slots.count++
    this.#inFlight++
    this.#counted.set(response, slots)
    response.on('close', () => {
      this.setAside(response)
    })
  }

  /** What waits for something to happen costs next to nothing: it is not counted any more. */
  setAside(response: ServerResponse): void {
    const slots = this.#counted.get(response)
    if (slots) this.#release(slots, Math.min(1, slots.count))
    this.#counted.delete(response)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Answers that wait behind others on a connection never hear of its end. */
  #watch(socket: Socket): Slots {
    const slots = { count: 0 }
    this.#slots.set(socket, slots)
    socket.once('close', () => {
      this.#release(slots, slots.count)
    })
    return slots
  }

  #release(slots: Slots, count: number): void {
    slots.count -= count
    this.#inFlight -= count
  }
}
