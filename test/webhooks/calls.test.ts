// One webhook call: its destination, its response, and the outcome that it reports.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createSecureServer } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { callWebhook, type EgressOptions } from '../../src/service/egress/call.js'
import { computeBackoff } from '../../src/service/background/background-work.js'
import { resolveHost, type HostResolver } from '../../src/service/egress/destination.js'
import { EgressPolicy } from '../../src/service/egress/egress-policy.js'
import { callByName } from '../mutants/webhooks.js'
import { IDENTITY } from './identity.js'
import { Receiver } from './receiver.js'

let receiver: Receiver
beforeEach(async () => {
  receiver = await Receiver.listen()
})
afterEach(() => receiver.close())

const outgoing = (more: Partial<EgressOptions> = {}): EgressOptions => ({
  ...{
    egressPolicy: new EgressPolicy(['127.0.0.1']),
    resolve: resolveHost,
    timeoutMs: 10_000,
    userAgent: 'test',
    ...more,
  },
})
const message = (url: string) => ({ url, headers: { 'x-more': 'a' }, body: '{"webhook":1,"data":"ü"}' })

test('a webhook call delivers its URL, headers and body unchanged', async () => {
  expect(await callWebhook(outgoing(), message(`${receiver.url}?a=b%20c`))).toMatchObject({
    status: 204,
    error: null,
  })
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.calls
  expect(body).toBe('{"webhook":1,"data":"ü"}')
  expect(headers).toMatchObject({
    ...{ 'user-agent': 'test', 'x-more': 'a', 'content-length': '25', host: `127.0.0.1:${receiver.port}` },
  })
})

test.for([
  [200, null],
  [299, null],
  [301, 'responded with a redirect, which is not followed'],
  [307, 'responded with a redirect, which is not followed'],
  [404, 'responded with 404'],
  [500, 'responded with 500'],
] as const)(
  'a response of %i is reported as the outcome of the call, and redirects are not followed',
  async ([status, error]) => {
    receiver.answering = (_, response) => {
      response.writeHead(status, { location: receiver.url }).end()
      return undefined
    }
    expect(await callWebhook(outgoing(), message(receiver.url))).toMatchObject({ status, error })
    expect(receiver.calls).toHaveLength(1)
  },
)

test('a call stops reading an endless response', async () => {
  let written = 0
  receiver.answering = (_, response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write('a'.repeat(16_384))) written += 16_384
    }
    response.on('drain', more)
    response.on('error', () => undefined)
    more()
    return undefined
  }
  expect(await callWebhook(outgoing(), message(receiver.url))).toMatchObject({ status: 200, error: null })
  expect(written).toBeLessThan(32 * 1024 * 1024)
})

test('a call to a receiver that never responds fails after the timeout', async () => {
  receiver.answering = () => undefined
  expect(await callWebhook(outgoing({ timeoutMs: 200 }), message(receiver.url))).toMatchObject({
    ...{ status: null, error: 'no response within 0.2 s' },
  })
})

test('a call whose DNS lookup never ends fails after the timeout', async () => {
  const resolve: HostResolver = async () => new Promise(() => undefined)
  expect(
    await callWebhook(outgoing({ timeoutMs: 200, resolve }), message('http://hooks.example/')),
  ).toMatchObject({
    ...{ status: null, error: 'no response within 0.2 s' },
  })
})

