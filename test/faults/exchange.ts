// One request and its answer over kept connections: fetch costs three times the time, and load is what these tests are about.
import { Agent, request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'

/** Where, and as whom: an HttpClient is one. */
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
  /** How many connections there are, at most; 64 to each node if absent. */
  readonly agent?: Agent
}

/** Fails only if the connection does. */
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
