// Passwords, sessions and keys are stored in no table, file, response or log. The stored hashes are not accepted as credentials.
import { mkdtempSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { changePassword } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createKey } from '../../src/service/auth/keys.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { cleanUpAfterwards, scratch, verso } from '../cli/program.js'
import { leakingHashes } from '../mutants/keys.js'
import { copiedFiles, filesIn, leaksIn, storedColumns, type Secret, type Trace } from '../secrets.js'
import {
  ENGINES,
  newLocation,
  PASSWORD,
  startService,
  USERNAME,
  type Engine,
  type Service,
} from '../targets.js'
import { Receiver } from '../webhooks/receiver.js'
import { credentials, JSON_BODY, login, send, sessionIdOf, type Answer, type Sent } from './exchange.js'
import { createContext } from '../../src/service/context/context.js'

cleanUpAfterwards()

const USERS = '/ws/rest/verso.auth.User'
const CARDS = '/ws/rest/shop.Card'
const HOOKS = '/ws/rest/verso.feed.Webhook'
const SECRET_COLUMN = 'verso.feed.Webhook.secret'
const PASSWORD_COLUMN = 'verso.auth.User.password'
const CARD = {
  name: 'shop.Card',
  fields: {
    label: { type: 'string' },
    pin: { type: 'string', secret: true },
    password: { type: 'string', secret: 'password' },
  },
}

/** A service after much use, and everything that it left behind. */
interface Lived {
  readonly service: Service
  readonly secrets: readonly Secret[]
  readonly traces: readonly Trace[]
  readonly hashes: { readonly password: string; readonly session: string; readonly key: string }
}

class Life {
  readonly secrets: Secret[] = []
  readonly traces: Trace[] = []

  constructor(readonly service: Service) {}

  secret(what: string, text: string, onlyIn: readonly string[] = []): string {
    this.secrets.push({ what, text, onlyIn })
    return text
  }

  /** Records a response for the later search, unless it is the one that reveals a secret. */
  async send(what: string, sent: Sent, tellsIt = false): Promise<Answer> {
    const answer = await send(this.service.url, sent)
    if (!tellsIt)
      this.traces.push({
        where: `the answer to ${what}`,
        bytes: Buffer.from(JSON.stringify(answer.headers) + answer.text),
      })
    return answer
  }

  /** Opens a session; returns its cookie. */
  async login(username: string, password: string): Promise<string> {
    const id = sessionIdOf(await login(this.service.url, {}, credentials(username, password)))
    this.secret(`a session of ${username}`, id)
    return `JSESSIONID=${id}`
  }

  async write(
    what: string,
    cookie: string,
    method: string,
    path: string,
    data: unknown,
    more = {},
  ): Promise<Answer> {
    const headers = { ...JSON_BODY, cookie, ...more }
    return this.send(what, { method, path, headers, body: JSON.stringify({ data }) })
  }

  /** Remembers the hash of the current password of an account. */
  async keepHashOf(username: string): Promise<string> {
    const found = await findCredentials(this.service.app.db.reader, username)
    return this.secret(`a password hash of ${username}`, found?.passwordHash ?? '', [
      ...[PASSWORD_COLUMN, 'copy/verso.db', 'copy/verso.db-wal'],
    ])
  }
}

async function live(engine: Engine, mutant?: (db: Database) => Database): Promise<Lived> {
  const folder = mkdtempSync(path.join(scratch, 'secrets-'))
  const file = path.join(folder, 'card.json')
  writeFileSync(file, JSON.stringify(CARD))
  const models = [{ file, definition: CARD }] as unknown as readonly ModelSource[]
  const location = await newLocation(engine)
  const logged: Buffer[] = []
  const sink = new Writable({
    write: (chunk: Buffer, _, done) => {
      logged.push(Buffer.from(chunk))
      done()
    },
  })
  const service = await startService(engine, {
    ...{ models, location, log: pino({ level: 'trace' }, sink), http: { basicAuth: true } },
    ...{ runsBackgroundWork: true, settings: { webhookAllow: ['127.0.0.1'] } },
    ...(mutant
      ? { database: mutant(await openDatabase(location.url, { poolSize: 10, statementTimeoutMs: 10_000 })) }
      : {}),
  })
  const life = new Life(service)
  const admin = await liveWithAccounts(life)
  const session = await liveOverTransports(life, admin)
  const { key, id: keyId } = await liveWithKeys(life, admin, session)
  await liveWithWebhooks(life, admin)
  const exported = path.join(folder, 'out')
  const outcome = await verso(['export', '--db', location.url, '--models', file, '--out', exported])
  expect(outcome.code, outcome.stderr).toBe(0)
  life.traces.push({ where: 'the process log', bytes: Buffer.concat(logged) }, ...filesIn(exported, 'export'))
  life.traces.push(...copiedFiles(engine, location), ...(await storedColumns(engine, service.app.db)))
  expect(key).not.toBe('')
  const one = async (sql: string, params: (string | number)[]) =>
    String(Object.values((await service.app.db.reader.all(sql, params))[0] ?? {})[0])
  const hashes = {
    password: (await findCredentials(service.app.db.reader, 'bob'))?.passwordHash ?? '',
    session: await one('select hash from verso_session order by created_ms desc limit 1', []),
    key: await one('select "hash" from "verso.auth.ApiKey" where "id" = ?', [keyId]),
  }
  return { service, secrets: life.secrets, traces: life.traces, hashes }
}

