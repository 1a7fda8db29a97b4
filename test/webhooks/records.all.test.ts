// Webhooks as administrators manage them: valid values, the secret, and which changes each webhook receives.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecord, updateRecord } from '../../src/service/records/save.js'
import { removeRecord } from '../../src/service/records/remove.js'
import { removeExpired } from '../../src/service/maintenance/housekeeping.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { createWebhook, readWebhookState, listDeliveries } from '../../src/service/webhooks/webhooks.js'
import { readPermissionsVersion } from '../../src/store/auth/permissions-version.js'
import { raiseRetentionFloor } from '../../src/store/log/feed.js'
import type { Change, WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Engine, type Service } from '../targets.js'
import { isGenuine, Receiver } from './receiver.js'
import { createContext } from '../../src/service/context/context.js'

const HOOKS = '/ws/rest/verso.feed.Webhook'
const PATIENTLY = { timeout: 50_000 }
const PUBLIC = 'https://hooks.example.org/verso'

interface Body {
  readonly status: number
  readonly total?: number
  readonly errors?: Readonly<Record<string, string>>
  readonly data: readonly Record<string, unknown>[] & Readonly<Record<string, unknown>>
}

let receiver: Receiver
let service: Service
let admin: HttpClient

async function start(engine: Engine, runsBackgroundWork = true): Promise<void> {
  service = await startService(engine, { runsBackgroundWork, settings: { webhookAllow: ['127.0.0.1'] } })
  admin = await HttpClient.login(service.url, USERNAME, PASSWORD)
}
beforeEach(async () => {
  receiver = await Receiver.listen()
})
afterEach(async () => {
  await service.close()
  await receiver.close()
})

const send = async (client: HttpClient, method: string, path: string, data?: unknown, headers = {}) => {
  const response = await client.request(method, path, data === undefined ? undefined : { data }, headers)
  return { status: response.status, body: (await response.json()) as Body }
}
const contact = async (values: object) =>
  (
    await createRecord(
      createContext(service.app, SERVICE_PRINCIPAL),
      service.app.catalog.get('crm.Contact'),
      values,
    )
  ).data
const hookModel = () => service.app.catalog.get('verso.feed.Webhook')

/** Adds a user with one permission and logs in. */
async function somebody(username: string, permission: object): Promise<{ id: number; client: HttpClient }> {
  const { app } = service
  const role = { name: username, permissions: [{ canRead: true, ...permission }] }
  await createRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get('verso.auth.Role'), role)
  const id = await addUser(app, { username, name: username, password: PASSWORD, roles: [username] })
  return { id, client: await HttpClient.login(service.url, username, PASSWORD) }
}

