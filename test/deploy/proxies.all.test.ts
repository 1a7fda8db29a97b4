// The proxies of the folder deploy, with TLS, in front of running services.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start } from '../cli/program.js'
import { listShellBlocks, ROOT } from '../docs/page.js'
import { findFreePort } from '../docs/reader.js'
import {
  HOST,
  open,
  send,
  startCaddy,
  startHaproxy,
  startNginx,
  stopProxiesAfterwards,
  type SendOptions,
} from './proxies.js'

cleanUpAfterwards()
stopProxiesAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const GUIDE = 'docs/guides/deploy.md'
const CONTACTS = path.join(ROOT, 'examples/contacts')
const SECOND_NODE = /^ +server node2 .*\n/m

/** Each puts one service in place of the nodes of its file. `damage` makes a file that a test must catch. */
const PROXIES = [
  {
    name: 'Caddy',
    startProxy: async (port: number, service: string, damage = keep) =>
      startCaddy(port, (text) => damage(text).replace('localhost:8080', service)),
  },
  {
    name: 'Caddy for several nodes',
    startProxy: async (port: number, service: string, damage = keep) =>
      startCaddy(
        port,
        (text) => damage(text).replace('10.0.0.5:8080 10.0.0.6:8080', service),
        'Caddyfile.nodes',
      ),
  },
  {
    name: 'nginx',
    startProxy: async (port: number, service: string, damage = keep) =>
      startNginx(port, (text) => damage(text).replace('127.0.0.1:8080', service)),
  },
  {
    name: 'HAProxy',
    startProxy: async (port: number, service: string, damage = keep) =>
      startHaproxy(port, (text) => damage(text).replace(SECOND_NODE, '').replace('10.0.0.5:8080', service)),
  },
] as const

function keep(text: string): string {
  return text
}

type Proxy = (typeof PROXIES)[number]

function findProxy(name: Proxy['name']): Proxy {
  const proxy = PROXIES.find((each) => each.name === name)
  if (!proxy) throw new Error(`there is no proxy ${name}`)
  return proxy
}

describe.for(PROXIES)('$name', ({ startProxy }) => {
  let port = 0
  let log: () => string = () => ''
  const ask = async (method: string, url: string, options: SendOptions = {}) =>
    send(port, method, url, options)

  async function startAll(): Promise<void> {
    const settings = ['--public-url', `https://${HOST}`, '--trust-proxy', 'loopback', '--log-format', 'json']
    const service = await start(
      ['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase(), ...settings],
      { VERSO_ADMIN_PASSWORD: PASSWORD },
    )
    log = service.log
    port = await findFreePort()
    await startProxy(port, new URL(service.url).host.replace('localhost', '127.0.0.1'))
  }

  const logIn = async () => {
    const body = JSON.stringify({ username: 'admin', password: PASSWORD })
    const headers = {
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      origin: `https://${HOST}`,
    }
    return ask('POST', '/callback', { body, headers })
  }

  test('the checks of the guide respond with 200', async () => {
    await startAll()
    const text = listShellBlocks(GUIDE).find(({ word }) => word === 'https')?.text ?? ''
    const curl = `curl() { command curl -k --fail --connect-to ${HOST}:443:127.0.0.1:${port} "$@"; }\n`
    const printed = execFileSync('bash', ['-e', '-c', curl + text], { encoding: 'utf8' })
    expect(printed).toBe('{"status":0,"data":[]}{"status":0,"data":[{"writable":true}]}')
  })

  test('a browser logs in over TLS and gets a secure cookie; the log has the address of the client', async () => {
    await startAll()
    const login = await logIn()
    expect(login.status).toBe(200)
    expect(login.headers['set-cookie']?.[0]).toMatch(/^JSESSIONID=.*; Secure/)
    expect(login.headers['strict-transport-security']).toBe('max-age=31536000; includeSubDomains')
    await expect.poll(() => log()).toMatch(/"route":"\/callback".*"address":"127\.0\.0\.2"/)
  })

  test('a forged client address does not reach the service', async () => {
    await startAll()
    await ask('GET', '/ws/me', { headers: { 'x-forwarded-for': '203.0.113.9' } })
    await expect.poll(() => log()).toMatch(/"route":"\/ws\/me".*"address":"127\.0\.0\.2"/)
    expect(log()).not.toContain('203.0.113.9')
  })

  test('a forged host does not reach the service', async () => {
    await startAll()
    expect(await logInWithForgedHost(port)).toBe(403)
  })

  test('a write whose connection breaks is not sent a second time', async () => {
    expect(await countDeliveries(startProxy)).toEqual([1, 1, 1, 1])
  })

  test('a page of another site cannot write with the cookie', async () => {
    await startAll()
    const login = await logIn()
    const cookie = login.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const write = await ask('PUT', '/ws/rest/com.axelor.contact.db.Contact', {
      body: JSON.stringify({ data: { firstName: 'Ada' } }),
      headers: {
        cookie,
        'content-type': 'application/json',
        'sec-fetch-site': 'cross-site',
        origin: 'https://evil.example',
      },
    })
    expect(write.status).toBe(403)
  })

  test('an event of the change feed arrives at once, and a file of 20 MB is uploaded', async () => {
    await startAll()
    const login = await logIn()
    const cookie = login.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const stream = await open(port, 'GET', '/ws/changes?since=0', {
      headers: { cookie, accept: 'text/event-stream' },
    })
    const [first] = (await once(stream, 'data')) as [Buffer]
    expect(first.toString()).toContain('event: change')
    stream.destroy()
    const form = new FormData()
    form.set('file', new Blob([Buffer.alloc(20_000_000)]), 'large.bin')
    form.set('field', 'content')
    form.set('request', JSON.stringify({ data: { fileName: 'large.bin' } }))
    const sent = new Response(form)
    const upload = await ask('POST', '/ws/rest/com.axelor.meta.db.MetaFile/upload', {
      body: Buffer.from(await sent.arrayBuffer()),
      headers: { cookie, 'content-type': sent.headers.get('content-type') ?? '' },
    })
    expect(upload.status, upload.text).toBe(200)
  })
})

/** The status of a login from a page of another site that claims to be of the host of the service. */
async function logInWithForgedHost(port: number): Promise<number | undefined> {
  const headers = {
    'content-type': 'application/json',
    origin: 'https://evil.example',
    'x-forwarded-host': 'evil.example',
  }
  const body = JSON.stringify({ username: 'admin', password: PASSWORD })
  return (await send(port, 'POST', '/callback', { headers, body })).status
}

/** How often a node that breaks the connection of each write gets a PUT, POST, DELETE and PATCH. */
async function countDeliveries(startProxy: Proxy['startProxy'], damage?: (text: string) => string) {
  const received: string[] = []
  const node = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      const [line = ''] = chunk.toString().split('\r\n')
      if (line.includes(' /write ')) {
        received.push(line)
        socket.destroy()
      } else if (/^[A-Z]+ \//.test(line)) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    node.close()
  })
  await once(node, 'listening')
  const port = await findFreePort()
  await startProxy(port, `127.0.0.1:${(node.address() as AddressInfo).port}`, damage)
  const counts = []
  for (const method of ['PUT', 'POST', 'DELETE', 'PATCH']) {
    // The proxy may keep this connection for the write.
    expect((await send(port, 'GET', '/healthz')).status).toBe(200)
    const headers = { 'content-type': 'application/json' }
    expect((await send(port, method, '/write', { body: '{}', headers })).status).toBe(502)
    counts.push(received.splice(0).length)
  }
  return counts
}

