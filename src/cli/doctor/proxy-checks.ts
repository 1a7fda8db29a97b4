// Calls a running service at the address that users see, and infers from its responses what the proxy passes on.
import { once } from 'node:events'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { createDiagnosis, type Diagnosis } from '../../store/diagnosis/diagnosis.js'

const TIMEOUT_MS = 10_000
const STREAM_TIMEOUT_MS = 20_000
/** No client has this address: its network is reserved for documentation. */
const FORGED_ADDRESS = '203.0.113.9'
/** On the computer of the proxy, requests need another address than the proxy has. Linux answers on all of 127.0.0.0/8. */
const OTHER_LOOPBACK = '127.0.0.2'
const DEFAULT_BODY_BYTES = 2 * 1024 ** 2
const PROXY_FILES = 'Compare its configuration with the files in the folder deploy of the package'

export interface ProxyTarget {
  readonly url: string
  readonly user: string | undefined
  readonly bodyLimit: number | undefined
}

interface Exchange {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly localAddress: string
  readonly remoteAddress: string
}

export async function* diagnoseProxy({ url, user, bodyLimit }: ProxyTarget): AsyncGenerator<Diagnosis> {
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    yield createDiagnosis(
      'service',
      'problem',
      `${url} is not a URL`,
      'Give --url as https://records.example.org.',
    )
    return
  }
  const base = url.replace(/\/$/, '')
  const reached = await diagnoseService(base)
  yield reached
  if (reached.level === 'problem') return
  const isHttps = base.startsWith('https:')
  yield await diagnoseScheme(base, isHttps)
  yield await diagnoseHost(base)
  yield await diagnoseBodyLimit(base, bodyLimit ?? DEFAULT_BODY_BYTES)
  if (isHttps) yield await diagnoseHttpVersion(base)
  if (user === undefined)
    yield createDiagnosis(
      'client address',
      'warning',
      'not checked, as is the event stream: both need a login',
      'Give --user, and its password in VERSO_DOCTOR_PASSWORD.',
    )
  else yield* diagnoseSession(base, user)
}

async function diagnoseService(base: string): Promise<Diagnosis> {
  try {
    const { status, text } = await exchange('GET', `${base}/healthz`)
    const isVerso = status === 200 && text.startsWith('{"status":0')
    return isVerso
      ? createDiagnosis('service', 'ok', `${base} responds`)
      : createDiagnosis(
          'service',
          'problem',
          `${base}/healthz responds with ${status}${status === 200 ? ', but not as Verso does' : ''}`,
          status === 421
            ? 'Set VERSO_PUBLIC_URL to this URL, and let the proxy pass on the header Host.'
            : 'Check that the service runs, and that the proxy forwards to its port and path.',
        )
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    const reason = error instanceof Error ? error.message || code : String(error)
    const isCertificate = /CERT|ALTNAME|SELF_SIGNED|UNABLE_TO/.test(code)
    return createDiagnosis(
      'service',
      'problem',
      `${base} cannot be reached: ${reason}`,
      isCertificate
        ? 'Renew the certificate, or let this computer trust it: NODE_EXTRA_CA_CERTS.'
        : 'Check the DNS name, the firewall, and that the proxy runs.',
    )
  }
}

/** The service sends this header, as it makes cookies Secure, if it takes the request for https. */
async function diagnoseScheme(base: string, isHttps: boolean): Promise<Diagnosis> {
  const { headers } = await exchange('GET', `${base}/healthz`)
  const isSecure = headers['strict-transport-security'] !== undefined
  if (!isHttps)
    return createDiagnosis(
      'cookies',
      'warning',
      'without https, passwords and cookies pass the network readable',
      'Serve it by https.',
    )
  if (isSecure) return createDiagnosis('cookies', 'ok', 'X-Forwarded-Proto arrives, so cookies are Secure')
  return createDiagnosis(
    'cookies',
    'problem',
    'the service takes the request for http: X-Forwarded-Proto does not arrive, or comes from a proxy that it does not trust',
    `Set VERSO_TRUST_PROXY to the address of the proxy, and let the proxy set X-Forwarded-Proto. ${PROXY_FILES}.`,
  )
}

/** Without the host, a browser that sends only Origin cannot log in. A POST to /logout without a session changes nothing. */
async function diagnoseHost(base: string): Promise<Diagnosis> {
  const { status } = await exchange('POST', `${base}/logout`, { headers: { origin: new URL(base).origin } })
  if (status === 200) return createDiagnosis('host', 'ok', 'the service knows this address as its own')
  return createDiagnosis(
    'host',
    'problem',
    `the service takes ${new URL(base).origin} for another site (status ${status})`,
    `Set VERSO_PUBLIC_URL to this URL, and let the proxy pass on the header Host. ${PROXY_FILES}.`,
  )
}

/** Without a session the service rejects the body with 401; only a proxy answers 413. */
async function diagnoseBodyLimit(base: string, bytes: number): Promise<Diagnosis> {
  const headers = { 'content-type': 'application/json' }
  const body = Buffer.alloc(bytes, ' ')
  const text = `${(bytes / 1024 ** 2).toFixed(1)} MB`
  try {
    const { status } = await exchange('PUT', `${base}/ws/rest/doctor`, { headers, body })
    if (status === 401) return createDiagnosis('body limit', 'ok', `the proxy passes on bodies of ${text}`)
    if (status !== 413)
      return createDiagnosis('body limit', 'warning', `unexpected status ${status} for a body of ${text}`)
  } catch {
    // A proxy may close the connection instead of reading the body.
  }
  return createDiagnosis(
    'body limit',
    'problem',
    `the proxy rejects bodies of ${text}, which --body-limit permits`,
    'Raise its limit to at least --upload-limit: client_max_body_size 26m in nginx.',
  )
}

