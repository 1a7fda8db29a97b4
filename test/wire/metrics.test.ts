import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { serveMetrics, type MetricsServer } from '../../src/http/metrics/metrics-server.js'
import { Metrics } from '../../src/http/metrics/metrics.js'
import { toMetricName, WORK_GAUGES } from '../../src/http/metrics/state-gauges.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { ANY_FAILURE } from '../server-failures.js'
import { faceOf } from '../mutants/records.js'
import { LatencyInMilliseconds, NamesFromPaths, NoStaleMatches } from '../mutants/metrics.js'
import {
  newLocation,
  onEveryEngine,
  PASSWORD,
  startService,
  USERNAME,
  type Engine,
  type Service,
} from '../targets.js'
import { MetricsText } from './prometheus-text.js'

const MODEL = 'crm.Contact'
const UNCACHED = { cacheMs: 0, timeoutMs: 700 }
const WAIT = { timeout: 20_000, interval: 50 }
const REQUESTS = 'verso_http_request_duration_seconds_count'

class MeasuredService {
  private constructor(
    readonly service: Service,
    readonly metrics: Metrics,
    readonly server: MetricsServer,
    readonly client: HttpClient,
  ) {}

  static async start(engine: Engine, metrics: Metrics, options: Parameters<typeof startService>[1] = {}) {
    const service = await startService(engine, { ...options, metrics })
    const server = await serveMetrics(metrics, { host: 'localhost', port: 0 })
    return new MeasuredService(
      service,
      metrics,
      server,
      await HttpClient.login(service.url, USERNAME, PASSWORD),
    )
  }

  async scrape(): Promise<MetricsText> {
    const response = await fetch(this.server.url)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    return new MetricsText(await response.text())
  }

  async close(): Promise<void> {
    await this.server.close()
    await this.service.close()
  }
}

/** Sends requests of every kind. Resolves with the differences between them and the metrics. */
async function findDifferences(measured: MeasuredService): Promise<string[]> {
  const { client } = measured
  const before = await measured.scrape()
  const path = `/ws/rest/${MODEL}`
  const send = async (method: string, target: string, body?: unknown, headers: Record<string, string> = {}) =>
    (await client.request(method, target, body, headers)).status
  const statuses: number[] = []
  const created = await client.create(MODEL, { lastName: 'Ada', email: 'a@example.org' })
  const { id } = created.data
  const record = `${path}/${id}`
  statuses.push(await send('POST', record, { data: { version: 0, lastName: 'Lovelace' } }))
  statuses.push(await send('POST', record, { data: { version: 0, lastName: 'Byron' } }))
  statuses.push(
    await send('POST', record, { data: { version: 0, email: 'b@example.org' } }, { prefer: 'merge=fields' }),
  )
  statuses.push(await send('POST', record, { data: { email: 'c@example.org' } }, { 'if-match': '"0"' }))
  statuses.push(
    await send('GET', record),
    await send('GET', record),
    await send('GET', `/ws/rest/no.Such/${id}`),
  )
  statuses.push(await send('GET', '/nothing/here'))
  expect(statuses).toEqual([200, 409, 200, 412, 200, 200, 404, 404])
  const after = await measured.scrape()
  const expected: (readonly [name: string, labels: Record<string, string>, growth: number])[] = [
    [REQUESTS, { method: 'PUT', route: '/ws/rest/:model', status: '2xx', model: MODEL }, 1],
    [REQUESTS, { method: 'POST', route: '/ws/rest/:model/:id', status: '2xx', model: MODEL }, 2],
    [REQUESTS, { method: 'POST', route: '/ws/rest/:model/:id', status: '4xx', model: MODEL }, 2],
    [REQUESTS, { method: 'GET', route: '/ws/rest/:model/:id', status: '2xx', model: MODEL }, 2],
    [REQUESTS, { method: 'GET', route: '/ws/rest/:model/:id', status: '4xx', model: '' }, 1],
    [REQUESTS, { method: 'GET', route: 'none', status: '4xx' }, 1],
    ['verso_http_errors_total', { kind: 'conflict', model: MODEL }, 1],
    ['verso_http_errors_total', { kind: 'stale-match', model: MODEL }, 1],
    ['verso_http_errors_total', { kind: 'unknown-model' }, 1],
    ['verso_http_merges_total', { model: MODEL }, 1],
    ['verso_log_last_seq', {}, 3],
  ]
  const differences: string[] = []
  for (const [name, labels, growth] of expected) {
    const grown = (after.sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0)
    if (grown !== growth)
      differences.push(`${name} ${JSON.stringify(labels)} grew by ${grown}, not ${growth}`)
  }
  const slow = after.sum('verso_http_request_duration_seconds_sum') ?? 0
  const count = after.sum(REQUESTS) ?? 0
  // A request of this test takes milliseconds.
  if (slow / count > 1) differences.push(`requests took ${slow / count} s on average`)
  const models = new Set(after.find(REQUESTS).map(({ labels }) => labels['model'] ?? ''))
  for (const model of models) if (model === 'no.Such') differences.push(`${model} is a label`)
  return differences
}

