// A stop with a drain: no request that was sent before the listener closed is lost, and waiting clients do not hold up the stop.
import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { createMutantProgram } from '../mutants/program.js'
import { ENGINES, newLocation, type DatabaseLocation } from '../targets.js'
import {
  findViolations,
  listAcknowledged,
  startDraining,
  stopUnderLoad,
  type StartedDemo,
  type StoppedService,
} from './stop-load.js'
import { chooseRepeats } from './repeats.js'

const DIST = path.join(import.meta.dirname, '../../dist')
const DRAIN_MS = 300
/** On each of the two engines. */
const STOPS = chooseRepeats(25, 8)
const MUTANT_STOPS = 15
/** A stop takes the drain, the grace of idle connections and the close of the database. */
const MAX_STOP_MS = 10_000

// The engines run beside each other, because most of the time passes while the demo starts.
describe.concurrent.each(ENGINES)('%s', (engine) => {
  let location: DatabaseLocation
  const started: StartedDemo[] = []
  const start = async (dist = DIST, drainMs = DRAIN_MS) => {
    const demo = await startDraining(dist, location.url, drainMs)
    started.push(demo)
    return demo
  }
  beforeAll(async () => {
    location = await newLocation(engine)
  })
  afterAll(() => {
    for (const { child } of started) child.kill('SIGKILL')
    location.remove()
  })

  test(`${STOPS} stops under load lose no request that was sent before the listener closed, and no acknowledged write`, async () => {
    const stops: StoppedService[] = []
    for (let count = 0; count < STOPS; count++) stops.push(await stopUnderLoad(await start(), DRAIN_MS))
    expect(stops.flatMap(findViolations)).toEqual([])
    expect(stops.map(({ exitCode }) => exitCode)).toEqual(stops.map(() => 0))
    expect(Math.max(...stops.map(({ ms }) => ms))).toBeLessThan(MAX_STOP_MS)
    const requests = stops.flatMap((stop) => stop.requests)
    const acknowledged = listAcknowledged(requests)
    const late = requests.filter(({ outcome }) => outcome === 'ECONNRESET').length
    process.stdout.write(
      `${engine}: ${STOPS} stops, ${requests.length} requests, ${acknowledged.length} acknowledged writes, ` +
        `${late} resets after the listener closed\n`,
    )
    const demo = await start(DIST, 0)
    const client = await HttpClient.login(demo.url, 'admin', 'admin')
    const stored = new Set<unknown>()
    for (let offset = 0; ; offset += 1_000) {
      const page = await client.find('com.axelor.contact.db.Company', {
        ...{ fields: ['code'], limit: 1_000, offset },
      })
      for (const { code } of page.data) stored.add(code)
      if (page.data.length < 1_000) break
    }
    expect(acknowledged.filter((code) => !stored.has(code))).toEqual([])
    demo.child.kill('SIGTERM')
    expect(await demo.exited).toBe(0)
  })
})

describe('a drain', () => {
  let location: DatabaseLocation
  const started: StartedDemo[] = []
  beforeAll(async () => {
    location = await newLocation('sqlite')
  })
  afterAll(() => {
    for (const { child } of started) child.kill('SIGKILL')
    location.remove()
  })
  const start = async (drainMs: number, dist = DIST) => {
    const demo = await startDraining(dist, location.url, drainMs)
    started.push(demo)
    return demo
  }

  test('the mutant that accepts the last connections slowly, and goes on answering meanwhile, is caught', async () => {
    const mutant = createMutantProgram(
      inject('runFolder'),
      {
        file: 'http/server.js',
        from: 'gate.close();\n            if (isDraining)',
        to: 'if (isDraining)',
      },
      {
        file: 'http/connection/connection-tracker.js',
        from: 'const MAX_EXTRA_TURNS = 32',
        to: 'const MAX_EXTRA_TURNS = 0',
      },
    )
    const violations = []
    for (let count = 0; count < MUTANT_STOPS && violations.length === 0; count++)
      violations.push(...findViolations(await stopUnderLoad(await start(DRAIN_MS, mutant), DRAIN_MS)))
    expect(violations.map(({ outcome }) => outcome)).toContain('ECONNRESET')
  })

  test('the mutant that ignores the drain refuses connections at once', async () => {
    const mutant = createMutantProgram(inject('runFolder'), {
      file: 'cli/settings/read-settings.js',
      from: 'drainMs: values.drain',
      to: 'drainMs: 0',
    })
    const { child, listenerClosed, exited } = await start(60_000, mutant)
    child.kill('SIGTERM')
    await listenerClosed
    expect(await exited).toBe(0)
  })

  const answerOf = (url: string, agent?: Agent) =>
    new Promise<{ status: number; connection: string | undefined; text: string }>((resolve, reject) => {
      get(url, { agent: agent ?? false }, (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += String(chunk)))
        response.once('end', () => {
          const { statusCode: status = 0, headers } = response
          resolve({ status, connection: headers.connection, text })
        })
      }).once('error', reject)
    })

  test('during the drain /readyz is 503, and requests on kept and new connections are answered and close them', async () => {
    const { url, child, exited } = await start(2_000)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const before = await answerOf(`${url}/readyz`, agent)
    expect(before).toMatchObject({ status: 200, connection: 'keep-alive' })
    child.kill('SIGTERM')
    await expect.poll(async () => (await answerOf(`${url}/readyz`)).status).toBe(503)
    for (const use of [agent, undefined]) {
      expect(await answerOf(`${url}/healthz`, use)).toMatchObject({ status: 200, connection: 'close' })
      const ready = await answerOf(`${url}/readyz`, use)
      expect(ready).toMatchObject({ status: 503, connection: 'close' })
      expect(ready.text).toContain('"problem":"shutting-down","reason":"The service is shutting down"')
    }
    agent.destroy()
    expect(await exited).toBe(0)
  })

  test('long polls, event streams and connections without a request go on during the drain, and end with it', async () => {
    const { url, child, exited } = await start(1_000)
    const client = await HttpClient.login(url, 'admin', 'admin')
    const { cookie } = client
    const { hostname, port } = new URL(url)
    const silent = connect(Number(port), hostname)
    await once(silent, 'connect')
    const { seq } = await client.find('com.axelor.contact.db.Company', { limit: 0 })
    const poll = fetch(`${url}/ws/changes?since=${seq}&wait=30`, {
      headers: { cookie },
    })
    const stream = await fetch(`${url}/ws/changes?since=${seq}`, {
      headers: { cookie, accept: 'text/event-stream' },
    })
    const startMs = performance.now()
    child.kill('SIGTERM')
    const endings = await Promise.all(
      [poll.then((response) => response.text()), stream.text(), once(silent, 'close')].map(async (ending) => {
        await ending
        return performance.now() - startMs
      }),
    )
    expect(endings.map((ms) => ms > 900)).toEqual([true, true, true])
    expect((await poll).status).toBe(200)
    expect(await exited).toBe(0)
    expect(performance.now() - startMs).toBeLessThan(MAX_STOP_MS)
  })

  test('a second signal during the drain ends the process at once', async () => {
    const { child, exited } = await start(60_000)
    const startMs = performance.now()
    child.kill('SIGTERM')
    await sleep(500)
    child.kill('SIGTERM')
    expect(await exited).toBe(1)
    expect(performance.now() - startMs).toBeLessThan(MAX_STOP_MS)
  })
})
