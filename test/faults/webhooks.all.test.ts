// Webhooks deliver every change at least once and in order, whatever happens to receivers and nodes.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecord, updateRecord } from '../../src/service/records/save.js'
import { createWebhook, readWebhookState, listDeliveries } from '../../src/service/webhooks/webhooks.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import type { WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import {
  onEveryEngine,
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type Engine,
  type DatabaseLocation,
  type Service,
  type ServiceOptions,
} from '../targets.js'
import { movesBeforeAnswer, withoutLease } from '../mutants/webhooks.js'
import { isGenuine, Receiver } from '../webhooks/receiver.js'
import { startServerProcess } from './server-process.js'
import { createContext } from '../../src/service/context/context.js'

const CONTACT = 'crm.Contact'
const PAGE = { offset: 0, limit: 1_000 }
const PATIENTLY = { timeout: 50_000 }

let receiver: Receiver
const running: Service[] = []

beforeEach(async () => {
  receiver = await Receiver.listen()
})
afterEach(async () => {
  for (const service of running.splice(0)) await service.close()
  await receiver.close()
})

async function start(engine: Engine, options: ServiceOptions = {}): Promise<Service> {
  const service = await startService(engine, {
    ...{ runsBackgroundWork: true, ...options },
    settings: { webhookAllow: ['127.0.0.1'], ...options.settings },
  })
  running.push(service)
  return service
}

const hookOf = async ({ app }: Service, more = {}) =>
  createWebhook(createContext(app, SERVICE_PRINCIPAL), { name: 'all', url: receiver.url, ...more })

async function write({ app }: Service, count: number): Promise<WireRecord[]> {
  const model = app.catalog.get(CONTACT)
  const made: WireRecord[] = []
  for (let i = 0; i < count; i++) {
    const { data } = await createRecord(createContext(app, SERVICE_PRINCIPAL), model, { firstName: `n${i}` })
    made.push(
      (
        await updateRecord(createContext(app, SERVICE_PRINCIPAL), model, {
          id: data.id,
          data: {
            version: 0,
            lastName: 'Doe',
          },
        })
      ).data,
    )
  }
  return made
}

const seqsOf = (changes: readonly { readonly seq: number }[]) => changes.map(({ seq }) => seq)

/** Without duplicates, every change arrived once, and each record went from version to version. */
function expectAll(contacts: readonly WireRecord[]): void {
  const { folded } = receiver
  expect(seqsOf(folded)).toEqual(seqsOf(folded).sort((a, b) => a - b))
  const versions = new Map<number, number[]>()
  for (const { id, version } of folded) versions.set(id, [...(versions.get(id) ?? []), version])
  for (const { id, version } of contacts)
    expect(versions.get(id)).toEqual(Array.from({ length: version + 1 }, (_, each) => each))
}

