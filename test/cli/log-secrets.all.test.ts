// Sends many requests at log level trace and searches the log, byte by byte, for every secret that they contained.
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { ENGINES, newLocation } from '../targets.js'
import { JSON_BODY, login, send, sendRaw, type Sent } from '../wire/exchange.js'
import { cleanUpAfterwards, start } from './program.js'

cleanUpAfterwards()

const MODELS = fileURLToPath(new URL('../../examples/contacts', import.meta.url))
const MODEL = 'com.axelor.contact.db.Contact'
const CONTACTS = `/ws/rest/${MODEL}`

const SECRETS = {
  password: 'password-Zm9x-right',
  wrong: 'password-Ym9y-wrong',
  broken: 'password-QnJv-broken',
  form: 'password-Rm9y-form',
  basic: 'password-QmFz-basic',
  bearer: 'bearer-QmVh-token',
  key: 'key-QVBJ-value',
  cookie: 'cookie-Q29v-made-up',
  query: 'query-UXVl-value',
  value: 'value-VmFs-of-a-record',
  path: 'path-UGF0-of-a-request',
}

const basicOf = (username: string, password: string) =>
  Buffer.from(`${username}:${password}`).toString('base64')

/** The names of the secrets that the log contains. */
function foundIn(log: Buffer, secrets: Readonly<Record<string, string>>): string[] {
  return Object.keys(secrets).filter((name) => log.includes(Buffer.from(secrets[name] ?? '')))
}

describe.for(ENGINES)('on %s', (engine) => {
  test('the log of a server at level trace contains every request and none of its secrets', async () => {
    const location = await newLocation(engine)
    const service = await start(
      ['serve', '--port', '0', '--models', MODELS, '--log-level', 'trace', '--basic-auth'],
      { VERSO_DB: location.url, VERSO_ADMIN_PASSWORD: SECRETS.password },
      ['internal'],
    )
    const body = (username: string, password: string) => JSON.stringify({ username, password })
    const right = await login(service.url, {}, body('admin', SECRETS.password))
    const [sessionId = '', csrfToken = ''] = (right.headers['set-cookie'] ?? []).map(
      (cookie) => /=([^;]+)/.exec(cookie)?.[1] ?? '',
    )
    expect([sessionId.length, csrfToken.length]).toEqual([43, 32])
    const cookie = `JSESSIONID=${sessionId}`
    const basic = {
      right: basicOf('admin', SECRETS.password),
      wrong: basicOf('admin', SECRETS.basic),
    }
    const ask = async (status: number, sent: Sent) => {
      expect((await send(service.url, sent)).status, JSON.stringify(sent)).toBe(status)
    }
    const record = JSON.stringify({ data: { firstName: SECRETS.value, notes: SECRETS.value } })
    await ask(401, { method: 'POST', path: '/callback', body: body('admin', SECRETS.wrong) })
    await ask(400, { method: 'POST', path: '/callback', body: `{"password":"${SECRETS.broken}` })
    await ask(401, { method: 'POST', path: '/login.jsp', body: `username=admin&password=${SECRETS.form}` })
    await ask(200, { path: CONTACTS, headers: { authorization: `Basic ${basic.right}` } })
    await ask(401, { path: CONTACTS, headers: { authorization: `Basic ${basic.wrong}` } })
    await ask(401, { path: CONTACTS, headers: { authorization: `Bearer ${SECRETS.bearer}` } })
    await ask(401, { path: CONTACTS, headers: { 'api-key': SECRETS.key } })
    await ask(401, { path: CONTACTS, headers: { cookie: `JSESSIONID=${SECRETS.cookie}` } })
    await ask(200, { path: `${CONTACTS}?_token=${SECRETS.query}&q=${SECRETS.query}`, headers: { cookie } })
    await ask(404, { path: `/setup?token=${SECRETS.query}` })
    await ask(404, { path: `/${SECRETS.path}?x=${SECRETS.query}`, headers: { cookie } })
    await ask(200, { method: 'PUT', path: CONTACTS, headers: { cookie, ...JSON_BODY }, body: record })
    await sendRaw(service.url, `GET /${SECRETS.path} HTTP/9.9\r\nCookie: ${cookie}\r\n\r\n`)

    // Requests that fail with 500.
    const db = await openDatabase(location.url, { poolSize: 1, statementTimeoutMs: 10_000 })
    await db.transaction((tx) => tx.run(`alter table "${MODEL}" rename to "gone"`))
    await ask(500, { path: `${CONTACTS}?q=${SECRETS.query}`, headers: { cookie } })
    await ask(500, { method: 'PUT', path: CONTACTS, headers: { cookie, ...JSON_BODY }, body: record })
    await db.transaction((tx) => tx.run(`alter table "gone" rename to "${MODEL}"`))
    await db.close()
    await ask(200, { path: '/logout', headers: { cookie } })
    service.child.kill('SIGTERM')
    expect(await service.ended()).toBe(0)

    const log = Buffer.from(service.log())
    const secrets = {
      ...SECRETS,
      ...{ sessionId, csrfToken, basicRight: basic.right, basicWrong: basic.wrong, hash: '$argon2' },
      ...(engine === 'postgres' ? { database: location.url } : {}),
    }
    expect(foundIn(log, secrets)).toEqual([])
    // The log covers these requests, including the failures, and the search would find a secret.
    const messages = service
      .log()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg)
    expect(messages.filter((message) => message === 'request')).toHaveLength(16)
    expect(messages.filter((message) => message === 'request failed')).toHaveLength(2)
    const leaky = Buffer.concat([log, ...Object.values(secrets).map((secret) => Buffer.from(secret))])
    expect(foundIn(leaky, secrets)).toEqual(Object.keys(secrets))
    location.remove()
  })
})
