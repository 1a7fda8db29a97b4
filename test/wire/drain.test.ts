// The end of a drain: which clients still connect before the listener closes.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ConnectionTracker } from '../../src/http/connection/connection-tracker.js'
import type { RoutePlugin } from '../../src/http/ext/route-plugin.js'
import { startService } from '../targets.js'

const QUIET_MS = 100
/** Longer than the quiet period of the service, shorter than its wait for the last answers. */
const LATE_MS = 60
/** Between the connections of one client. */
const PAUSE_MS = 5
const CONNECTIONS = 5

async function startTracked() {
  const server = createServer().listen(0, '127.0.0.1')
  const connections = new ConnectionTracker(100)
  connections.track(server)
  await once(server, 'listening')
  onTestFinished(() => connections.drain())
  return { server, connections }
}

/** Connects again and again, with a pause, until the connection is refused. Returns how often it was accepted. */
async function keepConnecting(server: Server, max: number): Promise<number> {
  const { port } = server.address() as AddressInfo
  for (let count = 0; count < max; count++) {
    const socket = connect(port, '127.0.0.1')
    const isAccepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (!isAccepted) return count
    await sleep(PAUSE_MS)
  }
  return max
}

test('the listener closes after a quiet period without a connection', async () => {
  const { server, connections } = await startTracked()
  const accepted = keepConnecting(server, CONNECTIONS)
  const closedAtMs = await connections.stopListening([server], QUIET_MS)
  const stoppedAtMs = Date.now()
  expect(await accepted).toBe(CONNECTIONS)
  expect(server.listening).toBe(false)
  expect(closedAtMs).toBeLessThanOrEqual(stoppedAtMs)
})

test('the mutant without a quiet period refuses a client that pauses', async () => {
  let isRefused = false
  // On a busy machine the client may have connected as often as it wants before the listener closes.
  for (let attempt = 0; attempt < 10 && !isRefused; attempt++) {
    const { server, connections } = await startTracked()
    const accepted = keepConnecting(server, CONNECTIONS)
    await connections.stopListening([server])
    isRefused = (await accepted) < CONNECTIONS
  }
  expect(isRefused).toBe(true)
})

test('the listener closes although a client connects again and again', async () => {
  const { server, connections } = await startTracked()
  const accepted = keepConnecting(server, Infinity)
  await connections.stopListening([server], QUIET_MS)
  expect(await accepted).toBeGreaterThan(0)
})

test('after a drain, a client that gets a late answer connects again and is answered', async () => {
  let isAsked: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (isAsked = resolve))
  let answer: (value: object) => void = () => undefined
  const slow: RoutePlugin = (fastify, _, done) => {
    fastify.get('/slow', { config: { access: 'public' } }, () => {
      isAsked()
      return new Promise((resolve) => (answer = resolve))
    })
    done()
  }
  const service = await startService('sqlite', { http: { drainMs: 1 }, routes: [slow] })
  onTestFinished(() => service.close())
  const { server, url } = service
  const first = fetch(`${url}/ext/slow`)
  await asked
  const closed = server.close()
  await sleep(LATE_MS)
  answer({})
  expect((await first).status).toBe(200)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  await closed
})