/** Accounts: created, rejected, repeated, changed, in conflict. */
async function liveWithAccounts(life: Life): Promise<string> {
  const { service } = life
  life.secret('the first password', PASSWORD)
  await life.keepHashOf(USERNAME)
  const admin = await life.login(USERNAME, PASSWORD)
  const roles = [{ id: 2 }]
  const bob = {
    username: 'bob',
    name: 'Bob',
    roles,
    password: life.secret('the password of Bob', 'the "first" one of Bob ü'),
  }
  for (let i = 0; i < 2; i++) {
    const answer = await life.write('an idempotent create', admin, 'PUT', USERS, bob, {
      'idempotency-key': 'make bob',
    })
    expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([
      200,
      i === 0 ? undefined : 'true',
    ])
  }
  await life.keepHashOf('bob')
  const other = { ...bob, password: life.secret('the password of a repeat', 'another one for a repeat') }
  expect(
    (await life.write('another repeat', admin, 'PUT', USERS, other, { 'idempotency-key': 'make bob' }))
      .status,
  ).toBe(422)
  const taken = { ...bob, password: life.secret('a password in vain', 'for a name that is taken') }
  expect((await life.write('a name that is taken', admin, 'PUT', USERS, taken)).status).toBe(409)
  const wrong = {
    ...bob,
    username: 'eve',
    rank: 1,
    password: life.secret('a refused password', 'of a request with a fault'),
  }
  expect((await life.write('a request with a fault', admin, 'PUT', USERS, wrong)).status).toBe(422)
  const second = life.secret('the second password of Bob', 'the second one of Bob')
  const changed = { version: 0, password: second }
  const update = () =>
    life.write('a change of a password', admin, 'POST', `${USERS}/2`, changed, {
      'idempotency-key': 'change',
    })
  expect([(await update()).status, (await update()).status]).toEqual([200, 200])
  await life.keepHashOf('bob')
  const stale = {
    version: 0,
    name: 'Robert',
    password: life.secret('a stale password', 'from an older version'),
  }
  expect((await life.write('a conflict', admin, 'POST', `${USERS}/2`, stale)).status).toBe(409)
  await changePassword(service.app, 'bob', life.secret('the third password of Bob', 'the third one of Bob'))
  await life.keepHashOf('bob')
  return admin
}

/** Logins: right and wrong passwords, by form, JSON and Basic. */
async function liveOverTransports(life: Life, admin: string): Promise<string> {
  const wrong = life.secret('a wrong password', 'not the password of Bob')
  await life.send('a wrong login', {
    method: 'POST',
    path: '/callback',
    headers: JSON_BODY,
    body: credentials('bob', wrong),
  })
  const form = new URLSearchParams({ username: 'bob', password: wrong }).toString()
  await life.send('a wrong form', { method: 'POST', path: '/login.jsp', body: form })
  const basic = (password: string) => ({
    authorization: `Basic ${Buffer.from(`bob:${password}`).toString('base64')}`,
  })
  expect((await life.send('a wrong Basic', { path: '/ws/meta/models', headers: basic(wrong) })).status).toBe(
    401,
  )
  const right = await life.send('a right Basic', {
    path: '/ws/meta/models',
    headers: basic('the third one of Bob'),
  })
  expect(right.status).toBe(200)
  const gone = await life.login('bob', 'the third one of Bob')
  await life.send('a logout', { path: '/logout', headers: { cookie: gone } }, true)
  const card = { label: 'gold', pin: life.secret('a pin', 'pin-of-the-gold-card', ['shop.Card.pin', 'copy/verso.db', 'copy/verso.db-wal']), password: life.secret('the password of a card', 'the password of the card') } // prettier-ignore
  expect((await life.write('a card', admin, 'PUT', CARDS, card, { 'idempotency-key': 'card' })).status).toBe(
    200,
  )
  return life.login('bob', 'the third one of Bob')
}

