// Reverse proxies of the folder deploy, with the programs from Debian's packages, on free ports of this computer.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import path from 'node:path'
import { afterEach, expect, vi } from 'vitest'
import { scratch } from '../cli/program.js'
import { findFreePort } from '../docs/reader.js'
import { readDeployFile } from './unit-file.js'

export const HOST = 'records.example.org'
/** Linux answers on all of 127.0.0.0/8, so a client can have another address than the proxy, which connects from 127.0.0.1. */
export const CLIENT_ADDRESS = '127.0.0.2'
const UNTIL_STARTED = { timeout: 60_000, interval: 100 }

let proxies: ChildProcess[] = []

/** For each test file that starts proxies: stops them after each test. */
export function stopProxiesAfterwards(): void {
  afterEach(async () => {
    for (const proxy of proxies) {
      if (proxy.exitCode !== null) continue
      const ended = once(proxy, 'exit')
      proxy.kill('SIGTERM')
      await ended
    }
    proxies = []
  })
}

/** Starts Caddy with a file of the folder. `replace` puts the addresses of this test in place of those of the file. */
export async function startCaddy(
  port: number,
  replace: (text: string) => string,
  name = 'Caddyfile',
): Promise<void> {
  const folder = mkdtempSync(path.join(scratch, 'caddy-'))
  const file = path.join(folder, 'Caddyfile')
  // Its own certificate authority instead of one of the internet; a free port instead of 443.
  const global = `{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port ${port}\n\tskip_install_trust\n\tlocal_certs\n}\n`
  writeFileSync(file, global + replace(readDeployFile(name)))
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  await startProxy('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port, env)
}

/** Returns the certificate. */
export async function startNginx(port: number, replace: (text: string) => string): Promise<string> {
  const folder = mkdtempSync(path.join(scratch, 'nginx-'))
  const { key, certificate } = makeCertificate(folder)
  const site = replace(readDeployFile('nginx.conf'))
    .replace('listen 80;', `listen 127.0.0.1:${await findFreePort()};`)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
    .replace(/\S+fullchain\.pem/, certificate)
    .replace(/\S+privkey\.pem/, key)
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const file = path.join(folder, 'nginx.conf')
  const settings = `daemon off; pid ${folder}/nginx.pid; error_log stderr;${isRoot() ? ' user root;' : ''}`
  writeFileSync(file, `${settings} events {} http { access_log off; ${places.join(' ')}\n${site} }`)
  await startProxy('nginx', ['-c', file, '-e', 'stderr'], port)
  return certificate
}

/** Returns the certificate. */
export async function startHaproxy(port: number, replace: (text: string) => string): Promise<string> {
  const folder = mkdtempSync(path.join(scratch, 'haproxy-'))
  const { key, certificate } = makeCertificate(folder)
  const both = path.join(folder, 'both.pem')
  writeFileSync(both, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'))
  const text = replace(readDeployFile('haproxy.cfg'))
    .replace('bind :80\n', `bind 127.0.0.1:${await findFreePort()}\n`)
    .replace(/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port} ssl crt ${both}`)
  const file = path.join(folder, 'haproxy.cfg')
  // Only root can change to the user of the file.
  writeFileSync(file, isRoot() ? text : text.replaceAll(/^ {4}(user|group) haproxy\n/gm, ''))
  await startProxy('haproxy', ['-W', '-q', '-f', file], port)
  return certificate
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function makeCertificate(folder: string): { readonly key: string; readonly certificate: string } {
  const [key, certificate] = [path.join(folder, 'key.pem'), path.join(folder, 'certificate.pem')]
  const files = ['-nodes', '-keyout', key, '-out', certificate]
  const names = `subjectAltName=DNS:${HOST},IP:127.0.0.1`
  const subject = ['-subj', `/CN=${HOST}`, '-addext', names, '-days', '1']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', ...files, ...subject],
    { stdio: 'ignore' },
  )
  return { key, certificate }
}

/** Starts the program, and waits until requests reach a service through it. */
async function startProxy(name: string, args: string[], port: number, env = process.env): Promise<void> {
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
    // 421: the service has another public URL.
    expect([200, 421], stderr).toContain(health?.status)
  }, UNTIL_STARTED)
}

export interface SendOptions {
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

/** Sends a request over TLS as a client with an address of its own. Resolves when the response begins. */
export async function open(
  port: number,
  method: string,
  url: string,
  { headers = {}, body }: SendOptions = {},
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

export async function send(port: number, method: string, url: string, options: SendOptions = {}) {
  const response = await open(port, method, url, options)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }
}
