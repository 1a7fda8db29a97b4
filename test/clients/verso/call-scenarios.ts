// Scenarios about errors, sessions, signals and the change feed.
import {
  connect,
  DuplicateError,
  ForbiddenError,
  GoneError,
  InvalidError,
  NotFoundError,
  RequestError,
  StillReferencedError,
  TimeoutError,
  UnauthenticatedError,
  type ClientCredentials,
} from '../../../src/client/index.js'
import { equal, isTrue, rejection, type ErrorType } from './claims.js'
import { label, open, type Scenario, type ScenarioService } from './scenario-service.js'

async function rejectWithKinds(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const limited = verso.model('test.Limited')
  const code = label().slice(1, 5)
  await limited.create({ code, number: null })
  const expected: readonly (readonly [ErrorType<RequestError>, string, number, () => Promise<unknown>])[] = [
    [NotFoundError, 'not-found', 404, () => limited.read(9_999_999)],
    [NotFoundError, 'unknown-model', 404, () => verso.model('no.Model').find()],
    [InvalidError, 'invalid', 422, () => limited.create({ code: 'x', number: 99 })],
    [DuplicateError, 'not-unique', 409, () => limited.create({ code, number: null })],
    [RequestError, 'bad-request', 400, () => limited.find({ sortBy: ['nothing'] })],
    [GoneError, 'gone', 410, () => verso.changes({ since: 9_999_999 })],
    [
      ForbiddenError,
      'forbidden',
      403,
      () => verso.model('com.axelor.meta.db.MetaModel').create({ name: 'x' }),
    ],
    [RequestError, 'method', 405, () => verso.request('POST', '/ws/meta/models')],
  ]
  for (const [type, kind, status, call] of expected) {
    const error = await rejection(type, call())
    equal([error.kind, error.status], [kind, status])
    isTrue(typeof error.requestId === 'string', `${kind} has a request id`)
  }
  const invalid = await rejection(InvalidError, limited.create({ code: 'x', number: 99 }))
  equal(Object.keys(invalid.fields).sort(), ['code', 'number'])
  const company = await verso.model('rel.Company').create({ name: label() })
  await verso.model('rel.Person').create({ name: 'Bo', company: { id: company.id } })
  await rejection(StillReferencedError, verso.model('rel.Company').remove(company.id))
}

async function followChangesOnce(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const contacts = verso.model('crm.Contact')
  const { seq } = await contacts.find({ limit: 0 })
  const created = await contacts.create({ notes: 'a' })
  const stop = new AbortController()
  const seen: unknown[] = []
  for await (const { id, version, action } of contacts.follow({ since: seq, signal: stop.signal })) {
    seen.push([id, version, action])
    if (version === 0) await contacts.update(created.id, { version: 0, notes: 'b' })
    if (version === 1) await contacts.remove(created.id)
    // An abort ends the loop without an error.
    if (action === 'delete') stop.abort(new Error('enough'))
  }
  equal(
    seen,
    [0, 1, 2].map((version) => [created.id, version, ['create', 'update', 'delete'][version]]),
  )
  await rejection(GoneError, verso.follow({ since: 9_999_999 })[Symbol.asyncIterator]().next())
  await rejection(NotFoundError, verso.follow({ model: 'no.Model' })[Symbol.asyncIterator]().next())
  for (const newest of [contacts.follow(), verso.follow()]) {
    const changes = newest[Symbol.asyncIterator]()
    // The next change may take for ever; `return` does not wait for it.
    const next = changes.next()
    equal(await changes.return?.(), { done: true, value: undefined })
    equal((await next).done, true)
  }
}

async function stopCalls(service: ScenarioService): Promise<void> {
  const verso = open(service)
  await verso.login()
  const stop = new AbortController()
  const reason = new Error('the user left')
  const stopped = verso.changes({ since: 0, wait: 30, model: 'doc.Folder' }, { signal: stop.signal })
  const waiting = verso.changes(
    { since: (await verso.model('crm.Contact').find({ limit: 0 })).seq, wait: 30 },
    { signal: stop.signal },
  )
  await stopped
  // An equal call is neither shared nor cancelled with the other one.
  const lists = [stop.signal, undefined].map((signal) =>
    verso.model('crm.Contact').find({ limit: 1 }, { signal }),
  )
  stop.abort(reason)
  isTrue((await rejection(Error, waiting)) === reason, 'a call rejects with the reason of its signal')
  await rejection(Error, lists[0] ?? Promise.resolve())
  isTrue(((await lists[1])?.seq ?? 0) > 0, 'the other call is answered')
  isTrue(
    (await rejection(Error, verso.login({ signal: stop.signal }))) === reason,
    'an aborted signal rejects at once',
  )
  const { seq } = await verso.model('crm.Contact').find({ limit: 0 })
  const late = await rejection(TimeoutError, verso.changes({ since: seq, wait: 30 }, { timeout: 50 }))
  equal([late.kind, late.status], ['timeout', 0])
}

async function logInAndOut(service: ScenarioService): Promise<void> {
  const verso = open(service)
  equal((await verso.login()).username, service.username)
  await verso.logout()
  const lists = await Promise.all(
    Array.from({ length: 6 }, () => verso.model('crm.Contact').find({ limit: 1 })),
  )
  equal(lists.length, 6)
  await verso.logout()
  const wrong: ClientCredentials = { username: service.username, password: 'wrong' }
  const error = await rejection(UnauthenticatedError, connect(service.url, wrong).model('crm.Contact').find())
  equal([error.kind, error.status], ['unauthenticated', 401])
  await rejection(UnauthenticatedError, connect(service.url, { key: 'wrong' }).model('crm.Contact').find())
  await rejection(UnauthenticatedError, connect(service.url).model('crm.Contact').find())
}

async function useKeysAndRequests(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const { body } = await verso.request('POST', '/ws/me/keys', { body: { data: { name: label() } } })
  const [{ key }] = (body as { data: [{ key: string }] }).data
  const byKey = connect(service.url, { key })
  equal((await byKey.login()).username, service.username)
  const contact = await byKey.model('crm.Contact').create({ notes: 'by key' })
  const { status, headers } = await byKey.request('GET', `/ws/rest/crm.Contact/${contact.id}`)
  equal([status, headers.get('etag')?.slice(0, 3)], [200, '"0.'])
}

/** Scenarios about calls by what they show. */
export const CALL_SCENARIOS: Readonly<Record<string, Scenario>> = {
  'rejects with an error class for each kind': rejectWithKinds,
  'follows changes, each of them once, until it is stopped': followChangesOnce,
  'stops a call by its signal and by its timeout': stopCalls,
  'logs in once for several calls, and again after a logout': logInAndOut,
  'uses an API key, and sends any request': useKeysAndRequests,
}

async function refuseForeignSession(service: ScenarioService): Promise<void> {
  const first = open(service)
  await first.model('crm.Contact').find({ limit: 1 })
  // The browser has one session for the page: the second login replaces the first one.
  const second = open(service)
  await second.model('crm.Contact').find({ limit: 1 })
  const error = await rejection(UnauthenticatedError, first.model('crm.Contact').find({ limit: 1 }))
  equal(error.kind, 'session')
  await second.model('crm.Contact').find({ limit: 1 })
  const ofPage = connect('', {})
  equal((await ofPage.login()).username, service.username)
}

/** Scenarios that need the one session of a browser. The page must be on the origin of the service. */
export const BROWSER_SCENARIOS: Readonly<Record<string, Scenario>> = {
  'rejects a call after another login has replaced the session of the page': refuseForeignSession,
}
