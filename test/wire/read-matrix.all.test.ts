// Every read route × fields, sort and filter × restricted and unrestricted users: no failure, and equal responses on both engines.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { openDatabase } from '../../src/store/open.js'
import type { Queryable, Reader } from '../../src/store/engine/database.js'
import { createPeople } from '../behaviour/people.js'
import { rootOf } from '../permissions/office-fixture.js'
import { searchingBy } from '../query-pool.js'
import {
  enter,
  ENGINES,
  PASSWORD,
  preparedLocation,
  startService,
  type Engine,
  type Service,
  type ServiceOptions,
} from '../targets.js'
import { faceOf } from '../mutants/records.js'
import { credentials, json, openSession, send, type Answer, type Sent } from './exchange.js'
import { find, post, QUESTIONS, recordRequests, type Question } from './read-matrix.js'
import { routesOf } from './routes.js'
import { unshared } from '../queryables.js'

const AT_ONCE = 8
/** Shorter than the lifetime of a session. */
const LATER_MS = 600_000
const USERS = ['ada', 'guest'] as const
type User = (typeof USERS)[number]

/** Sees some people and some fields of companies, but no notes and no circles. */
const PERMISSIONS = [
  { model: 'rel.Person', canRead: true, canExport: true, condition: "company.name = 'Acme' or name is null" },
  { model: 'rel.Person', canRead: true, condition: 'rate > 50', readable: ['name', 'boss', 'createdBy'] },
  { model: 'rel.Company', canRead: true, canExport: true, readable: ['code', 'name', 'people', 'parent'] },
  { model: 'rel.Address', canRead: true },
  { model: 'crm.Contact', canRead: true, condition: 'createdBy = :user' },
]

interface Fixture {
  readonly service: Service
  readonly cookies: Readonly<Record<User, string>>
  readonly ids: Readonly<Record<string, readonly number[]>>
}

const fixtures = new Map<Engine, Fixture>()
/** An instant between the creation and the changes of the records. */
let asOf = ''

async function begin(engine: Engine, options: ServiceOptions = {}): Promise<Fixture> {
  const service = await startService(engine, options)
  const root = rootOf(service)
  await root.create(ROLE_MODEL, { name: 'guests', permissions: PERMISSIONS })
  await addUser(service.app, { username: 'guest', password: PASSWORD, roles: ['guests'] })
  const records = await enter(service, 'direct')
  const { ada, emile, zoe, nobody, acme, zenith } = await createPeople(records)
  for (const title of ['one', 'two']) await records.create('test.Note', { title })
  for (const lastName of ['B', 'A'])
    await records.create('crm.Contact', { lastName, pin: '1', phones: [{ n: 1 }] })
  const values = {
    amount: '1.5',
    big: 2 ** 40,
    day: '2024-02-29',
    at: '12:30:00',
    state: 'sent',
    extra: { a: [] },
  }
  for (const each of [values, { ...values, amount: '-2', active: true }, {}])
    await records.create('test.Everything', each)
  const cookies = {
    ada: await openSession(service.url),
    guest: await openSession(service.url, {}, credentials('guest')),
  }
  const ids = {
    'rel.Person': [ada, emile, zoe, nobody, 99],
    'rel.Company': [acme, zenith],
    ...{ 'test.Note': [1, 2], 'crm.Contact': [1, 2], 'test.Everything': [1, 3] },
  }
  return { service, cookies, ids }
}

/** Changes the records after the instant `asOf`. */
async function goOn({ service, ids }: Fixture): Promise<void> {
  service.clock.advance(LATER_MS)
  const records = await enter(service, 'direct')
  const [ada = 0, emile = 0, zoe = 0] = ids['rel.Person'] ?? []
  await records.update('rel.Person', ada, { version: 0, name: 'Ada L.', company: null, circles: [] })
  await records.update('rel.Person', emile, { version: 0, born: null, keeper: { id: 1 } })
  await records.remove('rel.Person', zoe)
  await records.update('test.Note', 2, { version: 0, archived: true })
  await records.update('crm.Contact', 1, { version: 0, lastName: 'C', pin: '2' })
}

beforeAll(async () => {
  const begun = await Promise.all(ENGINES.map((engine) => begin(engine)))
  asOf = new Date(Date.now() + LATER_MS / 2).toISOString()
  await Promise.all(begun.map(goOn))
  for (const [index, fixture] of begun.entries()) fixtures.set(ENGINES[index] ?? 'sqlite', fixture)
})
afterAll(async () => {
  for (const { service } of fixtures.values()) await service.close()
})

/** Responses by request, for each service and user; nothing is written meanwhile, so they can be reused. */
const known = new Map<string, Map<string, Answer>>()