async function diagnoseHttpVersion(base: string): Promise<Diagnosis> {
  const { hostname, port } = new URL(base)
  const socket = connect({
    host: hostname,
    port: Number(port || 443),
    // TLS permits no addresses as server names.
    servername: isIP(hostname) === 0 ? hostname : '',
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (socket.alpnProtocol === 'h2') return createDiagnosis('http version', 'ok', 'browsers use HTTP/2')
    return createDiagnosis(
      'http version',
      'warning',
      'browsers use HTTP/1.1: they open at most six connections, and each event stream takes one',
      'Turn on HTTP/2 in the proxy: "listen 443 ssl http2" in nginx, "alpn h2,http/1.1" in HAProxy.',
    )
  } finally {
    socket.destroy()
  }
}

async function* diagnoseSession(base: string, user: string): AsyncGenerator<Diagnosis> {
  const password = process.env['VERSO_DOCTOR_PASSWORD'] ?? ''
  const { remoteAddress } = await exchange('GET', `${base}/healthz`)
  const isBeside = process.platform === 'linux' && remoteAddress.startsWith('127.')
  const login = await exchange('POST', `${base}/callback`, {
    headers: { 'content-type': 'application/json', 'x-forwarded-for': FORGED_ADDRESS },
    body: Buffer.from(JSON.stringify({ username: user, password })),
    ...(isBeside ? { localAddress: OTHER_LOOPBACK, family: 4 } : {}),
  })
  if (login.status !== 200) {
    const message = `${user} cannot log in (status ${login.status})`
    yield createDiagnosis('login', 'problem', message, 'Check --user and VERSO_DOCTOR_PASSWORD.')
    return
  }
  const cookie = login.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
  try {
    yield await diagnoseClientAddress(base, cookie, login.localAddress)
    yield await diagnoseStream(base, cookie)
  } finally {
    await exchange('POST', `${base}/logout`, { headers: { cookie } })
  }
}

/** The session has the address that the service saw at the login, which named a forged one. */
async function diagnoseClientAddress(base: string, cookie: string, ownAddress: string): Promise<Diagnosis> {
  const { text } = await exchange('GET', `${base}/ws/me/sessions`, { headers: { cookie } })
  const { data } = JSON.parse(text) as { readonly data: readonly Readonly<Record<string, unknown>>[] }
  const address = String(data.find(({ current }) => current === true)?.['address'])
  if (address === FORGED_ADDRESS)
    return createDiagnosis(
      'client address',
      'problem',
      'a client can forge its address: X-Forwarded-For of the client reaches the service',
      `Let the proxy replace X-Forwarded-For, and trust only the proxy. ${PROXY_FILES}.`,
    )
  if (address === ownAddress)
    return createDiagnosis('client address', 'ok', `the service sees this computer as ${address}`)
  if (isLoopbackText(address))
    return createDiagnosis(
      'client address',
      'problem',
      `the service sees the proxy (${address}) in place of its clients`,
      `Let the proxy set X-Forwarded-For, and set VERSO_TRUST_PROXY to its address. ${PROXY_FILES}.`,
    )
  return createDiagnosis(
    'client address',
    'ok',
    `the service sees this computer as ${address}`,
    'If this is the address of the proxy, let it set X-Forwarded-For, and set VERSO_TRUST_PROXY.',
  )
}

function isLoopbackText(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

async function diagnoseStream(base: string, cookie: string): Promise<Diagnosis> {
  const buffered = createDiagnosis(
    'event stream',
    'problem',
    'events do not arrive: the proxy buffers the stream',
    'Turn off buffering of responses: "proxy_buffering off" in nginx.',
  )
  let response: IncomingMessage | undefined
  try {
    response = await openExchange('GET', `${base}/ws/changes?since=0`, {
      headers: { cookie, accept: 'text/event-stream' },
      timeoutMs: STREAM_TIMEOUT_MS,
    })
    if (response.statusCode !== 200) {
      const message = `not checked: /ws/changes responds with ${String(response.statusCode)}`
      return createDiagnosis('event stream', 'warning', message, 'See the log of the service.')
    }
    await once(response, 'data', { signal: AbortSignal.timeout(STREAM_TIMEOUT_MS) })
    return createDiagnosis('event stream', 'ok', 'events arrive while the stream is open')
  } catch {
    // Neither the headers nor an event have arrived in time.
    return buffered
  } finally {
    response?.destroy()
  }
}

interface ExchangeOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly localAddress?: string
  readonly family?: number
  readonly timeoutMs?: number
}

async function openExchange(
  method: string,
  url: string,
  { headers, body, timeoutMs = TIMEOUT_MS, ...options }: ExchangeOptions,
): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const length = body === undefined ? {} : { 'content-length': String(body.length) }
  const sent = request(url, {
    ...options,
    method,
    agent: false,
    timeout: timeoutMs,
    headers: { ...headers, ...length },
  })
  sent.on('timeout', () => sent.destroy(new Error(`no response within ${timeoutMs / 1_000} s`)))
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // A proxy that has answered may close the connection before it has read the body.
  sent.on('error', () => undefined)
  return response
}

async function exchange(method: string, url: string, options: ExchangeOptions = {}): Promise<Exchange> {
  const response = await openExchange(method, url, options)
  const { localAddress = '', remoteAddress = '' } = response.socket
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(chunks).toString(),
    localAddress,
    remoteAddress,
  }
}
