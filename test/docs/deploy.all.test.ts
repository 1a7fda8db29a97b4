// The deploy guide with its real parts: the unit file and its command, Caddy and nginx with TLS in front of the service.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import path from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start } from '../cli/program.js'
import { findTarball } from '../package/installed.js'
import { listShellBlocks, readSteps, ROOT, type Step } from './page.js'
import { findFreePort, followPage, STOP_SERVICE } from './reader.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const GUIDE = 'docs/guides/deploy.md'
const HOST = 'records.example.org'
/** Linux answers on all of 127.0.0.0/8, so a client can have another address than the proxy, which connects from 127.0.0.1. */
const CLIENT_ADDRESS = '127.0.0.2'
const CONTACTS = path.join(ROOT, 'examples/contacts')
const UNTIL_STARTED = { timeout: 60_000, interval: 100 }

/** Returns a file of the guide. */
function readGuideFile(name: string): string {
  const step = readSteps(GUIDE).find((each) => each.path === name)
  if (!step) throw new Error(`${GUIDE} has no file ${name}`)
  return step.text
}

test('the commands of the deploy guide install the package, and preview a migration', async () => {
  const tarball = await findTarball()
  const data = mkdtempSync(path.join(scratch, 'data-'))
  const { outputs } = await followPage('docs/guides/deploy.md', {
    tarball,
    adapt: (step) => (step.text.includes('verso schema') ? previewBesideService(step, data) : step),
  })
  const previews = outputs.filter((text) => text.includes(`sqlite:${data}/verso.db`))
  expect(previews).toEqual([
    `No changes are needed in sqlite:${data}/verso.db.\n`,
    expect.stringMatching(
      /^Planned for .*:\n {2}\+ todo\.Tag\.icon: new column \(string\)\nThe service applies /,
    ),
  ])
  expect(outputs.at(-1)).toMatch(/\d+\.\d+\.\d+\n$/)
})

/** The steps around the preview of a migration: the service of the guide runs with the starter models, and a model gets a field. */
function previewBesideService(step: Step, data: string): Step[] {
  const preview = step.text.replace('/var/lib/verso', data)
  const database = /--db (\S+)/.exec(preview)?.[1] ?? ''
  const addField = `node -e "
    const fs = require('node:fs')
    const tag = JSON.parse(fs.readFileSync('models-new/tag.json', 'utf8'))
    fs.writeFileSync('models-new/tag.json', JSON.stringify({ ...tag, fields: { ...tag.fields, icon: { type: 'string' } } }))"`
  return [
    { ...step, kind: 'serve', text: `npx verso serve --db ${database} --models models` },
    { ...step, text: `cp -r models models-new\n${preview}` },
    { ...step, text: `${addField}\n${preview}` },
    { ...step, text: STOP_SERVICE },
  ]
}

test('systemd accepts the unit file, and its command starts and stops the service with the settings of the guide', async () => {
  const folder = mkdtempSync(path.join(scratch, 'unit-'))
  const unit = path.join(folder, 'verso.service')
  writeFileSync(unit, readGuideFile('verso.service').replace('/usr/bin/node', process.execPath))
  // Without this flag, faults of other units of this machine count, too.
  const verified = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', unit], {
    encoding: 'utf8',
  })
  const printedByVerify = verified.stdout + verified.stderr
  expect(verified.status, printedByVerify).toBe(0)
  expect(printedByVerify.split('\n').filter((line) => line.includes('verso.service'))).toEqual([])

  // WorkingDirectory, EnvironmentFile and ExecStart, with the places of this test.
  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(ROOT, path.join(folder, 'node_modules/verso-records'))
  const settings = readGuideFile('env')
    .replace('/srv/verso/models', CONTACTS)
    .replace('/var/lib/verso', folder)
    .trim()
    .split('\n')
    .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(readGuideFile('verso.service')) ?? []
  const [, ...args] = command.split(' ')
  const env = { PATH: process.env['PATH'], ...Object.fromEntries(settings), VERSO_PORT: '0' }
  const service = spawn(process.execPath, args, { cwd: folder, env })
  const exited = once(service, 'exit') as Promise<[number | null]>
  let [printed, log] = ['', '']
  service.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  service.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  try {
    await vi.waitFor(() => expect(printed, log).toContain('Stop it with Ctrl-C'), UNTIL_STARTED)
    expect(printed).toContain(`https://${HOST}/setup?token=`)
    service.kill('SIGTERM')
    expect((await exited)[0], log).toBe(0)
  } finally {
    service.kill('SIGKILL')
  }
})

const PROXIES = [
  { name: 'Caddy', start: startCaddy },
  { name: 'nginx', start: startNginx },
]

