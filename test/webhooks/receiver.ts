// A webhook receiver as a third party would write it: a real server that verifies signatures with its own code.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import type { Change } from '../../src/wire.js'
import { ANY_FAILURE, expectFailures } from '../server-failures.js'

export interface Received {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly message: {
    readonly webhook: number
    readonly data?: readonly Change[]
    readonly next?: number
    readonly resync?: true
    readonly ping?: true
  }
  /** The status of the response; undefined until it is sent. */
  status: number | undefined
}

/** Answers a call: returns a status, or handles the response itself and returns undefined. */
export type Answering = (
  received: Received,
  response: ServerResponse,
) => number | undefined | Promise<number | undefined>

export class Receiver {
  readonly calls: Received[] = []
  answering: Answering = () => 204
  #atOnce = 0
  mostAtOnce = 0
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => void this.#receive(request.headers, Buffer.concat(chunks).toString(), response))
    request.on('error', () => undefined)
  })

  private constructor(readonly host: string) {
    expectFailures(this.#server, ANY_FAILURE)
  }

  static async listen(host = '127.0.0.1', port = 0): Promise<Receiver> {
    const receiver = new Receiver(host)
    await receiver.listenAgain(port)
    return receiver
  }

  async listenAgain(port = 0): Promise<void> {
    this.#server.listen(port, this.host)
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://${this.host}:${this.port}/hook`
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  /** Changes in calls answered with 2xx, including duplicates. */
  get taken(): Change[] {
    return this.calls
      .filter(({ status = 0 }) => status >= 200 && status < 300)
      .flatMap(({ message: { data = [] } }) => data)
  }

  /** `taken` without duplicates, in order of first arrival. */
  get folded(): Change[] {
    const seqs = new Set<number>()
    return this.taken.filter(({ seq }) => !seqs.has(seq) && seqs.add(seq))
  }

  async until(isSo: (receiver: this) => boolean, what = 'a call'): Promise<void> {
    await expect.poll(() => isSo(this), { timeout: 50_000, interval: 20, message: what }).toBe(true)
  }

  async #receive(headers: IncomingHttpHeaders, body: string, response: ServerResponse): Promise<void> {
    const message = JSON.parse(body) as Received['message']
    const received: Received = { headers, body, message, status: undefined }
    this.calls.push(received)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    response.on('close', () => this.#atOnce--)
    const status = await this.answering(received, response)
    if (status === undefined) return
    received.status = status
    response.writeHead(status).end()
  }
}

/** Verifies a signature as https://www.standardwebhooks.com specifies. */
export function isGenuine(secret: string, { headers, body }: Received): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = createHmac('sha256', key).update(content).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .some((each) => {
      const [version, signature = ''] = each.split(',')
      const given = Buffer.from(signature, 'base64')
      return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
    })
}
