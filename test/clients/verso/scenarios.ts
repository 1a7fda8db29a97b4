// Scenarios of the client that run in Node and in a browser alike: nothing here is imported from Node. Each throws if the client does not do
// what its name says.
import {
  connect,
  ConflictError,
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

/** A service with the models of test/models.ts, and an administrator. */
export interface ScenarioService {
  readonly url: string
  readonly username: string
  readonly password: string
  /** An API key of the administrator, which scenarios then use instead of the password. */
  readonly key?: string
}

export type Scenario = (service: ScenarioService) => Promise<void>

/** A client of the administrator; scenarios run one after the other, so a browser may have one session for all of them. */
function open({ url, username, password, key }: ScenarioService) {
  return connect(url, key === undefined ? { username, password } : { key })
}

let labels = 0

/** A text that no other record has. */
function label(): string {
  return `s${Math.random().toString(36).slice(2)}-${++labels}`
}

async function callEveryVerbOfRecords(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const lastName = label()
  const created = await contacts.create({ firstName: 'Ada', lastName, phones: ['1'] })
  equal([created.version, created['fullName']], [0, `Ada ${lastName}`])
  equal(await contacts.read(created.id), created)
  const updated = await contacts.update(created.id, { version: 0, email: 'ada@example.org' })
  equal([updated.version, updated['email'], updated['phones']], [1, 'ada@example.org', ['1']])
  const found = await contacts.find({ filter: { lastName }, fields: ['lastName', 'email'] })
  equal(found.data, [{ id: created.id, version: 1, lastName, email: 'ada@example.org' }])
  equal([found.offset, found.total, found.next], [0, 1, undefined])
  isTrue(found.seq > 0, 'a page has the number of its last change')
  const uncounted = await contacts.find({ filter: { lastName }, count: 'none' })
  equal([uncounted.data.length, uncounted.total], [1, undefined])
  const text = await contacts.search({ fields: ['email'], filter: { lastName }, sortBy: ['-id'], limit: 5 })
  equal([text.total, text.data[0]?.['email']], [1, 'ada@example.org'])
  const criteria = [{ fieldName: 'lastName', operator: '=', value: lastName }]
  const both = await contacts.search({ filter: 'email is not null', data: { criteria } })
  equal(both.total, 1)
  await contacts.remove(created.id, { version: 1 })
  await rejection(NotFoundError, contacts.read(created.id))
}

async function fetchRelatedRecords(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const [company, person] = await verso.batch([
    { op: 'create', model: 'rel.Company', ref: 'c', data: { name: label() } },
    { op: 'create', model: 'rel.Person', data: { name: 'Bo', company: { $ref: 'c' } } },
  ])
  const fetched = await verso
    .model('rel.Person')
    .fetch(person.id, { fields: ['name'], related: { company: ['name'] } })
  equal(fetched, {
    id: person.id,
    version: 0,
    name: 'Bo',
    company: { id: company.id, version: 0, name: company['name'] },
  })
}

async function readAllPages(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const lastName = label()
  const numbers = Array.from({ length: 23 }, (_, index) => String(index).padStart(2, '0'))
  await verso.batch(
    numbers.map(
      (firstName) => ({ op: 'create', model: 'crm.Contact', data: { firstName, lastName } }) as const,
    ),
  )
  const contacts = verso.model('crm.Contact')
  const names: unknown[] = []
  for await (const { firstName } of contacts.all({
    filter: { lastName },
    fields: ['firstName'],
    sortBy: ['firstName'],
    limit: 5,
  }))
    names.push(firstName)
  equal(names, numbers)
  // The links of a page would be longer than the service sends.
  const filter = { lastName, firstName: { '!=': 'x'.repeat(8_500) } }
  let count = 0
  for await (const record of contacts.all({ filter, limit: 5 })) count += Math.sign(record.id)
  equal(count, 23)
  const first = await contacts.find({ filter: { lastName }, limit: 10 })
  const second = await contacts.find({ filter: { lastName }, limit: 10, ...first.next })
  equal([first.total, second.offset, second.data.length], [23, 10, 10])
  isTrue(first.next?.after !== undefined, 'the next page has a cursor')
}

async function mergeDifferentFields(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ firstName: 'Ada', lastName: label() })
  let runs = 0
  const merged = await contacts.update(id, async (record) => {
    runs++
    await contacts.update(id, { version: record.version, email: 'theirs@example.org' })
    // A whole record comes back: only what differs is sent.
    return { ...record, notes: 'ours' }
  })
  equal([merged.version, merged['email'], merged['notes'], runs], [2, 'theirs@example.org', 'ours', 1])
  equal((await contacts.update(id, (record) => ({ ...record }))).version, 2)
  equal((await contacts.update(id, () => ({}))).version, 2)
  const error = await rejection(
    TypeError,
    contacts.update(id, (record) => Object.assign(record, { notes: 'in place' })),
  )
  isTrue(/read.only/i.test(error.message), error.message)
  const strict = { merge: false } as const
  await rejection(ConflictError, contacts.update(id, { version: 1, firstName: 'Eve' }, strict))
}

