// Lost connections and refusals: what the client repeats, how often, and that a repeated write takes effect once.
import { describe, expect, test } from 'vitest'
import { BusyError, NetworkError, RequestError, TimeoutError, type connect } from 'verso-records/client'
import { importMutantClient, NEW_KEY_FOR_EACH_SAVE } from '../../mutants/client-code.js'
import { newKeyForEachAttempt } from '../../mutants/client.js'
import { onEngineOfTier } from '../../targets.js'
import { rejection } from './claims.js'
import type { Fault } from './faulty-proxy.js'
import { useProxiedService } from './proxied-service.js'

const CONTACT = 'crm.Contact'
const BUSY =
  'HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n'
const BUSY_BODY = JSON.stringify({ status: -1, data: { kind: 'busy', message: 'Busy', requestId: 'r-1' } })

onEngineOfTier((engine) => {
  const proxied = useProxiedService(engine)
  const { open } = proxied

  /** Gives the next requests to a path these faults, one each. */
  function plan(path: RegExp, ...faults: readonly (Fault | undefined)[]): void {
    const left = [...faults]
    proxied.proxy.choose = (request) => (path.test(request.path) ? left.shift() : undefined)
  }

  const countRequests = (path: RegExp) =>
    proxied.proxy.requests.filter((request) => path.test(request.path)).length

  test.each<Fault>([
    'lose-request',
    'lose-response',
    'cut-response',
    { message: BUSY.replace(': 1', ': 0') + BUSY_BODY },
  ])('a create makes one record after a fault: %o', async (fault) => {
    const contacts = open().model(CONTACT)
    const lastName = `retry-${countRequests(/./)}`
    plan(/crm\.Contact$/, fault, fault)
    const created = await contacts.create({ lastName })
    const { data, total } = await contacts.find({ filter: { lastName } })
    expect([total, data[0]?.id]).toEqual([1, created.id])
    const keys = proxied.proxy.requests.slice(-4, -1).map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(1)
  })

  test('the mutant that sends a new key with each attempt makes two records', async () => {
    const contacts = open({ fetch: newKeyForEachAttempt(fetch) }).model(CONTACT)
    plan(/crm\.Contact$/, 'lose-response')
    await contacts.create({ lastName: 'doubled' })
    expect((await contacts.find({ filter: { lastName: 'doubled' } })).total).toBe(2)
  })

  /** Runs an update twice with the same key. The first run meets a conflict, and the response to its second save is lost. */
  async function updateTwice(connectClient?: typeof connect) {
    const contacts = open({ retries: 0 }, connectClient).model(CONTACT)
    const { id } = await contacts.create({ phones: 0 })
    let others = 1
    const run = async () =>
      contacts
        .update(
          id,
          async (record) => {
            // Another writer causes a conflict.
            if (others-- > 0) await contacts.update(id, { version: record.version, phones: 10 })
            return { phones: (record['phones'] as number) + 1 }
          },
          { onConflict: 'retry', idempotencyKey: 'k'.repeat(255) },
        )
        .catch((error: unknown) => error as RequestError)
    let saves = 0
    proxied.proxy.choose = ({ method, path }) =>
      // The conflict, the other writer, and the update that takes effect.
      method === 'POST' && path.endsWith(`/${id}`) && ++saves === 3 ? 'lose-response' : undefined
    const results = [await run(), await run()] as const
    return { results, phones: (await contacts.read(id))['phones'] }
  }

  test('an update by a function takes effect once for each key of the caller, also after a conflict', async () => {
    const { results, phones } = await updateTwice()
    expect(results[0]).toMatchObject({ kind: 'network', idempotencyKey: 'k'.repeat(255) })
    // The function ran on the new version, so the body differs: the error says that the earlier call took effect.
    expect(results[1]).toMatchObject({ kind: 'key-reused' })
    expect(phones).toBe(11)
  })

  test('the mutant that sends each save of an update with another key counts twice', async () => {
    const { phones } = await updateTwice((await importMutantClient(NEW_KEY_FOR_EACH_SAVE)).connect)
    expect(phones).toBe(12)
  })

  test('every write is repeated with its key after a lost response, and takes effect once', async () => {
    const verso = open()
    const contacts = verso.model(CONTACT)
    const folders = verso.model('doc.Folder')
    const { id } = await contacts.create({ notes: 'one' })
    plan(/\/\d+$/, 'lose-response')
    expect((await contacts.update(id, { version: 0, notes: 'two' })).version).toBe(1)
    plan(/revert$/, 'lose-response')
    expect((await contacts.revert(id, { to: 0, version: 1 })).version).toBe(2)
    plan(/batch$/, 'lose-response')
    const [updated] = await verso.batch([
      { op: 'update', model: CONTACT, id, version: 2, data: { notes: 'three' } },
    ])
    expect(updated.version).toBe(3)
    plan(/\?version=3$/, 'lose-response')
    await contacts.remove(id, { version: 3 })
    expect((await contacts.history(id)).total).toBe(5)
    const folder = await folders.create({})
    plan(/upload$/, 'lose-response')
    const content = new Blob(['a file'])
    const uploaded = await folders.upload(folder.id, { version: 0, field: 'cover', content, name: 'a' })
    plan(/download/, 'lose-response')
    expect((await folders.clear(folder.id, 'cover', { version: uploaded.version })).version).toBe(2)
  })

  test('reads are repeated, searches by POST included', async () => {
    const contacts = open().model(CONTACT)
    const { id } = await contacts.create({})
    for (const [path, call] of [
      [/limit=1$/, () => contacts.find({ limit: 1 })],
      [/search$/, () => contacts.search({ limit: 1 })],
      [/fetch$/, () => contacts.fetch(id)],
    ] as const) {
      plan(path, 'cut-response', 'lose-request')
      const before = countRequests(path)
      await call()
      expect(countRequests(path) - before).toBe(3)
    }
  })

  test('a write by request() is repeated only with a key', async () => {
    const verso = open()
    await verso.login()
    const path = `/ws/rest/${CONTACT}`
    plan(/crm\.Contact$/, 'lose-request')
    await rejection(NetworkError, verso.request('PUT', path, { body: { data: {} } }))
    plan(/crm\.Contact$/, 'lose-request')
    const { status } = await verso.request('PUT', path, { body: { data: {} }, idempotencyKey: 'mine' })
    expect(status).toBe(200)
  })

  test('the client gives up after its retries, and the error has the key of the write', async () => {
    const contacts = open({ retries: 2 }).model(CONTACT)
    await contacts.find({ limit: 0 })
    const before = countRequests(/crm\.Contact$/)
    plan(/crm\.Contact$/, 'lose-request', 'lose-request', 'lose-request', 'lose-request')
    const error = await rejection(NetworkError, contacts.create({}))
    expect(countRequests(/crm\.Contact$/) - before).toBe(3)
    expect(error).toMatchObject({ kind: 'network', status: 0 })
    expect(error.message).toMatch(/^PUT http.*crm\.Contact got no complete response: /)
    expect(error.cause).toBeInstanceOf(Error)
    expect(error.idempotencyKey).toBe(proxied.proxy.requests.at(-1)?.headers['idempotency-key'])
  })

  test('other errors are not repeated', async () => {
    const contacts = open().model(CONTACT)
    await contacts.find({ limit: 0 })
    const before = proxied.proxy.requests.length
    await rejection(RequestError, contacts.create({ unknown: 1 }))
    expect(proxied.proxy.requests.length - before).toBe(1)
  })

  describe('Retry-After', () => {
    test.each([
      ['seconds', () => BUSY],
      ['a date', () => BUSY.replace(': 1', `: ${new Date(Date.now() + 2000).toUTCString()}`)],
    ])('is honoured as %s', async (_, message) => {
      const contacts = open().model(CONTACT)
      await contacts.find({ limit: 0 })
      plan(/limit=1$/, { message: message() + BUSY_BODY })
      const startMs = performance.now()
      await contacts.find({ limit: 1 })
      // A date has whole seconds only, so two seconds may be a little more than one.
      expect(performance.now() - startMs).toBeGreaterThan(990)
    })

    test('beyond the timeout rejects at once with the reason', async () => {
      const contacts = open({ timeout: 30_000 }).model(CONTACT)
      await contacts.find({ limit: 0 })
      plan(/limit=1$/, { message: BUSY.replace(': 1', ': 3600') + BUSY_BODY })
      const error = await rejection(BusyError, contacts.find({ limit: 1 }))
      expect(error).toMatchObject({ kind: 'busy', status: 503, retryAfterMs: 3_600_000, requestId: 'r-1' })
    })
  })

  test('the timeout covers all attempts, and its cause is the last failure', async () => {
    const contacts = open().model(CONTACT)
    await contacts.find({ limit: 0 })
    plan(/crm\.Contact$/, 'lose-request', 'hang')
    const error = await rejection(TimeoutError, contacts.create({}, { timeout: 1000 }))
    expect(error.cause).toBeInstanceOf(NetworkError)
    expect(error.idempotencyKey).toBe(proxied.proxy.requests.at(-1)?.headers['idempotency-key'])
  })

  describe('a response that is not JSON', () => {
    const html = '<!doctype html><h1>Bad gateway</h1>'
    const page = (status: string) => ({
      message: `HTTP/1.1 ${status}\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n${html}`,
    })

    test('is repeated if a proxy is at fault, and then rejects with its status', async () => {
      const contacts = open({ retries: 1 }).model(CONTACT)
      await contacts.find({ limit: 0 })
      plan(/limit=1$/, page('502 Bad Gateway'))
      await contacts.find({ limit: 1 })
      plan(/limit=1$/, page('502 Bad Gateway'), page('504 Timeout'))
      const error = await rejection(BusyError, contacts.find({ limit: 1 }))
      expect(error).toMatchObject({ status: 504, kind: 'busy' })
      expect(error.message).toBe(
        `The service cannot be reached. The response with status 504 is not JSON (text/html): ${JSON.stringify(html)}`,
      )
    })

    test('is never taken for an answer of the service', async () => {
      const contacts = open({ retries: 0 }).model(CONTACT)
      await contacts.find({ limit: 0 })
      plan(/limit=1$/, page('404 Not Found'))
      expect(await rejection(RequestError, contacts.find({ limit: 1 }))).toMatchObject({
        kind: 'unexpected',
        status: 404,
        name: 'RequestError',
      })
      plan(/limit=1$/, page('200 OK'))
      expect(await rejection(NetworkError, contacts.find({ limit: 1 }))).toMatchObject({ status: 200 })
      plan(/limit=1$/, {
        message: 'HTTP/1.1 308 Moved\r\nLocation: https://elsewhere\r\nConnection: close\r\n\r\n',
      })
      const moved = await rejection(RequestError, contacts.find({ limit: 1 }))
      expect(moved.message).toMatch('redirects to https://elsewhere')
    })
  })
})
