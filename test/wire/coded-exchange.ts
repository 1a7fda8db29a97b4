// Requests whose responses may be compressed. Node's client decodes nothing.
import http from 'node:http'
import { startService, type Engine, type Service } from '../targets.js'
import { addressOf, asUser, decodeBody, JSON_BODY, only, openSession, type User } from './exchange.js'

export const CONTACT = 'crm.Contact'
export const LIST = `/ws/rest/${CONTACT}`
/** A larger response waits in a file. */
export const MEMORY_BYTES = 72_000
export const MIN_BYTES = 8_192

export interface CodedAnswer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly bytes: Buffer
  /** The decoded body. */
  readonly text: string
}

export interface CodedRequest {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: object
}

export const accept = (coding: string) => ({ headers: { 'accept-encoding': coding } })

/** A service with records that take more than 8 kB. */
export class CodedService {
  private constructor(
    readonly service: Service,
    readonly cookie: string,
    readonly user: User,
    /** The id of a record that takes more than 8 kB. */
    readonly id: number,
  ) {}

  static async start(engine: Engine): Promise<CodedService> {
    const service = await startService(engine, { settings: { responseLimitBytes: 8 * MEMORY_BYTES } })
    const cookie = await openSession(service.url)
    const user = asUser(service.url, cookie)
    const { id } = only(await user.create(CONTACT, { lastName: 'Lang', notes: 'Größe '.repeat(2_000) }))
    const coded = new CodedService(service, cookie, user, id)
    const records = Array.from({ length: 300 }, (_, number) => ({ firstName: 'Ada', lastName: `L${number}` }))
    await coded.ask(LIST, { method: 'POST', body: { records } })
    return coded
  }

  async ask(path: string, sent: CodedRequest = {}, url = this.service.url): Promise<CodedAnswer> {
    const { method = 'GET', headers = {}, body } = sent
    return new Promise((resolve, reject) => {
      const { host, port } = addressOf(url)
      const all = { cookie: this.cookie, ...(body === undefined ? {} : JSON_BODY), ...headers }
      const request = http.request({ host, port, method, path, headers: all })
      request.on('error', reject).on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          const { statusCode: status = 0, headers: received } = response
          resolve({ status, headers: received, bytes, text: decodeBody(received, bytes) })
        })
      })
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}