onEveryEngine((engine) => {
  describe('metrics', () => {
    let measured: MeasuredService
    beforeAll(async () => {
      measured = await MeasuredService.start(engine, new Metrics({ version: '1.2.3' }, UNCACHED))
    })
    afterAll(() => measured.close())

    test('after requests of every kind the metrics have grown by what was sent', async () => {
      expect(await findDifferences(measured)).toEqual([])
    })

    test('the state of the node, the process and the build are in a scrape', async () => {
      const text = await measured.scrape()
      expect(text.sum('verso_up')).toBe(1)
      expect(text.find('verso_writable')).toMatchObject([{ labels: { problem: '' }, value: 1 }])
      expect(text.find('verso_build_info')).toMatchObject([
        { labels: { version: '1.2.3', node: process.version }, value: 1 },
      ])
      for (const name of ['process_resident_memory_bytes', 'nodejs_heap_size_used_bytes', 'process_open_fds'])
        expect(text.sum(name)).toBeGreaterThan(0)
      expect(text.find('nodejs_eventloop_lag_p99_seconds')).toHaveLength(1)
    })

    test('the time of the last scheduled backup is that of /readyz', async () => {
      expect((await measured.scrape()).find('verso_last_verified_backup_timestamp_seconds')).toEqual([])
      const remove = measured.service.app.readiness.add(() => ({
        facts: { lastBackup: '2026-01-31T12:00:00.000Z' },
      }))
      const text = await measured.scrape()
      expect(text.sum('verso_last_verified_backup_timestamp_seconds')).toBe(Date.UTC(2026, 0, 31, 12) / 1_000)
      remove()
    })

    test('each gauge of the server is a metric with a description', async () => {
      const text = await measured.scrape()
      for (const name of Object.keys(measured.service.server.gauges())) {
        expect([name, text.sum(toMetricName(name))]).toEqual([name, 0])
        expect(WORK_GAUGES[name]).toBeDefined()
      }
    })

    test('writes that share a commit are counted with the size of their group', async () => {
      const before = await measured.scrape()
      await Promise.all(Array.from({ length: 40 }, () => measured.client.create(MODEL, { lastName: 'Many' })))
      const after = await measured.scrape()
      const grown = (name: string) => (after.sum(name) ?? 0) - (before.sum(name) ?? 0)
      expect(grown('verso_group_commit_size_sum')).toBe(40)
      const commits = grown('verso_group_commit_size_count')
      expect(commits).toBeGreaterThan(0)
      expect(commits).toBeLessThan(40)
    })

    test('a request whose client disconnects is counted as aborted', async () => {
      const before = await measured.scrape()
      const first = before.sum('verso_http_requests_aborted_total') ?? 0
      const { hostname, port } = new URL(measured.service.url)
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      const path = `/ws/changes?since=${before.sum('verso_log_last_seq') ?? 0}&wait=30`
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${measured.client.cookie}\r\n\r\n`)
      const read = async (name: string) => (await measured.scrape()).sum(name)
      await vi.waitFor(async () => expect(await read('verso_feed_readers')).toBe(1), WAIT)
      expect(await read('verso_feed_lag_changes')).toBe(0)
      socket.destroy()
      await vi.waitFor(
        async () => expect(await read('verso_http_requests_aborted_total')).toBe(first + 1),
        WAIT,
      )
    })

    test('requests beyond the limits are counted: 429 as errors, 503 as shed', async () => {
      const http = { rateLimitPerMinute: 5 }
      const limited = await MeasuredService.start(engine, new Metrics({ version: '1' }, UNCACHED), { http })
      const statuses: number[] = []
      for (let i = 0; i < 12; i++)
        statuses.push((await limited.client.request('GET', `/ws/rest/${MODEL}`)).status)
      const rejected = statuses.filter((status) => status === 429).length
      expect(rejected).toBeGreaterThan(0)
      const text = await limited.scrape()
      expect(text.sum('verso_http_errors_total', { kind: 'too-many' })).toBe(rejected)
      expect(text.sum('verso_http_shed_total')).toBe(0)
      await limited.close()
      const metrics = new Metrics({ version: '1' }, UNCACHED)
      const full = await startService(engine, {
        metrics,
        expects: ANY_FAILURE,
        http: { maxConcurrentRequests: 0 },
      })
      expect((await fetch(`${full.url}/ws/rest/${MODEL}`)).status).toBe(503)
      expect(new MetricsText(await metrics.render()).sum('verso_http_shed_total')).toBe(1)
      await full.close()
    })

    test('a webhook that cannot be called has a lag, failures, and no address in a label', async () => {
      const { client } = measured
      const created = await client.request('POST', '/ws/webhooks', {
        data: { name: 'w', url: 'https://secret.example.org/token', models: [MODEL] },
      })
      expect(created.status).toBe(200)
      await client.create(MODEL, { lastName: 'Behind' })
      const response = await fetch(measured.server.url)
      const body = await response.text()
      const text = new MetricsText(body)
      const [lag] = text.find('verso_webhook_lag_changes')
      expect(lag?.value).toBeGreaterThan(0)
      expect(Object.keys(lag?.labels ?? {})).toEqual(['webhook'])
      expect(body).not.toMatch(/secret|Behind|token|Ada/)
    })

    test('a scrape responds while the database does not, and leaves out what it does not know', async () => {
      const location = await newLocation(engine)
      const inner = await openDatabase(location.url, { poolSize: 5, statementTimeoutMs: 10_000 })
      const silent = new SilentDatabase(inner)
      const stuck = await MeasuredService.start(engine, new Metrics({ version: '1' }, UNCACHED), {
        location,
        database: silent.face,
      })
      silent.isSilent = true
      let text: MetricsText
      do {
        text = await stuck.scrape()
        // The result of the last check is kept for a second.
      } while (text.sum('verso_up') === 1)
      expect(text.find('verso_writable')).toMatchObject([{ labels: { problem: 'no-answer' }, value: 0 }])
      expect(text.find('verso_log_last_seq')).toEqual([])
      expect(text.sum('verso_requests_in_flight')).toBe(0)
      silent.isSilent = false
      silent.release()
      await stuck.close()
      location.remove()
    })
  })

  test.each([
    ['that counts no 412', NoStaleMatches],
    ['that takes the names of models from paths', NamesFromPaths],
    ['that measures in milliseconds', LatencyInMilliseconds],
  ])(`the mutant %s is caught on ${engine}`, async (_, mutant) => {
    const measured = await MeasuredService.start(engine, new mutant({ version: '1' }, UNCACHED))
    expect(await findDifferences(measured)).not.toEqual([])
    await measured.close()
  })
})

/** Statements of the reader do not answer while it is silent. */
class SilentDatabase {
  isSilent = false
  #release: () => void = () => undefined
  readonly #released = new Promise<void>((resolve) => (this.#release = resolve))

  constructor(private readonly inner: Database) {}

  release(): void {
    this.#release()
  }

  get face(): Database {
    const { reader } = this.inner
    const hold = async <T>(work: () => Promise<T>): Promise<T> => {
      if (this.isSilent) await this.#released
      return work()
    }
    return {
      ...faceOf(this.inner),
      reader: {
        all: (sql, params) => hold(() => reader.all(sql, params)),
        allShared: (sql, params) => hold(() => reader.allShared(sql, params)),
        batch: (work, input) => hold(() => reader.batch(work, input)),
        readInSnapshot: (work, otherwise) => hold(() => reader.readInSnapshot(work, otherwise)),
        withSnapshot: (work) => reader.withSnapshot(work),
      },
      writability: () => hold(() => this.inner.writability()),
    }
  }
}

describe('metrics of any engine', () => {
  test('while a node stops, it is neither up nor writable', async () => {
    const service = await startService('sqlite')
    onTestFinished(() => service.close())
    const metrics = new Metrics({ version: '1' }, UNCACHED)
    metrics.serve({ app: service.app, gauges: () => ({}), isStopping: () => true })
    const text = await metrics.render()
    expect(text).toMatch(/^verso_up 0$/m)
    expect(text).toMatch(/^verso_writable\{problem="shutting-down"\} 0$/m)
  })

  test('models are a label up to 50 models, and none beyond', async () => {
    const models = Array.from({ length: 51 }, (_, index) => ({
      file: `m${index}.ts`,
      definition: defineModel({ name: `many.M${index}`, fields: { a: { type: 'string' } } }),
    }))
    const labelsWith = async (count: number) => {
      const location = await newLocation('sqlite')
      const measured = await MeasuredService.start('sqlite', new Metrics({ version: '1' }, UNCACHED), {
        location,
        models: models.slice(0, count),
        isNew: true,
      })
      await measured.client.create('many.M1', { a: 'b' })
      const text = await measured.scrape()
      await measured.close()
      location.remove()
      return new Set(text.find(REQUESTS).map(({ labels }) => labels['model']))
    }
    expect(await labelsWith(50)).toEqual(new Set(['', 'many.M1']))
    expect(await labelsWith(51)).toEqual(new Set(['']))
  })

  test('the sizes of the database, its WAL and its disk are known on SQLite and not on PostgreSQL', async () => {
    const sizes = ['verso_database_bytes', 'verso_wal_bytes', 'verso_disk_free_bytes']
    const counts: number[] = []
    for (const engine of ['sqlite', 'postgres'] as const) {
      const measured = await MeasuredService.start(engine, new Metrics({ version: '1' }, UNCACHED))
      await measured.client.create(MODEL, { lastName: 'One' })
      const text = await measured.scrape()
      counts.push(sizes.filter((name) => (text.sum(name) ?? 0) > 0).length)
      await measured.close()
    }
    expect(counts).toEqual([3, 0])
  })

  test('other paths, methods and hosts get no metrics', async () => {
    const server = await serveMetrics(new Metrics({ version: '1' }, UNCACHED), { host: 'localhost', port: 0 })
    const { port, origin } = new URL(server.url)
    expect(new URL(server.url).hostname).toBe('127.0.0.1')
    expect((await fetch(`${origin}/`)).status).toBe(404)
    expect((await fetch(server.url, { method: 'POST' })).status).toBe(405)
    const socket = connect(Number(port), '127.0.0.1')
    socket.setEncoding('utf8')
    socket.write('GET /metrics HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n')
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    expect(answer).toMatch(/^HTTP\/1.1 421 /)
    await server.close()
  })

  test('a port in use is an error', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    await expect(
      serveMetrics(new Metrics({ version: '1' }, UNCACHED), { host: 'localhost', port }),
    ).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
    other.close()
  })
})