async function resolveConflicts(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ lastName: 'base', notes: 'base', email: 'base' })
  let clashes = 0
  const saved = await contacts.update(
    id,
    async ({ version }) => {
      await contacts.update(id, { version, notes: 'theirs', phones: [1] })
      return { notes: 'ours', email: 'ours' }
    },
    {
      onConflict: async ({ base, ours, theirs, fields }) => {
        clashes++
        if (clashes === 1) {
          equal(
            [base?.['notes'], ours, theirs['notes']],
            ['base', { notes: 'ours', email: 'ours' }, 'theirs'],
          )
          equal(fields['notes'], { base: 'base', ours: 'ours', theirs: 'theirs', verdict: 'clash' })
          equal([fields['email']?.verdict, fields['phones']?.verdict], ['ours', 'theirs'])
          // Somebody changes the record again while this one is being resolved.
          await contacts.update(id, { version: theirs.version, notes: 'theirs again' })
        }
        return { notes: `${String(theirs['notes'])} and ours` }
      },
    },
  )
  equal(clashes, 2)
  equal([saved['notes'], saved['email'], saved['phones']], ['theirs again and ours', 'ours', [1]])
  const kept = await contacts.update(id, { version: 0, notes: 'late' }, { onConflict: () => undefined })
  equal([kept.version, kept['notes']], [saved.version, 'theirs again and ours'])
}

async function reportConflicts(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ notes: 'base' })
  await contacts.update(id, { version: 0, notes: 'theirs' })
  const error = await rejection(ConflictError, contacts.update(id, { version: 0, notes: 'ours', email: 'e' }))
  equal([error.kind, error.status, error.expected, error.current], ['conflict', 409, 0, 1])
  equal([error.base?.['notes'], error.base?.version, error.theirs['notes']], ['base', 0, 'theirs'])
  equal([error.ours, error.fields['notes']?.verdict], [{ notes: 'ours', email: 'e' }, 'clash'])
  await rejection(ConflictError, contacts.remove(id, { version: 0 }))
  await contacts.update(id, { version: 1, notes: 'theirs again' })
  await rejection(ConflictError, contacts.revert(id, { to: 0, version: 1 }))
  equal((await contacts.read(id))['notes'], 'theirs again')
}

async function countTogether(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ phones: 0 })
  const increments = Array.from({ length: 8 }, () =>
    contacts.update(id, ({ phones }) => ({ phones: (phones as number) + 1 }), { onConflict: 'retry' }),
  )
  equal(
    (await Promise.all(increments)).map(({ phones }) => phones as number).sort(),
    [1, 2, 3, 4, 5, 6, 7, 8],
  )
  equal((await contacts.read(id))['phones'], 8)
}

/** Both count from 0 to 1: the service takes equal values for one change, so it must not merge them. */
async function countWithoutRetry(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ phones: 0 })
  const count = () => contacts.update(id, ({ phones }) => ({ phones: (phones as number) + 1 }))
  const results = await Promise.allSettled([count(), count(), count()])
  const counted = results.filter(({ status }) => status === 'fulfilled').length
  equal((await contacts.read(id))['phones'], counted)
  isTrue(counted > 0, 'one of them counts')
}

async function readAndRestoreThePast(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ notes: 'one' })
  await contacts.update(id, { version: 0, notes: 'two' })
  const history = await contacts.history(id, { limit: 1 })
  const [newest] = history.data
  equal(
    [history.total, newest?.action, newest?.changes['notes']],
    [2, 'update', { before: 'one', after: 'two' }],
  )
  equal((await contacts.read(id, { asOf: 0 }))['notes'], 'one')
  equal((await contacts.revert(id, { to: 0, version: 1 }))['notes'], 'one')
  await contacts.remove(id)
  const restored = await contacts.revert(id, { to: 1 })
  equal([restored.version, restored['notes']], [4, 'two'])
}

async function runBatches(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const lastName = label()
  const results = await verso.batch([
    { op: 'create', model: 'crm.Contact', ref: 'new', data: { lastName } },
    { op: 'update', model: 'crm.Contact', id: { $ref: 'new' }, version: 0, data: { notes: 'n' } },
  ])
  equal(
    results.map((each) => (each as { version: number }).version),
    [0, 1],
  )
  const { id } = results[0] as { id: number }
  const error = await rejection(
    ConflictError,
    verso.batch([
      { op: 'create', model: 'crm.Contact', data: { lastName } },
      { op: 'update', model: 'crm.Contact', id, version: 0, data: { notes: 'stale' } },
    ]),
  )
  equal([error.data['index'], error.fields['notes']?.theirs], [1, 'n'])
  const merged = await verso.batch(
    [{ op: 'update', model: 'crm.Contact', id, version: 0, data: { email: 'e' } }],
    { merge: true },
  )
  equal((merged[0] as { version: number }).version, 2)
  equal((await verso.model('crm.Contact').find({ filter: { lastName }, limit: 0 })).total, 1)
}