onEveryEngine((engine) => {
  test('the secret of a webhook is shown only on creation and on renewal', async () => {
    await start(engine)
    const made = await send(admin, 'POST', '/ws/webhooks', { name: 'all', url: receiver.url })
    expect(made.status).toBe(200)
    const { id, version, secret } = made.body.data[0] as { id: number; version: number; secret: string }
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    await contact({ firstName: 'Ada' })
    await receiver.until(({ taken }) => taken.length === 1)
    const renewed = await send(admin, 'POST', `/ws/webhooks/${id}/secret`)
    const other = String(renewed.body.data[0]?.['secret'])
    expect(renewed.body.data[0]).toMatchObject({ id, version: version + 1 })
    expect(other).not.toBe(secret)
    await contact({ firstName: 'Grace' })
    await receiver.until(({ taken }) => taken.length === 2)
    expect(receiver.calls.map((call) => [isGenuine(secret, call), isGenuine(other, call)])).toEqual([
      ...[[true, false], [false, true]], // prettier-ignore
    ])
    for (const path of [
      `${HOOKS}/${id}`,
      HOOKS,
      `/ws/webhooks/${id}`,
      `/ws/webhooks/${id}/deliveries`,
      '/ws/changes',
    ]) {
      const shown = await admin.request('GET', path)
      expect(shown.status).toBe(200)
      expect(await shown.text()).not.toMatch(/whsec_/)
    }
    for (const path of ['/ws/webhooks', `/ws/webhooks/${id}/secret`]) {
      const rejected = await send(admin, 'POST', path, { name: 'x', url: PUBLIC }, { 'idempotency-key': 'a' })
      expect(rejected.status).toBe(400)
    }
  })

  test('an invalid webhook is rejected with 422 and all of its field errors', async () => {
    await start(engine, false)
    const sent = {
      url: 'http://10.0.0.1/',
      models: ['crm.Contac', 'x.Y'],
      secret: 'whsec_short',
      from: 'middle',
    }
    const { status, body } = await send(admin, 'PUT', HOOKS, sent)
    expect(status).toBe(422)
    expect(Object.keys(body.errors ?? {}).toSorted()).toEqual(['from', 'name'])
    const rest = await send(admin, 'PUT', HOOKS, { ...sent, name: 'a', from: 'end' })
    expect(rest.body.errors).toEqual({
      url: 'points to a private address: start the service with --webhook-allow 10.0.0.1 to allow it',
      models: 'has an unknown model: crm.Contac (did you mean "crm.Contact"?)',
      secret: 'must be whsec_ followed by 24 to 64 random bytes in base64',
    })
    for (const models of ['crm.Contact', [1], { a: 1 }])
      expect((await send(admin, 'PUT', HOOKS, { name: 'a', url: PUBLIC, models })).status).toBe(422)
    const { body: made } = await send(admin, 'PUT', HOOKS, {
      name: 'a',
      url: PUBLIC,
      models: ['crm.Contact'],
    })
    const id = Number(made.data[0]?.['id'])
    for (const change of [
      { url: 'http://[::1]/' },
      { secret: null },
      { secret: 'a' },
      { from: 'beginning' },
      { url: null },
    ])
      expect((await send(admin, 'POST', `${HOOKS}/${id}`, { version: 0, ...change })).status).toBe(422)
    expect(
      (await send(admin, 'POST', `${HOOKS}/${id}`, { version: 0, from: 'end', paused: true })).status,
    ).toBe(200)
    const mass = {
      data: { criteria: [{ fieldName: 'id', operator: '=', value: id }] },
      records: [{ url: 'http://10.0.0.1' }],
    }
    expect((await admin.request('POST', `${HOOKS}/updateMass`, mass)).status).toBe(422)
  })

  test('only administrators can manage webhooks, whatever permissions other users have', async () => {
    await start(engine, false)
    await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), { name: 'a', url: PUBLIC })
    const editor = await somebody('editor-of-all', {
      model: '*',
      canCreate: true,
      canUpdate: true,
      canRemove: true,
    })
    expect((await send(editor.client, 'GET', HOOKS)).status).toBe(404)
    expect((await send(editor.client, 'PUT', HOOKS, { name: 'x', url: PUBLIC })).status).toBe(404)
    const named = await somebody('named', {
      model: 'verso.feed.Webhook',
      canCreate: true,
      canUpdate: true,
      canRemove: true,
    })
    expect((await send(named.client, 'GET', `${HOOKS}/1`)).body.data[0]).not.toHaveProperty('secret')
    expect((await send(named.client, 'PUT', HOOKS, { name: 'x', url: PUBLIC })).status).toBe(403)
    expect((await send(named.client, 'POST', `${HOOKS}/1`, { version: 0, paused: true })).status).toBe(403)
    const paths = ['', '/1', '/1/deliveries', '/1/secret', '/1/ping']
    for (const { client } of [editor, named])
      for (const path of paths)
        for (const method of ['GET', 'POST'])
          expect(
            (await send(client, method, `/ws/webhooks${path}`, method === 'GET' ? undefined : {})).status,
          ).toBe(403)
    for (const path of ['/9', '/9/deliveries', '/0', '/x']) {
      const { status } = await send(admin, 'GET', `/ws/webhooks${path}`)
      expect(status).toBe(404)
    }
    const rule = 'must be a whole number from 0 to 9007199254740991'
    expect(
      (await send(admin, 'GET', '/ws/webhooks/1/deliveries?offset=-1&limit=x')).body.data['message'],
    ).toBe(`offset ${rule}; limit ${rule}`)
  })

  test('a write to a webhook does not change the permissions version', async () => {
    await start(engine, false)
    const before = await readPermissionsVersion(service.app.db.reader)
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: PUBLIC,
    })
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), hookModel(), {
      id: record.id,
      data: {
        version: 0,
        paused: true,
      },
    })
    expect(await readPermissionsVersion(service.app.db.reader)).toBe(before)
  })

  test('a webhook receives the changes of its models, or of all declared models by default', async () => {
    await start(engine)
    await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'declared',
      url: `${receiver.url}?declared`,
    })
    await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'roles',
      url: receiver.url,
      models: ['verso.auth.Role', 'test.Note'],
    })
    await createRecord(
      createContext(service.app, SERVICE_PRINCIPAL),
      service.app.catalog.get('verso.auth.Role'),
      {
        name: 'new',
      },
    )
    await contact({ firstName: 'Ada' })
    await createRecord(createContext(service.app, SERVICE_PRINCIPAL), service.app.catalog.get('test.Note'), {
      title: 'a',
    })
    const toldTo = (webhook: number) =>
      receiver.calls
        .filter(({ message }) => message.webhook === webhook)
        .flatMap(({ message: { data = [] } }) => data.map(({ model }) => model))
    await receiver.until(() => toldTo(1).length + toldTo(2).length === 4)
    expect([toldTo(1), toldTo(2)]).toEqual([
      ['crm.Contact', 'test.Note'],
      ['verso.auth.Role', 'test.Note'],
    ])
  })

  test('a webhook of a user receives only what the user may read, and nothing while the user is disabled', async () => {
    await start(engine)
    const permission = {
      model: 'crm.Contact',
      condition: "lastName = 'Hopper'",
      readable: ['firstName', 'lastName'],
    }
    const { id: userId } = await somebody('grace', permission)
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
      user: { id: userId },
    })
    const secret = { email: 'hidden@example.org', notes: 'hidden' }
    const { id } = await contact({ firstName: 'Grace', lastName: 'Hopper', ...secret })
    await contact({ firstName: 'Ada', lastName: 'Lovelace', ...secret })
    await createRecord(createContext(service.app, SERVICE_PRINCIPAL), service.app.catalog.get('test.Note'), {
      title: 'not for her',
    })
    await updateRecord(
      createContext(service.app, SERVICE_PRINCIPAL),
      service.app.catalog.get('crm.Contact'),
      {
        id,
        data: {
          version: 0,
          firstName: 'G.',
        },
      },
    )
    await receiver.until(({ taken }) => taken.length === 2)
    expect(receiver.taken.map((change) => [change.id, change.version, change.changes])).toEqual([
      [id, 0, { firstName: { before: null, after: 'Grace' }, lastName: { before: null, after: 'Hopper' } }],
      [id, 1, { firstName: { before: 'Grace', after: 'G.' } }],
    ])
    expect(receiver.calls.map(({ body }) => body).join()).not.toMatch(/hidden|Lovelace|not for her/)
    const user = service.app.catalog.user
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), user, {
      id: userId,
      data: {
        version: 0,
        disabled: true,
      },
    })
    await contact({ firstName: 'Rear', lastName: 'Hopper' })
    await expect
      .poll(async () => (await readWebhookState(service.app, record.id)).failures, PATIENTLY)
      .toBeGreaterThan(0)
    const { data } = await listDeliveries(service.app, record.id, { offset: 0, limit: 1 })
    expect(data).toMatchObject([{ status: null, error: 'the user of the webhook is disabled', changes: 0 }])
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), user, {
      id: userId,
      data: {
        version: 1,
        disabled: false,
      },
    })
    service.clock.advance(3_600_000)
    await receiver.until(({ taken }) => taken.length === 3)
  })

  test('a webhook from the beginning receives the whole change log, one from the end only later changes', async () => {
    await start(engine)
    const early = await contact({ firstName: 'Early' })
    await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
      from: 'beginning',
    })
    await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), { name: 'b', url: receiver.url })
    const late = await contact({ firstName: 'Late' })
    await receiver.until(({ taken }) => taken.length === 3)
    const told = (webhook: number) =>
      receiver.calls
        .filter(({ message }) => message.webhook === webhook)
        .flatMap(({ message: { data = [] } }) => data.map(({ id }) => id))
    expect([told(1), told(2)]).toEqual([[early.id, late.id], [late.id]])
  })

  test('large changes are split over several calls, and an oversized change is sent alone', async () => {
    await start(engine)
    receiver.answering = () => 503
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
      paused: true,
    })
    const notes = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(letter === 'c' ? 1_048_576 : 400_000))
    const made: WireRecord[] = []
    for (const each of notes) made.push(await contact({ notes: each }))
    receiver.answering = () => 200
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), hookModel(), {
      id: record.id,
      data: {
        version: 0,
        paused: false,
      },
    })
    await receiver.until(({ taken }) => taken.length === 4)
    const lengths = receiver.calls.map(({ message: { data = [] } }) => data.length)
    expect(lengths).toEqual([2, 1, 1])
    expect(receiver.taken.map(({ id }: Change) => id)).toEqual(made.map(({ id }) => id))
  })

  test('a response of 410 pauses the webhook on behalf of the service', async () => {
    await start(engine)
    receiver.answering = () => 410
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
    })
    await contact({ firstName: 'Ada' })
    await expect
      .poll(async () => (await readWebhookState(service.app, record.id)).paused, PATIENTLY)
      .toBe(true)
    expect((await send(admin, 'GET', `${HOOKS}/${record.id}`)).body.data[0]).toMatchObject({
      ...{ version: 1, paused: true, updatedBy: null },
    })
    expect(receiver.calls).toHaveLength(1)
  })

  test('a webhook whose cursor is below the retention floor gets a resync message, then later changes', async () => {
    await start(engine)
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
      paused: true,
    })
    await contact({ firstName: 'Ada' })
    const { last } = await readWebhookState(service.app, record.id)
    await service.app.db.transaction((tx) => raiseRetentionFloor(tx, last))
    await updateRecord(createContext(service.app, SERVICE_PRINCIPAL), hookModel(), {
      id: record.id,
      data: {
        version: 0,
        paused: false,
      },
    })
    await receiver.until(({ calls }) => calls.length === 1)
    expect(receiver.calls[0]?.message).toEqual({ webhook: record.id, resync: true, next: last + 1 })
    const { id } = await contact({ firstName: 'Grace' })
    await receiver.until(({ taken }) => taken.length === 1)
    expect(receiver.taken).toMatchObject([{ id, seq: last + 2 }])
  })

  test('a ping calls a webhook immediately, even a paused one, and returns the outcome', async () => {
    await start(engine)
    const made = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: receiver.url,
      paused: true,
    })
    const path = `/ws/webhooks/${made.record.id}`
    const { body } = await send(admin, 'POST', `${path}/ping`)
    expect(body.data).toMatchObject([
      { status: 204, error: null, changes: 0, attempt: 1, first: null, last: null },
    ])
    expect(receiver.calls.map((call) => [call.message.ping, isGenuine(made.secret, call)])).toEqual([
      [true, true],
    ])
    await receiver.close()
    expect((await send(admin, 'POST', `${path}/ping`)).body.data).toMatchObject([
      { status: null, error: 'connection refused' },
    ])
    const list = await send(admin, 'GET', `${path}/deliveries?limit=1`)
    expect([list.body.total, list.body.data.length, list.body.data[0]?.['error']]).toEqual([
      2,
      1,
      'connection refused',
    ])
    expect((await send(admin, 'GET', `${path}/deliveries?offset=5`)).body).toMatchObject({
      total: 2,
      data: [],
    })
    expect((await send(admin, 'GET', path)).body.data).toMatchObject([
      { failures: 0, paused: true, nextAttemptOn: null },
    ])
  })

  test('the delivery log of a webhook is bounded, and is deleted with the webhook', async () => {
    await start(engine, false)
    const { record } = await createWebhook(createContext(service.app, SERVICE_PRINCIPAL), {
      name: 'a',
      url: PUBLIC,
    })
    const { db } = service.app
    const day = 24 * 60 * 60_000
    await db.transaction(async (tx) => {
      for (let i = 0; i < 1_205; i++)
        await tx.run(
          'insert into verso_webhook_delivery (webhook, message, changes, attempt, at_ms, ms) values (?, ?, 0, 1, ?, 0)',
          [i < 5 ? 77 : record.id, `m${i}`, Date.now() - (i < 105 ? 31 : 29) * day],
        )
    })
    await removeExpired(service.app)
    const { total, data } = await listDeliveries(service.app, record.id, { offset: 0, limit: 1 })
    expect([total, data[0]?.message]).toEqual([1_000, 'm1204'])
    expect(await db.reader.all('select id from verso_webhook_delivery where webhook = 77')).toEqual([])
    await removeRecord(createContext(service.app, SERVICE_PRINCIPAL), hookModel(), record.id)
    for (const table of ['verso_webhook', 'verso_webhook_delivery'])
      expect(await db.reader.all(`select * from ${table}`)).toEqual([])
  })
})