/** Keys: created, used, wrong, removed; then reads everything. */
async function liveWithKeys(
  life: Life,
  admin: string,
  session: string,
): Promise<{ key: string; id: number }> {
  const headers = { ...JSON_BODY, cookie: session }
  const sent = { method: 'POST', path: '/ws/me/keys', headers, body: '{"data":{"name":"of Bob"}}' }
  const made = JSON.parse((await life.send('a new key', sent, true)).text) as {
    data: [{ id: number; key: string }]
  }
  const [{ id, key }] = made.data
  life.secret('a key', key)
  life.secret(
    'a key of the command line',
    (await createKey(createContext(life.service.app, SERVICE_PRINCIPAL), { user: 2, name: 'x' })).key,
  )
  const used = {
    method: 'PUT',
    path: CARDS,
    headers: { ...JSON_BODY, 'api-key': key, 'idempotency-key': 'k' },
    body: '{"data":{}}',
  }
  expect((await life.send('a write with a key', used)).status).toBe(200)
  expect(
    (await life.send('a read with a key', { path: CARDS, headers: { authorization: `Bearer ${key}` } }))
      .status,
  ).toBe(200)
  const wrong = life.secret('a wrong key', `vk_${'wrong'.repeat(9).slice(2)}`)
  expect((await life.send('a wrong key', { path: CARDS, headers: { 'api-key': wrong } })).status).toBe(401)
  const read = { cookie: admin }
  const models = ['verso.auth.User', 'verso.auth.ApiKey', 'verso.auth.Event', 'verso.auth.Role', 'shop.Card']
  for (const model of models) {
    await life.send(`a find of ${model}`, { path: `/ws/rest/${model}`, headers: read })
    await life.send(`a read of ${model}`, { path: `/ws/rest/${model}/1`, headers: read })
    const exported = {
      method: 'POST',
      path: `/ws/rest/${model}/export`,
      headers: { ...JSON_BODY, ...read },
      body: '{}',
    }
    expect((await life.send(`an export of ${model}`, exported)).status).toBe(200)
    for (const field of ['password', 'hash', 'pin']) {
      const asked = await life.send(`fields=${field}`, {
        path: `/ws/rest/${model}?fields=${field}`,
        headers: read,
      })
      expect(asked.status).toBe(400)
    }
  }
  await life.send('the list of keys', { path: '/ws/me/keys', headers: { cookie: session } })
  return { key, id }
}

/** Webhooks: created, renewed, in conflict, failed and successful calls; then reads them in every way. */
async function liveWithWebhooks(life: Life, admin: string): Promise<void> {
  const stored = [SECRET_COLUMN, 'copy/verso.db', 'copy/verso.db-wal']
  const receiver = await Receiver.listen()
  const answered = life.secret('what a receiver answered', 'words that a receiver answers')
  receiver.answering = (_, response) => {
    response.writeHead(receiver.calls.length === 1 ? 500 : 200).end(answered)
    return undefined
  }
  try {
    const headers = { ...JSON_BODY, cookie: admin }
    const tell = async (what: string, path: string, data: object) => {
      const sent = { method: 'POST', path, headers, body: JSON.stringify({ data }) }
      const { text } = await life.send(what, sent, true)
      const { data: [made] } = JSON.parse(text) as { data: [{ secret: string }] } // prettier-ignore
      return life.secret(what, made.secret, stored)
    }
    const first = await tell('a secret of a webhook', '/ws/webhooks', { name: 'a', url: receiver.url })
    const second = await tell('another secret of a webhook', '/ws/webhooks/1/secret', {})
    const own = `whsec_${Buffer.from('a secret that somebody chose').toString('base64')}`
    const chosen = { version: 1, secret: life.secret('a chosen secret', own, stored) }
    const key = { 'idempotency-key': 'hook' }
    expect((await life.write('a chosen secret', admin, 'POST', `${HOOKS}/1`, chosen, key)).status).toBe(200)
    expect(
      (await life.write('a conflict', admin, 'POST', `${HOOKS}/1`, { ...chosen, name: 'b' })).status,
    ).toBe(409)
    const wrong = { name: 'b', secret: life.secret('a wrong secret', `${own}and more`) }
    expect((await life.write('a fault', admin, 'PUT', HOOKS, wrong)).status).toBe(422)
    expect(new Set([first, second, own]).size).toBe(3)
    expect((await life.write('a card', admin, 'PUT', CARDS, { label: 'silver' })).status).toBe(200)
    await receiver.until(({ calls }) => calls.length >= 2)
    const sent = Buffer.from(receiver.calls.map((call) => JSON.stringify([call.headers, call.body])).join())
    life.traces.push({ where: 'what a receiver was told', bytes: sent })
    await life.send('a ping', { method: 'POST', path: '/ws/webhooks/1/ping', headers: { cookie: admin } })
    const paths = [
      '/ws/webhooks/1',
      '/ws/webhooks/1/deliveries',
      '/ws/changes?limit=1000',
      HOOKS,
      `${HOOKS}/1`,
    ]
    for (const path of [...paths, `${HOOKS}/1/copy`])
      expect((await life.send(path, { path, headers: { cookie: admin } })).status).toBe(200)
    expect(
      (await life.send('a secret', { path: `${HOOKS}?fields=secret`, headers: { cookie: admin } })).status,
    ).toBe(400)
    const exported = { method: 'POST', path: `${HOOKS}/export`, headers, body: '{}' }
    expect((await life.send('an export of webhooks', exported)).status).toBe(200)
  } finally {
    await receiver.close()
  }
}