onEveryEngine((engine) => {
  test('a webhook delivers all changes in order, signed, and in batches', async () => {
    const service = await start(engine)
    const { record, secret } = await hookOf(service)
    const contacts = await write(service, 150)
    await receiver.until(({ taken }) => taken.length === 300)
    expectAll(contacts)
    expect(receiver.taken).toHaveLength(300)
    expect(receiver.mostAtOnce).toBe(1)
    for (const call of receiver.calls) {
      expect(isGenuine(secret, call)).toBe(true)
      expect(isGenuine(secret, { ...call, body: `${call.body} ` })).toBe(false)
      expect(call.message).toMatchObject({ webhook: record.id, next: call.message.data?.at(-1)?.seq })
      expect(call.message.data?.length).toBeLessThanOrEqual(100)
      expect(call.headers['content-type']).toBe('application/json; charset=utf-8')
      expect(call.headers['user-agent']).toBe('verso')
      expect(Math.abs(Date.now() / 1_000 - Number(call.headers['webhook-timestamp']))).toBeLessThan(120)
    }
    const ids = receiver.calls.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(ids.length)
    await expect
      .poll(async () => readWebhookState(service.app, record.id), PATIENTLY)
      .toMatchObject({ lag: 0, failures: 0, paused: false, nextAttemptOn: null })
    const { total, data } = await listDeliveries(service.app, record.id, PAGE)
    expect(total).toBe(receiver.calls.length)
    expect(data.map(({ message }) => message)).toEqual(ids.reverse())
    expect(data.reduce((sum, { changes }) => sum + changes, 0)).toBe(300)
  })

  test('a webhook retries the same message after 500 until it succeeds, without loss or reordering', async () => {
    const service = await start(engine)
    const { contacts, webhook } = await failThrice(service)
    expectAll(contacts)
    const [first, second, third, fourth] = receiver.calls.map(({ headers, body }) => ({
      id: headers['webhook-id'],
      body,
    }))
    // More changes were committed meanwhile, but the retried message is the same.
    expect([second, third, fourth]).toEqual([first, first, first])
    const { data } = await listDeliveries(service.app, webhook, PAGE)
    expect([...data].reverse().slice(0, 4)).toMatchObject([
      ...[1, 2, 3].map((attempt) => ({ attempt, status: 500, error: 'responded with 500' })),
      { attempt: 4, status: 204, error: null },
    ])
  })

  test('the mutant that moves the cursor before the response loses changes, and is caught', async () => {
    const location = await preparedLocation(engine)
    const database = movesBeforeAnswer(
      await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 }),
    )
    const service = await start(engine, { location, database })
    await expect(failThrice(service).then(({ contacts }) => expectAll(contacts))).rejects.toThrow()
    await service.close()
    running.splice(0)
    location.remove()
  })

  test('a webhook retries a call that timed out', async () => {
    const service = await start(engine, { outgoing: { timeoutMs: 300 } })
    receiver.answering = ({ headers }) => {
      const isFirst =
        receiver.calls.filter((call) => call.headers['webhook-id'] === headers['webhook-id']).length === 1
      return isFirst ? undefined : 200
    }
    const { record } = await hookOf(service)
    const contacts = await write(service, 3)
    await receiver.until(({ folded }) => folded.length === 6)
    expectAll(contacts)
    const { data } = await listDeliveries(service.app, record.id, PAGE)
    expect(data.at(-1)).toMatchObject({ attempt: 1, status: null, error: 'no response within 0.3 s' })
  })

  test('a webhook delivers its changes when a stopped receiver is back', async () => {
    const service = await start(engine)
    const { port } = receiver
    await receiver.close()
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      ...{ name: 'down', url: `http://127.0.0.1:${port}/` },
    })
    const contacts = await write(service, 2)
    await expect
      .poll(async () => (await readWebhookState(service.app, record.id)).failures, PATIENTLY)
      .toBeGreaterThan(0)
    await receiver.listenAgain(port)
    await receiver.until(({ folded }) => folded.length === 4)
    expectAll(contacts)
    const { data } = await listDeliveries(service.app, record.id, PAGE)
    expect(data.at(-1)).toMatchObject({ status: null, error: 'connection refused' })
  })

  test('a paused webhook makes no calls, and continues from its cursor when it is resumed', async () => {
    const service = await start(engine)
    const model = service.app.catalog.get('verso.feed.Webhook')
    const { record } = await hookOf(service)
    const before = await write(service, 2)
    await receiver.until(({ taken }) => taken.length === 4)
    const paused = await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), model, {
      id: record.id,
      data: {
        version: 0,
        paused: true,
      },
    })
    const meanwhile = await write(service, 3)
    expect(await readWebhookState(service.app, record.id)).toMatchObject({ paused: true })
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), model, {
      id: record.id,
      data: {
        version: paused.data.version,
        paused: false,
      },
    })
    await receiver.until(({ folded }) => folded.length === 10)
    expectAll([...before, ...meanwhile])
  })

  test('one of two nodes calls a webhook at a time, and the other continues when it stops', async () => {
    const location = await preparedLocation(engine)
    const nodes = await startTwo(engine, location)
    const contacts: WireRecord[] = []
    for (let i = 0; i < 20; i++) for (const node of nodes) contacts.push(...(await write(node, 1)))
    await receiver.until(({ folded }) => folded.length === 2 * contacts.length)
    const last = receiver.calls.at(-1)?.headers['user-agent']
    const [stopped, other] = last === 'a' ? nodes : [nodes[1], nodes[0]]
    running.splice(running.indexOf(stopped), 1)
    await stopped.close()
    contacts.push(...(await write(other, 5)))
    await receiver.until(({ folded }) => folded.length === 2 * contacts.length)
    expect(receiver.calls.at(-1)?.headers['user-agent']).not.toBe(last)
    expectAll(contacts)
    expect(receiver.mostAtOnce).toBe(1)
    await other.close()
    running.splice(0)
    location.remove()
  })

  test('the mutant without a lease calls from two nodes concurrently, and is caught', async () => {
    const location = await preparedLocation(engine)
    const nodes = await startTwo(engine, location, withoutLease)
    while (receiver.mostAtOnce < 2) for (const node of nodes) await write(node, 1)
    for (const node of running.splice(0)) await node.close()
    location.remove()
  })

  test('when the node that calls a webhook is killed, another node continues', async () => {
    const location = await preparedLocation(engine)
    const agents = ['node-a', 'node-b']
    const nodes = new Map<string, Awaited<ReturnType<typeof startServerProcess>>>()
    for (const agent of agents)
      nodes.set(agent, await startServerProcess(location.url, undefined, undefined, { WEBHOOKS: agent }))
    const all = [...nodes.values()]
    try {
      const client = await HttpClient.login(all[0]?.url ?? '', USERNAME, PASSWORD)
      let killed: string | undefined
      let isDue = false
      // In the middle of a call: received, but not answered yet.
      receiver.answering = async ({ headers }) => {
        if (killed !== undefined || !isDue) return 200
        killed = String(headers['user-agent'])
        await nodes.get(killed)?.kill()
        return 200
      }
      const made = await client.request('POST', '/ws/webhooks', { data: { name: 'all', url: receiver.url } })
      expect(made.status).toBe(200)
      const before = await writeThrough(() => clientOf(all, killed, nodes), 10)
      await receiver.until(({ folded }) => folded.length >= 2 * before.length, 'the first of them')
      isDue = true
      const contacts = [...before, ...(await writeThrough(() => clientOf(all, killed, nodes), 20))]
      await receiver.until(({ folded }) => folded.length >= 2 * contacts.length, 'the other node')
      expect(agents).toContain(killed)
      expect(receiver.calls.at(-1)?.headers['user-agent']).not.toBe(killed)
      expectAll(contacts)
    } finally {
      for (const node of all) await node.kill()
      location.remove()
    }
  })
})