test('a call reports a non-HTTP answer, a refused connection and an unknown host in plain words', async () => {
  const strange = createServer((socket) => socket.resume().end('220 mail.example ESMTP\r\n')).listen(
    0,
    '127.0.0.1',
  )
  await once(strange, 'listening')
  const { port } = strange.address() as AddressInfo
  expect((await callWebhook(outgoing(), message(`http://127.0.0.1:${port}/`)))?.error).toMatch(
    /^request failed \(HPE_/,
  )
  strange.close()
  await once(strange, 'close')
  expect((await callWebhook(outgoing(), message(`http://127.0.0.1:${port}/`)))?.error).toBe(
    'connection refused',
  )
  const nowhere: HostResolver = async () =>
    Promise.reject(Object.assign(new Error(''), { code: 'ENOTFOUND' }))
  expect((await callWebhook(outgoing({ resolve: nowhere }), message('http://hooks.example/')))?.error).toBe(
    'unknown host',
  )
})

/** A receiver that serves https as hooks.example, and the Host header of each call. */
async function listenSecurely() {
  const calls: string[] = []
  const server = createSecureServer(IDENTITY, (request, response) => {
    calls.push(String(request.headers.host))
    response.writeHead(204).end()
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, calls, port: (server.address() as AddressInfo).port }
}

test('a receiver with an untrusted certificate gets no request, despite NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
  const { server, calls, port } = await listenSecurely()
  const resolve: HostResolver = async () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  try {
    const outcome = await callWebhook(outgoing({ resolve }), message(`https://hooks.example:${port}/`))
    expect(outcome?.error).toBe('certificate not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)')
    expect(calls).toEqual([])
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    server.close()
  }
})

test('a receiver with a trusted certificate is called, but only under the name on the certificate', async () => {
  const { server, calls, port } = await listenSecurely()
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-calls-'))
  const authority = path.join(folder, 'authority.pem')
  writeFileSync(authority, IDENTITY.cert)
  const built = (file: string) =>
    JSON.stringify(new URL(`../../dist/service/egress/${file}`, import.meta.url).href)
  const script = `
    const { callWebhook } = await import(${built('call.js')})
    const { EgressPolicy } = await import(${built('egress-policy.js')})
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const outgoing = { egressPolicy: new EgressPolicy(['127.0.0.1']), resolve, timeoutMs: 10_000, userAgent: 'test' }
    for (const host of ['hooks.example', 'other.example']) {
      const outcome = await callWebhook(outgoing, { url: 'https://' + host + ':${port}/', headers: {}, body: '{}' })
      console.log(outcome.status, outcome.error)
    }`
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: authority },
    })
    expect(stdout).toBe('204 null\nnull certificate not trusted (ERR_TLS_CERT_ALTNAME_INVALID)\n')
    expect(calls).toEqual([`hooks.example:${port}`])
  } finally {
    server.close()
    rmSync(folder, { recursive: true })
  }
})

test('an address that is not allowed is not called, and the outcome says why', async () => {
  const outcome = await callWebhook(outgoing({ egressPolicy: new EgressPolicy([]) }), message(receiver.url))
  expect(outcome).toMatchObject({
    status: null,
    error:
      'blocked: 127.0.0.1 is a loopback address: start the service with --webhook-allow 127.0.0.1 to allow it',
  })
  const resolve: HostResolver = async () => Promise.resolve([{ address: '10.0.0.1', family: 4 }])
  expect((await callWebhook(outgoing({ resolve }), message('http://hooks.example/')))?.error).toBe(
    'blocked: 10.0.0.1 (hooks.example) is a private address: start the service with --webhook-allow hooks.example to allow it',
  )
  expect(receiver.calls).toEqual([])
})

test('a call connects to the address that was checked (DNS rebinding); the mutant that resolves again is caught', async () => {
  const checked = await Receiver.listen('127.0.0.2', receiver.port)
  try {
    let asked = 0
    // The allowed address on the first lookup, another one on every later lookup.
    const resolve: HostResolver = async () =>
      Promise.resolve([{ address: asked++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }])
    const options = outgoing({ egressPolicy: new EgressPolicy(['127.0.0.2']), resolve })
    const url = `http://hooks.example:${receiver.port}/hook`
    expect(await callWebhook(options, message(url))).toMatchObject({ status: 204 })
    expect([asked, checked.calls.length, receiver.calls.length]).toEqual([1, 1, 0])
    asked = 0
    expect(await callByName(options, url, '{}')).toBe(204)
    expect([asked, checked.calls.length, receiver.calls.length]).toEqual([2, 1, 1])
  } finally {
    await checked.close()
  }
})

test('the retry delay of a webhook grows from about 1 second to at most 1 hour, with jitter', () => {
  for (const [failures, seconds] of [1, 2, 4, 8, 16].map((each, index) => [index + 1, each] as const)) {
    expect(computeBackoff(failures, 0)).toBe(seconds * 750)
    expect(computeBackoff(failures, 1)).toBe(seconds * 1_000)
  }
  for (const failures of [13, 20, 1_000, 1_000_000])
    expect([computeBackoff(failures, 0), computeBackoff(failures, 1)]).toEqual([45 * 60_000, 60 * 60_000])
  expect(new Set(Array.from({ length: 20 }, () => computeBackoff(20))).size).toBeGreaterThan(1)
})