async function exchangeFiles(service: ScenarioService): Promise<void> {
  const folders = open(service).model('doc.Folder')
  const { id } = await folders.create({ title: label() })
  equal(await folders.download(id, 'cover'), undefined)
  const bytes = new TextEncoder().encode('Grüße, a cover')
  const name = 'Grüße (1).txt'
  const uploaded = await folders.upload(id, { version: 0, field: 'cover', content: bytes, name })
  equal(uploaded.version, 1)
  const file = await folders.download(id, 'cover')
  equal([file?.name, file?.type, file?.size], [name, 'text/plain; charset=utf-8', bytes.length])
  equal([...((await file?.bytes()) ?? [])], [...bytes])
  const stream = new Blob(['streamed']).stream() as unknown as ReadableStream<Uint8Array>
  await folders.upload(id, { version: 1, field: 'cover', content: stream, name: 'b.txt' })
  const part = await folders.download(id, 'cover', { range: [2, 4] })
  equal([await (await part?.blob())?.text(), part?.size, part?.total], ['rea', 3, 8])
  const cancelled = await folders.download(id, 'cover')
  await cancelled?.stream().cancel()
  await rejection(
    ConflictError,
    folders.upload(id, { version: 1, field: 'cover', content: new Blob(['late']), name: 'c.txt' }),
  )
  equal((await folders.clear(id, 'cover', { version: 2 })).version, 3)
  equal(await folders.download(id, 'cover'), undefined)
}

async function rejectWithKinds(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const limited = verso.model('test.Limited')
  const code = label().slice(-4)
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

async function repeatWritesWithAKey(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const [lastName, idempotencyKey] = [label(), label()]
  const first = await contacts.create({ lastName }, { idempotencyKey })
  equal((await contacts.create({ lastName }, { idempotencyKey })).id, first.id)
  const error = await rejection(RequestError, contacts.create({ lastName: 'other' }, { idempotencyKey }))
  equal([error.kind, error.idempotencyKey], ['key-reused', idempotencyKey])
  equal((await contacts.find({ filter: { lastName }, limit: 0 })).total, 1)
}

async function filterByObjects(service: ScenarioService): Promise<void> {
  const verso = open(service)
  const people = verso.model('rel.Person')
  const [company, name] = [label(), label()]
  const { id } = await verso.model('rel.Company').create({ name: company })
  const odd = `it's "${name}" ') or id > 0 -- \\ 😀`
  const ada = await people.create({ name: odd, rate: '12.50', isActive: true, company: { id } })
  const bo = await people.create({ name, born: '1990-05-01' })
  const find = async (filter: Readonly<Record<string, unknown>>) => {
    const page = await people.find({ filter: { and: [{ id: [ada.id, bo.id] }, filter] } })
    return page.data.map((each) => each.id)
  }
  const cases: readonly (readonly [Readonly<Record<string, unknown>>, readonly number[]])[] = [
    [{ name: odd }, [ada.id]],
    [{ name: { like: `%${name}%` } }, [ada.id, bo.id]],
    [{ rate: { '>=': 12.5, '<': 13 } }, [ada.id]],
    [{ rate: null }, [bo.id]],
    [{ 'company.name': company }, [ada.id]],
    [{ company: { id } }, [ada.id]],
    [{ company: { '!=': null } }, [ada.id]],
    [{ or: [{ isActive: true }, { born: { between: ['1990-01-01', '1990-12-31'] } }] }, [ada.id, bo.id]],
    [{ not: { isActive: true } }, []],
    [{ born: { isNull: true } }, [ada.id]],
    [{ born: [null, '1990-05-01'] }, [ada.id, bo.id]],
    [{ circles: { isEmpty: true } }, [ada.id, bo.id]],
    [{ or: [] }, []],
    [{ id: [] }, []],
    [{}, [ada.id, bo.id]],
  ]
  for (const [filter, ids] of cases) equal(await find(filter), ids)
  await rejection(TypeError, people.find({ filter: { name: undefined } as object }))
  await rejection(TypeError, people.find({ filter: { 'name = 1 or id': 1 } as object }))
}

/** Scenarios by what they show. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'creates, reads, updates, finds, searches and deletes a record': callEveryVerbOfRecords,
  'fetches a record with its related records': fetchRelatedRecords,
  'reads all pages of a list by cursor': readAllPages,
  'merges changes of different fields': mergeDifferentFields,
  'saves the answer of onConflict, also if others change the record again': resolveConflicts,
  'rejects with a ConflictError that has both sides': reportConflicts,
  'counts to eight with eight updates at once that run again after a conflict': countTogether,
  'never takes two equal results of functions for one change': countWithoutRetry,
  'reads earlier versions, reverts a record and restores a deleted one': readAndRestoreThePast,
  'runs a batch as a whole or not at all': runBatches,
  'uploads, downloads and clears a file': exchangeFiles,
  'rejects with an error class for each kind': rejectWithKinds,
  'follows changes, each of them once, until it is stopped': followChangesOnce,
  'stops a call by its signal and by its timeout': stopCalls,
  'logs in once for several calls, and again after a logout': logInAndOut,
  'uses an API key, and sends any request': useKeysAndRequests,
  'repeats a write with its key without a second effect': repeatWritesWithAKey,
  'filters by objects': filterByObjects,
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