/** Three calls fail, and more changes are written before each retry. */
async function failThrice(service: Service) {
  let answered = 0
  receiver.answering = () => (++answered <= 3 ? 500 : 204)
  const { record } = await hookOf(service)
  const contacts = await write(service, 5)
  for (const times of [1, 2, 3]) {
    await expect
      .poll(async () => (await readWebhookState(service.app, record.id)).failures, PATIENTLY)
      .toBeGreaterThanOrEqual(times)
    contacts.push(...(await write(service, 3)))
    service.clock.advance(10_000)
  }
  const last = contacts.at(-1)
  await receiver.until(({ taken }) => taken.some(({ id, version }) => id === last?.id && version === 1))
  return { contacts, webhook: record.id }
}

/** Two nodes that write and deliver concurrently. */
async function startTwo(
  engine: Engine,
  location: DatabaseLocation,
  mutant = (db: Database) => db,
): Promise<[Service, Service]> {
  receiver.answering = async () => new Promise((resolve) => setTimeout(() => resolve(204), 50))
  const begin = async (userAgent: string) => {
    const database = await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 })
    return start(engine, { location, outgoing: { userAgent }, database: mutant(database) })
  }
  const nodes: [Service, Service] = [await begin('a'), await begin('b')]
  await hookOf(nodes[0])
  return nodes
}

type Process = Awaited<ReturnType<typeof startServerProcess>>

/** A client of a node that is still running. */
async function clientOf(
  all: readonly Process[],
  killed: string | undefined,
  nodes: ReadonlyMap<string, Process>,
): Promise<HttpClient> {
  const living = all.find((node) => node.isRunning() && (killed === undefined || nodes.get(killed) !== node))
  return HttpClient.login(living?.url ?? '', USERNAME, PASSWORD)
}

/** Creates and updates each contact once; leaves out those that the kill interrupted. */
async function writeThrough(client: () => Promise<HttpClient>, count: number): Promise<WireRecord[]> {
  const made: WireRecord[] = []
  let current = await client()
  while (made.length < count) {
    try {
      const { data } = await current.create(CONTACT, { firstName: `n${made.length}` })
      made.push((await current.update(CONTACT, data.id, { version: 0, lastName: 'Doe' })).data)
    } catch {
      current = await client()
    }
  }
  return made
}
