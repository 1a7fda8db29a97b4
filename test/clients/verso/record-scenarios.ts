// Scenarios about records, their past, files and filters.
import { ConflictError, NotFoundError, RequestError } from '../../../src/client/index.js'
import { equal, isTrue, rejection } from './claims.js'
import { label, open, type Scenario, type ScenarioService } from './scenario-service.js'

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

async function readAndRestoreThePast(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const lastName = label()
  const { id } = await contacts.create({ lastName, notes: 'one' })
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
  const { data, next } = await contacts.deleted({ q: lastName, limit: 1 })
  equal([data.map((found) => [found.id, found.version]), next], [[[id, 3]], undefined])
  equal((await contacts.deleted({ q: lastName, before: data[0]?.seq })).data, [])
  const restored = await contacts.revert(id, { to: 1 })
  equal([restored.version, restored['notes']], [4, 'two'])
  equal((await contacts.deleted({ q: lastName })).data, [])
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
  const part = await folders.download(id, 'cover', { range: { first: 2, last: 4 } })
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

/** Scenarios about records by what they show. */
export const RECORD_SCENARIOS: Readonly<Record<string, Scenario>> = {
  'creates, reads, updates, finds, searches and deletes a record': callEveryVerbOfRecords,
  'fetches a record with its related records': fetchRelatedRecords,
  'reads all pages of a list by cursor': readAllPages,
  'reads earlier versions, reverts a record and restores a deleted one': readAndRestoreThePast,
  'runs a batch as a whole or not at all': runBatches,
  'uploads, downloads and clears a file': exchangeFiles,
  'repeats a write with its key without a second effect': repeatWritesWithAKey,
  'filters by objects': filterByObjects,
}
