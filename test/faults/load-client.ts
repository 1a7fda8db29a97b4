// One request and its response over kept connections: fetch takes three times as long, and these tests need load.
import { Agent, request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'

/** The server and the session; an HttpClient is one. */
export interface Session {
  readonly url: string
  readonly cookie: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly data: unknown }
}

const few = new Agent({ keepAlive: true, maxSockets: 64 })

export interface Manner {
  readonly headers?: OutgoingHttpHeaders
  /** The maximum number of connections; 64 to each node by default. */
  readonly agent?: Agent
}

/** Rejects only if the connection fails. */
export async function exchange(
  session: Session,
  method: string,
  path: string,
  body?: unknown,
  { headers: more = {}, agent = few }: Manner = {},
): Promise<Answer> {
  const json = body === undefined ? '' : JSON.stringify(body)
  const type = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }
  const headers = { cookie: session.cookie, ...(json === '' ? {} : type), ...more }
  return new Promise((resolve, reject) => {
    const sent = request(`${session.url}${path}`, { method, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response
        resolve({ status, headers, body: JSON.parse(text) as Answer['body'] })
      })
    })
    sent.on('error', reject)
    sent.end(json)
  })
}
