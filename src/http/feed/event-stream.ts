// Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { VersoError } from '../../errors.js'

/** Whoever takes nothing for so long is gone, or as good as gone. */
const DRAIN_MS = 30_000
/** When a browser that was cut off comes back. */
const RETRY_MS = 1_000

/** One stream. Nothing is written that the reader does not take: it would pile up here. */
export class EventStream {
  #isBegun = false

  constructor(private readonly reply: FastifyReply) {
    reply.hijack()
  }

  async send(id: number, event: string, data: unknown): Promise<void> {
    await this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  /** Nothing happens by it in a browser, but it is where it goes on if it comes back. */
  async position(id: number): Promise<void> {
    await this.#write(`: still here\nid: ${id}\n\n`)
  }

  /** The last event: why there are no more. Anything but a refusal is not told. */
  async refuse(error: unknown): Promise<void> {
    const { raw } = this.reply
    if (raw.destroyed) return
    const kind = error instanceof VersoError ? error.kind : 'internal'
    const message = error instanceof VersoError ? error.message : 'Something went wrong here'
    const more = error instanceof VersoError ? error.details.data : {}
    const data = { kind, message, ...more }
    await this.#write(`event: refused\ndata: ${JSON.stringify(data)}\n\n`)
  }

  end(): void {
    this.reply.raw.end()
  }

  #begin(): void {
    const { raw } = this.reply
    for (const [name, value] of Object.entries(this.reply.getHeaders()))
      if (value !== undefined) raw.setHeader(name, value)
    raw.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // Proxies that gather answers would hold events back.
      'x-accel-buffering': 'no',
    })
    raw.write(`retry: ${RETRY_MS}\n\n`)
    this.#isBegun = true
  }

  async #write(text: string): Promise<void> {
    const { raw } = this.reply
    if (raw.destroyed) return
    if (!this.#isBegun) this.#begin()
    if (raw.write(text)) return
    const late = new AbortController()
    const taken = Promise.race([
      once(raw, 'drain', { signal: late.signal }),
      once(raw, 'close', { signal: late.signal }),
    ])
    const isLate = sleep(DRAIN_MS, 'late', { signal: late.signal, ref: false })
    const outcome = await Promise.race([taken, isLate])
    late.abort()
    taken.catch(() => undefined)
    isLate.catch(() => undefined)
    if (outcome === 'late') raw.destroy()
  }
}