let proxies: ChildProcess[] = []
afterEach(async () => {
  for (const proxy of proxies) {
    if (proxy.exitCode !== null) continue
    const ended = once(proxy, 'exit')
    proxy.kill('SIGTERM')
    await ended
  }
  proxies = []
})

describe.for(PROXIES)('$name with the configuration of the guide', ({ start: startProxy }) => {
  let port = 0
  let log: () => string = () => ''
  const ask = async (method: string, url: string, options: AskOptions = {}) =>
    send(port, method, url, options)

  async function startAll(): Promise<void> {
    const settings = ['--public-url', `https://${HOST}`, '--trust-proxy', 'loopback', '--log-format', 'json']
    const service = await start(
      ['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase(), ...settings],
      { VERSO_ADMIN_PASSWORD: PASSWORD },
    )
    log = service.log
    port = await findFreePort()
    await startProxy(new URL(service.url).port, port)
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

test('Caddy serves a page of your own on the same origin as the service', async () => {
  const service = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()], {
    VERSO_PUBLIC_URL: `https://${HOST}`,
  })
  const page = mkdtempSync(path.join(scratch, 'page-'))
  writeFileSync(path.join(page, 'index.html'), '<h1>My page</h1>')
  const port = await findFreePort()
  await startCaddy(
    new URL(service.url).port,
    port,
    readGuideFile('Caddyfile.page').replace('/srv/page', page),
  )
  expect((await send(port, 'GET', '/')).text).toBe('<h1>My page</h1>')
  expect((await send(port, 'GET', '/ws/me')).status).toBe(401)
  expect((await send(port, 'GET', '/healthz')).status).toBe(200)
})

async function startCaddy(
  servicePort: string,
  port: number,
  text = readGuideFile('Caddyfile'),
): Promise<void> {
  const folder = mkdtempSync(path.join(scratch, 'caddy-'))
  const file = path.join(folder, 'Caddyfile')
  // Its own certificate authority instead of one of the internet; a free port instead of 443.
  const global = `{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port ${port}\n\tskip_install_trust\n\tlocal_certs\n}\n`
  writeFileSync(file, global + text.replaceAll('localhost:8080', `localhost:${servicePort}`))
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  await startProxyProcess('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], env, port)
}

async function startNginx(servicePort: string, port: number): Promise<void> {
  const folder = mkdtempSync(path.join(scratch, 'nginx-'))
  const [key, certificate] = [path.join(folder, 'key.pem'), path.join(folder, 'certificate.pem')]
  const subject = ['-subj', `/CN=${HOST}`, '-days', '1']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, ...subject],
    {
      stdio: 'ignore',
    },
  )
  const site = readGuideFile('verso.conf')
    .replace('127.0.0.1:8080', `127.0.0.1:${servicePort}`)
    .replace('listen 80;', `listen 127.0.0.1:${await findFreePort()};`)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
    .replace(/\S+fullchain\.pem/, certificate)
    .replace(/\S+privkey\.pem/, key)
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const file = path.join(folder, 'nginx.conf')
  const settings = `daemon off; pid ${folder}/nginx.pid; error_log stderr;${process.getuid?.() === 0 ? ' user root;' : ''}`
  writeFileSync(file, `${settings} events {} http { access_log off; ${places.join(' ')}\n${site} }`)
  await startProxyProcess('nginx', ['-c', file, '-e', 'stderr'], process.env, port)
}

async function startProxyProcess(
  name: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  port: number,
): Promise<void> {
  const proxy = spawn(name, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  proxy.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  await new Promise<void>((resolve, reject) => {
    proxy.on('spawn', resolve)
    proxy.on('error', () => {
      reject(new Error(`${name} is not installed: this test needs it (on Debian: apt-get install ${name})`))
    })
  })
  proxies.push(proxy)
  await vi.waitFor(async () => {
    const health = await send(port, 'GET', '/healthz').catch(() => undefined)
    expect(health?.status, stderr).toBe(200)
  }, UNTIL_STARTED)
}

interface AskOptions {
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

async function open(
  port: number,
  method: string,
  url: string,
  { headers = {}, body }: AskOptions = {},
): Promise<IncomingMessage> {
  const options = {
    host: '127.0.0.1',
    localAddress: CLIENT_ADDRESS,
    port,
    method,
    path: url,
    servername: HOST,
    rejectUnauthorized: false,
    agent: false,
  } as const
  const sent = request({ ...options, headers: { host: HOST, ...headers } })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}

async function send(port: number, method: string, url: string, options: AskOptions = {}) {
  const response = await open(port, method, url, options)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }
}