describe('the tests catch', () => {
  test.for([
    ['nginx', '        proxy_next_upstream off;\n', ''],
    ['HAProxy', 'retry-on conn-failure', 'retry-on all-retryable-errors'],
  ] as const)('%s that sends a write again', async ([name, from, to]) => {
    const counts = await countDeliveries(findProxy(name).startProxy, (text) => text.replace(from, to))
    expect(Math.max(...counts)).toBeGreaterThan(1)
  })

  test.for([
    ['nginx', /^.*X-Forwarded-Host.*\n/m],
    ['HAProxy', /^.*X-Forwarded-Host.*\n/m],
  ] as const)('%s that passes on a forged host', async ([name, line]) => {
    const flags = ['--models', CONTACTS, '--port', '0', '--db', newDatabase(), '--trust-proxy', 'loopback']
    const service = await start(['serve', ...flags], {
      VERSO_ADMIN_PASSWORD: PASSWORD,
      VERSO_PUBLIC_URL: `https://${HOST}`,
    })
    const port = await findFreePort()
    const { host } = new URL(service.url)
    await findProxy(name).startProxy(port, host.replace('localhost', '127.0.0.1'), (text) =>
      text.replace(line, ''),
    )
    expect(await logInWithForgedHost(port)).toBe(200)
  })
})

test('Caddy serves a page of your own on the same origin as the service', async () => {
  const service = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()], {
    VERSO_PUBLIC_URL: `https://${HOST}`,
  })
  const page = mkdtempSync(path.join(scratch, 'page-'))
  writeFileSync(path.join(page, 'index.html'), '<h1>My page</h1>')
  const port = await findFreePort()
  const { host } = new URL(service.url)
  const replace = (text: string) => text.replaceAll('localhost:8080', host).replace('/srv/page', page)
  await startCaddy(port, replace, 'Caddyfile.page')
  expect((await send(port, 'GET', '/')).text).toBe('<h1>My page</h1>')
  expect((await send(port, 'GET', '/ws/me')).status).toBe(401)
  expect((await send(port, 'GET', '/healthz')).status).toBe(200)
})
