// Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { VersoError } from '../../errors.js'

/** Whoever takes nothing for so long is gone, or as good as gone. */
const DRAIN_TIMEOUT_MS = 30_000
/** When a browser that was cut off comes back. */
const RECONNECT_DELAY_MS = 1_000

/** One stream. Nothing is written that the reader does not take: it would pile up here. */
export class EventStream {
  #hasStarted = false

  constructor(private readonly reply: FastifyReply) {
    reply.hijack()
  }

  async send(id: number, event: string, data: unknown): Promise<void> {
    await this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  /** Nothing happens by it in a browser, but it is where it goes on if it comes back. */
  async sendCursor(id: number): Promise<void> {
    await this.#write(`: still here\nid: ${id}\n\n`)
  }

  /** The last event: why there are no more. Anything but a refusal is not told. */
  async sendError(error: unknown): Promise<void> {
    const { raw } = this.reply
    if (raw.destroyed) return
    const kind = error instanceof VersoError ? error.kind : 'internal'
    const message = error instanceof VersoError ? error.message : 'Something went wrong here'
    const errorData = error instanceof VersoError ? error.details.data : {}
    const data = { kind, message, ...errorData }
    await this.#write(`event: refused\ndata: ${JSON.stringify(data)}\n\n`)
  }

  end(): void {
    this.reply.raw.end()
  }

  #start(): void {
    const { raw } = this.reply
    for (const [name, value] of Object.entries(this.reply.getHeaders()))
      if (value !== undefined) raw.setHeader(name, value)
    raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // Proxies that gather answers would hold events back.
      'x-accel-buffering': 'no',
    })
    raw.write(`retry: ${RECONNECT_DELAY_MS}\n\n`)
    this.#hasStarted = true
  }

  async #write(text: string): Promise<void> {
    const { raw } = this.reply
    if (raw.destroyed) return
    if (!this.#hasStarted) this.#start()
    if (raw.write(text)) return
    const controller = new AbortController()
    const drained = Promise.race([
      once(raw, 'drain', { signal: controller.signal }),
      once(raw, 'close', { signal: controller.signal }),
    ])
    const timeout = sleep(DRAIN_TIMEOUT_MS, 'late', { signal: controller.signal, ref: false })
    const outcome = await Promise.race([drained, timeout])
    controller.abort()
    drained.catch(() => undefined)
    timeout.catch(() => undefined)
    if (outcome === 'late') raw.destroy()
  }
}
