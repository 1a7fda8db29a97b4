// Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
import { once } from 'node:events'
import { buildHeaderList, setHeader, setNoStore } from '../response/send.js'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { describeError } from '../route/errors.js'

/** A client that reads nothing for this long is disconnected. */
const DRAIN_TIMEOUT_MS = 30_000
/** Delay after which a disconnected browser reconnects. */
const RECONNECT_DELAY_MS = 1_000

/** One stream of events. Writes wait until the client has read the previous events, so nothing accumulates in memory. */
export class EventStream {
  #hasStarted = false

  constructor(private readonly reply: FastifyReply) {
    reply.hijack()
  }

  async send(id: number, event: string, data: unknown): Promise<void> {
    await this.#write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  /** Sends a comment with an id: the browser raises no event, but resumes from this id when it reconnects. */
  async sendCursor(id: number): Promise<void> {
    await this.#write(`: still here\nid: ${id}\n\n`)
  }

  /** Sends the reason why the stream ends, as the last event. Hides the details of errors other than VersoError. */
  async sendError(error: unknown): Promise<void> {
    const { raw } = this.reply
    if (raw.destroyed) return
    const { kind, message, data } = describeError(error, 'Internal error; see the server log')
    await this.#write(`event: refused\ndata: ${JSON.stringify({ kind, message, ...data })}\n\n`)
  }

  end(): void {
    this.reply.raw.end()
  }

  #start(): void {
    const { raw } = this.reply
    setNoStore(this.reply)
    setHeader(this.reply, 'content-type', 'text/event-stream; charset=utf-8')
    // Keeps proxies from buffering events.
    setHeader(this.reply, 'x-accel-buffering', 'no')
    raw.writeHead(200, buildHeaderList(this.reply))
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