async function ask({ service, cookies }: Fixture, user: User, requests: readonly Sent[]): Promise<Answer[]> {
  const answers: Answer[] = []
  const before = known.get(cookies[user]) ?? new Map<string, Answer>()
  known.set(cookies[user], before)
  const next = requests.entries()
  const work = async () => {
    for (const [index, request] of next) {
      const key = JSON.stringify(request)
      const headers = { ...request.headers, cookie: cookies[user] }
      const answer = before.get(key) ?? (await send(service.url, { ...request, headers }))
      before.set(key, answer)
      answers[index] = answer
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return answers
}

/** A response without the parts that always differ. */
function told({ status, headers, text }: Answer): string {
  const { link = '', 'x-commit-seq': seq = '', 'content-type': type = '' } = headers
  const same = text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .replaceAll(/"requestId":"[^"]*"/g, '')
  return [status, type, link, seq, same].join(' ')
}

/** The number of problems to show. */
const SHOWN = 10
const INTENDED = [200, 400, 403, 404, 409, 410]

/** Problems with the responses to these requests: failures, and differences between the engines. */
async function troubles(asked: readonly Fixture[], requests: readonly Sent[]): Promise<string[]> {
  const wrong: string[] = []
  for (const user of USERS) {
    const [some = [], ...others] = await Promise.all(asked.map((fixture) => ask(fixture, user, requests)))
    for (const [index, answer] of some.entries()) {
      const { method = 'GET', path = '', body = '' } = requests[index] ?? {}
      const what = `${user}: ${method} ${decodeURIComponent(path)} ${body.toString()}`
      const all = [answer, ...others.flatMap((each) => each[index] ?? [])]
      const strange = all.find(({ status }) => !INTENDED.includes(status))
      if (strange) wrong.push(`${what}: ${strange.status} ${strange.text}`)
      else if (new Set(all.map(told)).size > 1) wrong.push([what, ...all.map(told)].join('\n  '))
    }
  }
  return wrong.slice(0, SHOWN)
}

const both = () => [...fixtures.values()]

test('both engines answer every find alike', async () => {
  expect(QUESTIONS.length).toBeGreaterThan(150)
  expect(
    await troubles(
      both(),
      QUESTIONS.map((question) => find(question)),
    ),
  ).toEqual([])
})

test('both engines answer a find with asOf alike', async () => {
  expect(
    await troubles(
      both(),
      QUESTIONS.filter((_, index) => index % 3 === 0).map((question) => find(question, { asOf })),
    ),
  ).toEqual([])
})

test('both engines answer every search and export alike', async () => {
  const searched = QUESTIONS.flatMap((question) => post(question, 'search') ?? [])
  const exported = QUESTIONS.flatMap((question) => post(question, 'export') ?? [])
  const some = exported.filter((_, index) => index % 3 === 0)
  expect(await troubles(both(), [...searched, ...some])).toEqual([])
})

test('both engines answer a record, its history, the feed and the metadata alike', async () => {
  const [fixture] = both()
  expect(await troubles(both(), recordRequests(fixture?.ids ?? {}, asOf))).toEqual([])
})

test.each(ENGINES)(
  'on %s, a valid query is 200, an invalid one 400, and find and search agree',
  async (engine) => {
    const fixture = fixtures.get(engine)
    if (!fixture) throw new Error('it did not begin')
    const asked = QUESTIONS.flatMap((question) => {
      const searched = post(question, 'search')
      return searched ? [[question, searched] as const] : []
    })
    for (const user of USERS) {
      const found = await ask(
        fixture,
        user,
        asked.map(([question]) => find(question)),
      )
      const searched = await ask(
        fixture,
        user,
        asked.map(([, each]) => each),
      )
      for (const [index, [question]] of asked.entries())
        expectAgreement(user, question, found[index], searched[index])
    }
  },
)

function expectAgreement(
  user: User,
  { model, query, isWrong }: Question,
  found?: Answer,
  searched?: Answer,
): void {
  const what = `${user} ${model} ${JSON.stringify(query)}`
  if (user === 'ada') expect(found?.status, `${what} ${found?.text ?? ''}`).toBe(isWrong ? 400 : 200)
  expect(searched?.status, `${what} ${searched?.text ?? ''}`).toBe(found?.status)
  if (found?.status === 200 && searched) expect(json(searched), what).toEqual(json(found))
}

test('the matrix covers every route that reads records', () => {
  const [fixture] = both()
  if (!fixture) throw new Error('it did not begin')
  const asked = [
    ...QUESTIONS.flatMap((each) =>
      [find(each), post(each, 'search') ?? [], post(each, 'export') ?? []].flat(),
    ),
    ...recordRequests(fixture.ids, asOf),
  ]
  const paths = asked.map(({ path }) => path.replace(/\?.*/, ''))
  const isAsked = (route: string) => {
    const pattern = new RegExp(`^${route.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`)
    return paths.some((path) => pattern.test(path))
  }
  const reads = [...routesOf(fixture.service.server.fastify).keys()].filter((route) =>
    /^\/ws\/(?:rest|meta|changes)/.test(route),
  )
  expect(reads.length).toBeGreaterThan(15)
  expect(reads.filter((route) => !isAsked(route)).sort()).toEqual(WRITES)
})

/** Routes that read nothing, or do not answer JSON. */
const WRITES = [
  ...['/ws/rest/:model/:id/:field/download', '/ws/rest/:model/:id/revert', '/ws/rest/:model/removeAll'],
  ...['/ws/rest/:model/updateMass', '/ws/rest/:model/upload'],
]

/** The mutant: passes the rows of a search through JSON. */
const throughJson = (queryable: Queryable): Reader =>
  unshared({
    all: async (sql, params) => JSON.parse(JSON.stringify(await queryable.all(sql, params))) as never,
  })

test('the mutant that passes rows through JSON is caught', async () => {
  const location = await preparedLocation('sqlite')
  const db = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 10_000 })
  const database = { ...faceOf(db), queryPool: searchingBy(db.queryPool, throughJson) }
  const fixture = await begin('sqlite', { location, database, expects: ['internal'] })
  const relations = QUESTIONS.filter(({ query }) => Object.keys(query).join() === 'fields')
  const wrong = await troubles(
    [fixture],
    relations.map((question) => find(question)),
  )
  await fixture.service.close()
  location.remove()
  expect(wrong).toContainEqual(expect.stringMatching(/^ada: GET \S+rel\.Person\?fields=company : 500/))
})
