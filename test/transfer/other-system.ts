// A small server that behaves like another system of this protocol: errors as HTTP 200, json as text, shortened datetimes.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface OtherSystem {
  readonly url: string
  /** Searches that it received, in order. */
  readonly searches: readonly { readonly model: string; readonly after: number }[]
  close(): void
}

export interface OtherOptions {
  /** Cuts off this many connections before it answers. */
  readonly troubles?: number
  /** Ends every session after this many searches. */
  readonly searchesInASession?: number
  /** Ignores the criteria and answers the first page again and again. */
  readonly isWithoutCriteria?: boolean
  /** File contents by the end of their path: `doc.Paper/1/scan`. Null is an empty field. */
  readonly files?: Readonly<Record<string, { readonly disposition: string; readonly content: string } | null>>
  /** Breaks off this many downloads in the middle. */
  readonly brokenDownloads?: number
}

type Records = Readonly<Record<string, readonly object[]>>

const TOKEN = '0123456789abcdef0123456789abcdef'

export async function startOtherSystem(records: Records, options: OtherOptions = {}): Promise<OtherSystem> {
  const searches: { model: string; after: number }[] = []
  let { troubles = 0, brokenDownloads = 0 } = options
  let [sessions, inSession] = [0, 0]
  const server = createServer((request, response) => {
    if (troubles-- > 0) {
      request.socket.destroy()
      return
    }
    void bodyOf(request).then((body) => {
      if (request.url === '/base/callback') return login(body, response)
      const isMine = request.headers.cookie?.includes(`JSESSIONID=s${sessions};`)
      const isDownload = request.method === 'GET'
      const hasManners =
        request.headers['x-csrf-token'] === TOKEN &&
        (isDownload || request.headers.accept === 'application/json')
      if (!isMine || !hasManners || ++inSession > (options.searchesInASession ?? Infinity))
        return response.writeHead(401).end('<html>Unauthorized</html>')
      return isDownload ? download(request.url ?? '', response) : search(request.url ?? '', body, response)
    })
  })
  const login = (body: Body, response: ServerResponse) => {
    if (body.username !== 'admin' || body.password !== 'admin') return response.writeHead(401).end('<html/>')
    sessions++
    inSession = 0
    response.setHeader('set-cookie', [
      `JSESSIONID=s${sessions}; HttpOnly`,
      `CSRF-TOKEN=${TOKEN}`,
      'rememberMe=deleteMe; Max-Age=0',
    ])
    return response.end('{}')
  }
  const download = (url: string, response: ServerResponse) => {
    const file = options.files?.[/^\/base\/ws\/rest\/(.+)\/download$/.exec(url)?.[1] ?? '']
    if (!file) return response.writeHead(file === null ? 204 : 404).end()
    const { disposition, content } = file
    response.writeHead(200, {
      ...{ 'content-type': 'text/html', 'content-length': Buffer.byteLength(content) },
      ...{ 'content-disposition': disposition },
    })
    if (brokenDownloads-- <= 0) return response.end(content)
    response.write(content.slice(0, 2), () => response.destroy())
    return response
  }
  const search = (url: string, { data, limit = 0 }: Body, response: ServerResponse) => {
    const model = /^\/base\/ws\/rest\/([^/]+)\/search$/.exec(url)?.[1] ?? ''
    const after = options.isWithoutCriteria ? 0 : (data?.criteria[0]?.value ?? 0)
    searches.push({ model, after })
    const all = records[model]
    if (!all) return response.end(JSON.stringify({ status: -1, data: { message: model } }))
    const page = all.filter((record) => (record as { id: number }).id > after).slice(0, Math.min(limit, 2))
    // An empty page has no data at all.
    return response.end(JSON.stringify({ status: 0, offset: 0, ...(page.length > 0 ? { data: page } : {}) }))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`
  return { url, searches, close: () => server.close() }
}

interface Body {
  readonly username?: string
  readonly password?: string
  readonly limit?: number
  readonly data?: { readonly criteria: readonly { readonly value: number }[] }
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return (text === '' ? {} : JSON.parse(text)) as Body
}