describe.for(ENGINES)('%s', (engine) => {
  test('no secret is stored or revealed anywhere, and stored hashes are not accepted as credentials', async () => {
    const { service, secrets, traces, hashes } = await live(engine)
    try {
      expect(secrets.filter(({ text }) => text.length < 12)).toEqual([])
      expect(secrets.length).toBeGreaterThan(20)
      // The search covers everything: it finds the passwords and secrets in their own columns.
      const where = traces.map((trace) => trace.where)
      expect(where).toEqual(
        expect.arrayContaining([
          PASSWORD_COLUMN,
          SECRET_COLUMN,
          'the process log',
          'export/shop.Card.ndjson',
        ]),
      )
      if (engine === 'sqlite') expect(where).toContain('copy/verso.db-wal')
      const isBare = leaksIn(traces, secrets.map((secret) => ({ ...secret, onlyIn: [] }))) // prettier-ignore
      expect(isBare.some((leak) => leak.endsWith(`in ${PASSWORD_COLUMN}`))).toBe(true)
      expect(isBare).toContain(`a chosen secret in ${SECRET_COLUMN}`)
      expect(leaksIn(traces, secrets)).toEqual([])
      await expectShut(service, hashes)
    } finally {
      await service.close()
      service.location.remove()
    }
  })

  test('the search finds a password in the change log, in its table and in a copy of the files', async () => {
    const { service, secrets } = await live(engine)
    try {
      const change = JSON.stringify({ password: { before: null, after: 'the "first" one of Bob ü' } })
      await service.app.db.transaction((tx) =>
        tx.run('update verso_log set changes = ? where seq = 1', [change]),
      )
      const traces = [
        ...copiedFiles(engine, service.location),
        ...(await storedColumns(engine, service.app.db)),
      ]
      const found = leaksIn(traces, secrets)
      expect(found).toContain('the password of Bob in verso_log.changes')
      expect(found.some((leak) => leak.includes('in copy/'))).toBe(engine === 'sqlite')
    } finally {
      await service.close()
      service.location.remove()
    }
  })
})

test('the mutant that stores the hash of a password in the change log is caught', async () => {
  const { service, secrets, traces } = await live('sqlite', leakingHashes)
  try {
    expect(leaksIn(traces, secrets)).toContain('a password hash of bob in verso_log.changes')
  } finally {
    await service.close()
    service.location.remove()
  }
})

async function expectShut({ url }: Service, { password, session, key }: Lived['hashes']): Promise<void> {
  expect([password.startsWith('$argon2id$'), session.length, key.length]).toEqual([true, 43, 43])
  const path = '/ws/meta/models'
  const basic = Buffer.from(`bob:${password}`).toString('base64')
  const attempts: Sent[] = [
    { path, headers: { cookie: `JSESSIONID=${session}` } },
    { path, headers: { 'api-key': key } },
    { path, headers: { 'api-key': `vk_${key}` } },
    { path, headers: { authorization: `Bearer vk_${key}` } },
    { path, headers: { cookie: `JSESSIONID=${key}` } },
    { path, headers: { 'api-key': `vk_${session}` } },
    { path, headers: { authorization: `Basic ${basic}` } },
    { method: 'POST', path: '/callback', headers: JSON_BODY, body: credentials('bob', password) },
  ]
  for (const attempt of attempts) expect((await send(url, attempt)).status, JSON.stringify(attempt)).toBe(401)
}
