// Every kind of write checks whether its sender lost access on another node.
import { beforeAll, expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { onEveryEngine, PASSWORD } from '../targets.js'
import { JSON_BODY, send } from '../wire/exchange.js'
import { CONTACT, NEW_PASSWORD, PATH, withAccessNodes, type Somebody } from './access-nodes.js'

interface Target {
  readonly id: number
  readonly version: number
  /** The id of a webhook. */
  readonly webhook: number
}

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const LATE = { firstName: 'Late' }
const URL_OF_WEBHOOK = 'http://192.0.32.8/'
const UPLOAD = [
  ['name="request"', JSON.stringify({ data: { title: 'Late' } })],
  ['name="field"', 'scan'],
  ['name="file"; filename="late.txt"', 'content'],
]
const FORM = `${UPLOAD.map(([name, text]) => `--x\r\ncontent-disposition: form-data; ${name}\r\n\r\n${text}\r\n`).join('')}--x--\r\n`

/** Each would succeed with valid credentials. */
const WAYS: Readonly<Record<string, (target: Target) => Request>> = {
  'a new record': () => ({ method: 'PUT', path: PATH, body: { data: LATE } }),
  'a new record under an Idempotency-Key': () => ({
    ...{ method: 'PUT', path: PATH, body: { data: LATE }, headers: { 'idempotency-key': 'late' } },
  }),
  'an update': ({ id, version }) => ({
    ...{ method: 'POST', path: `${PATH}/${id}`, body: { data: { version, ...LATE } } },
  }),
  'an update that changes nothing': ({ id, version }) => ({
    ...{ method: 'POST', path: `${PATH}/${id}`, body: { data: { version } } },
  }),
  'several records': () => ({ method: 'POST', path: PATH, body: { records: [LATE, LATE] } }),
  'a merge patch': ({ id, version }) => ({
    ...{ method: 'PATCH', path: `${PATH}/${id}`, body: { version, ...LATE } },
    headers: { 'content-type': 'application/merge-patch+json' },
  }),
  'a delete': ({ id, version }) => ({ method: 'DELETE', path: `${PATH}/${id}?version=${version}` }),
  'a delete of several': ({ id, version }) => ({
    ...{ method: 'POST', path: `${PATH}/removeAll`, body: { records: [{ id, version }] } },
  }),
  'a mass update': ({ id }) => ({
    ...{ method: 'POST', path: `${PATH}/updateMass` },
    body: { data: { criteria: [{ fieldName: 'id', operator: '=', value: id }] }, records: [LATE] },
  }),
  'a batch': () => ({
    ...{
      method: 'POST',
      path: '/ws/batch',
      body: { requests: [{ op: 'create', model: CONTACT, data: LATE }] },
    },
  }),
  'a revert': ({ id, version }) => ({
    ...{ method: 'POST', path: `${PATH}/${id}/revert`, body: { data: { version, to: 0 } } },
  }),
  'an upload': () => ({
    ...{ method: 'POST', path: '/ws/rest/doc.Paper/upload', body: FORM },
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  }),
  'a new key': () => ({ method: 'POST', path: '/ws/me/keys', body: { data: { name: 'late' } } }),
  'a new password': () => ({
    ...{ method: 'POST', path: '/ws/me/password', body: { data: { old: PASSWORD, new: NEW_PASSWORD } } },
  }),
  'the end of one’s other sessions': () => ({ method: 'DELETE', path: '/ws/me/sessions' }),
  'a new user': () => ({
    ...{ method: 'PUT', path: `/ws/rest/${USER_MODEL}` },
    body: { data: { username: 'late', password: NEW_PASSWORD } },
  }),
  'a reset link': () => ({ method: 'POST', path: '/ws/users/1/reset' }),
  'the end of the sessions of others': () => ({ method: 'DELETE', path: '/ws/users/1/sessions' }),
  'a new webhook': () => ({
    ...{ method: 'POST', path: '/ws/webhooks', body: { data: { name: 'late', url: URL_OF_WEBHOOK } } },
  }),
  'a new secret of a webhook': ({ webhook }) => ({ method: 'POST', path: `/ws/webhooks/${webhook}/secret` }),
  'a call of a webhook': ({ webhook }) => ({ method: 'POST', path: `/ws/webhooks/${webhook}/ping` }),
}

onEveryEngine((engine) => {
  const nodes = withAccessNodes(engine)
  let chief: Somebody
  let target: Target

  beforeAll(async () => {
    const { admin } = nodes()
    chief = await nodes().somebody(['administrator'])
    const { id } = (await admin.create(CONTACT, { firstName: 'First' })).data
    const { version } = (await admin.update(CONTACT, id, { version: 0, firstName: 'Still' })).data
    const data = { name: 'one', url: URL_OF_WEBHOOK, paused: true }
    const made = await admin.request('POST', '/ws/webhooks', { data })
    const { data: webhooks } = (await made.json()) as { data: { id: number }[] }
    target = { id, version, webhook: webhooks[0]?.id ?? 0 }
  })

  const ask = ({ method, path, body, headers }: Request, cookie: string) =>
    send(nodes().there.url, {
      ...{ method, path, headers: { cookie, ...(body === undefined ? {} : JSON_BODY), ...headers } },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })

  test.each(Object.entries(WAYS))(
    '%s is rejected with 401 after the session ended on another node',
    async (_, way) => {
      const { admin } = nodes()
      const cookie = await nodes().open(chief.id)
      expect(await nodes().read({ cookie })).toBe(200)
      await nodes().logOut(cookie)
      const before = await admin.read(CONTACT, target.id)
      const answer = await ask(way(target), cookie)
      expect([answer.status, answer.text.includes('nothing was changed')], answer.text).toEqual([401, true])
      expect(await admin.read(CONTACT, target.id)).toEqual(before)
      expect(await nodes().written('Late')).toBe(0)
    },
  )

  test('a repeat with the same Idempotency-Key is rejected with 401 after the session ended on another node', async () => {
    const cookie = await nodes().open(chief.id)
    const request = {
      ...{ method: 'PUT', path: PATH, body: { data: { firstName: 'Once' } } },
      headers: { 'idempotency-key': 'once' },
    }
    expect((await ask(request, cookie)).status).toBe(200)
    await nodes().logOut(cookie)
    expect((await ask(request, cookie)).status).toBe(401)
  })
})
