// The project records in a running service: a user for each role, the same records on every target, and writes that are rolled back.
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../../src/http/settings.js'
import { addUser } from '../../src/service/auth/accounts.js'
import type { UserIdentity } from '../../src/service/context/identity.js'
import type { App } from '../../src/service/context/app.js'
import { SERVICE_PRINCIPAL, type Principal } from '../../src/service/context/principal.js'
import { recordsFor, recordsForPrincipal } from '../../src/service/records/records.js'
import type { Database, Queryable, Transaction } from '../../src/store/engine/database.js'
import * as store from '../../src/store/records/records.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import type { Cell, Row, Dataset } from '../properties/search-oracle.js'
import {
  PASSWORD,
  startService,
  type Transport,
  type Engine,
  type Service,
  type ServiceOptions,
} from '../targets.js'
import { MODELS, plannedDataset, SHAPES, sources, USER, USERS } from './project-records.js'
import { complete, Reference, type Grant } from './reference.js'
import { ROLES } from './roles.js'

const ACTIONS = { r: 'canRead', c: 'canCreate', u: 'canUpdate', d: 'canRemove', x: 'canExport' } as const
const FIRST_ROLES: readonly string[] = ['editor', 'reader']

export interface ProjectFixture {
  readonly service: Service
  readonly app: App
  readonly url: string
  readonly dataset: Dataset
  /** The verbs of the user of a role. */
  as(role: string, transport: Transport): Records
  /** The HTTP client of that user, for any request. */
  client(role: string): HttpClient
  identity(role: string): UserIdentity
  reference(role: string, dataset?: Dataset): Reference
  /** Runs `work`, reads the records, and rolls all of it back. */
  undone<T>(work: () => Promise<T>): Promise<{ readonly answer: T; readonly after: Dataset | undefined }>
  close(): Promise<void>
}

export type Roles = Readonly<Record<string, readonly Grant[] | 'everything'>>

/** Starts the fixture with both transports. `changed` may pass in a mutant of the app. */
export async function openProjectFixture(
  engine: Engine,
  { roles = ROLES, ...options }: ServiceOptions & { readonly roles?: Roles } = {},
  changed: (app: App) => App = (app) => app,
): Promise<ProjectFixture> {
  const service = await startService(engine, { models: sources, ...options })
  const identities = await addUsers(service.app, roles)
  await addRecords(service.app, identities)
  await refresh(service.app, identities)
  const dataset = await readDataset(service.app, [...identities.values()])
  const undo = new Undo(service.app)
  // The clock stands still: a session marked as seen during a request would be taken for part of the write.
  const openedMs = service.app.clock.now()
  const clock = { now: () => openedMs }
  const app = changed({ ...service.app, clock, db: undo.around(service.app.db) })
  const { server, url } = await serverOf(app, options.http)
  const clients = new Map(
    await Promise.all(
      [...identities.keys()].map(
        async (role) => [role, await HttpClient.login(url, role, PASSWORD)] as const,
      ),
    ),
  )
  const identityOf = (role: string) => found(identities, role)
  return {
    ...{ service, app, url, dataset, identity: identityOf },
    as: (role, transport) =>
      transport === 'http' ? found(clients, role) : recordsFor(app, identityOf(role)),
    client: (role) => found(clients, role),
    reference: (role, of = dataset) => {
      const user = of[USER]?.find(({ id }) => id === identityOf(role).id)
      return new Reference(SHAPES, of, user ?? { id: 0 }, roles[role] ?? [])
    },
    undone: (work) => undo.undone(work),
    close: async () => {
      await server.close()
      await service.close()
    },
  }
}

async function serverOf(
  app: App,
  http: Partial<HttpSettings> = {},
): Promise<{ readonly server: Server; readonly url: string }> {
  const settings = { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, ...http }
  const server = await createServer(app, settings)
  const [url = ''] = await server.listen()
  return { server, url }
}

function found<T>(map: ReadonlyMap<string, T>, key: string): T {
  const value = map.get(key)
  if (value === undefined) throw new Error(`there is no role ${key}`)
  return value
}

async function addUsers(app: App, roles: Roles): Promise<Map<string, UserIdentity>> {
  const records = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  const names = Object.keys(roles)
  for (const name of names) {
    const grants = roles[name] ?? []
    if (grants !== 'everything' && !FIRST_ROLES.includes(name))
      await records.create('verso.auth.Role', { name, permissions: grants.map(permissionOf) })
  }
  // Password hashing is expensive: uses all cores.
  const others = names.filter((name) => roles[name] !== 'everything')
  await Promise.all(
    others.map((name) => addUser(app, { username: name, name, password: PASSWORD, roles: [name] })),
  )
  const { data } = await records.find(USER, { fields: ['username', 'name'], limit: 100 })
  return new Map(
    data.map(({ id, version, username, name }) => [
      String(username),
      { id, version, username: String(username), name: String(name) },
    ]),
  )
}

/** Reads the current versions of the users, as a session has them. */
async function refresh(app: App, identities: Map<string, UserIdentity>): Promise<void> {
  for (const [role, identity] of identities) {
    const { version } = await recordsForPrincipal(app, SERVICE_PRINCIPAL).read(USER, identity.id)
    identities.set(role, { ...identity, version })
  }
}

export function permissionOf({ model, can, text, readable, writable }: Grant): Record<string, unknown> {
  const actions = Array.from(can, (letter) => [ACTIONS[letter as keyof typeof ACTIONS], true] as const)
  const condition = text === undefined ? {} : { condition: text }
  const lists = { ...(readable ? { readable } : {}), ...(writable ? { writable } : {}) }
  return { model, ...Object.fromEntries(actions), ...condition, ...lists }
}

async function addRecords(app: App, identities: ReadonlyMap<string, UserIdentity>): Promise<void> {
  const ids = Object.fromEntries([...identities].map(([role, { id }]) => [role, id]))
  const byId = new Map([...identities.values()].map((identity) => [identity.id, identity]))
  for (const [model, rows] of Object.entries(plannedDataset(ids))) {
    for (const { id, createdBy, ...cells } of rows) {
      const by: Principal = { ...SERVICE_PRINCIPAL, user: byId.get(Number(createdBy)) ?? null }
      const { data } = await recordsForPrincipal(app, by).create(model, dataOf(model, cells))
      if (data.id !== id) throw new Error(`${model} ${id} was given the id ${data.id}`)
    }
  }
  const cover = {
    data: { id: 1, version: 2 },
    field: 'cover',
    name: 'a.txt',
    content: contentOf('cover of 1'),
  }
  await recordsForPrincipal(app, SERVICE_PRINCIPAL).upload('lab.Project', cover)
  for (const [role, cells] of Object.entries(USERS)) {
    const identity = identities.get(role)
    if (!identity) continue
    const data = { ...dataOf(USER, cells), version: identity.version }
    await recordsForPrincipal(app, SERVICE_PRINCIPAL).update(USER, identity.id, data)
  }
}

export async function* contentOf(text: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(text))
}

/** Turns ids into references; for a user only the added fields. */
export function dataOf(model: string, cells: Readonly<Record<string, Cell>>): Record<string, unknown> {
  const isRelation = (name: string) =>
    model === USER ? name !== 'level' : typeof SHAPES[model]?.fields[name] === 'object'
  const reference = (cell: Cell): unknown =>
    Array.isArray(cell) ? cell.map(reference) : cell === null ? null : { id: cell }
  return Object.fromEntries(
    Object.entries(cells).map(([name, cell]) => [name, isRelation(name) ? reference(cell) : cell]),
  )
}

/** All records, as a user with all permissions sees them. */
async function readDataset(app: App, identities: readonly UserIdentity[]): Promise<Dataset> {
  const entries = await Promise.all(
    MODELS.map(async (model) => [model, await rowsOf(app, app.db.reader, model)] as const),
  )
  const records = recordsForPrincipal(app, SERVICE_PRINCIPAL)
  const users = await Promise.all(
    identities.map(async ({ id, username }): Promise<Row> => {
      const { version, name } = await records.read(USER, id)
      return { id, version, name: name as string, teams: [], ...USERS[username] }
    }),
  )
  return complete(SHAPES, { ...Object.fromEntries(entries), [USER]: users })
}

async function rowsOf(app: App, db: Queryable, model: string): Promise<Row[]> {
  const table = app.tables.of(app.catalog.get(model))
  return (await store.scanById(db, table, { after: 0, limit: 1_000 })).map(rowFrom)
}

/** A record of an answer, with ids for related records. */
export function rowFrom(record: WireRecord): Row {
  const cellOf = (value: unknown): Cell => {
    if (Array.isArray(value)) return value.map((each) => Number(cellOf(each)))
    return typeof value === 'object' && value !== null && 'id' in value ? Number(value.id) : (value as Cell)
  }
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, cellOf(value)])) as Row
}

class Undone extends Error {}

/** A database whose transactions can be rolled back after their answer. */
class Undo {
  #isOn = false
  #after: Dataset | undefined

  constructor(readonly app: App) {}

  around(db: Database): Database {
    return {
      ...{
        dialect: db.dialect,
        reader: db.reader,
        queryPool: db.queryPool,
        blobs: db.blobs,
        commits: db.commits,
        writability: () => db.writability(),
        gauges: () => db.gauges(),
        measure: () => db.measure(),
      },
      close: () => db.close(),
      transaction: async (work, options) => {
        if (!this.#isOn) return db.transaction(work, options)
        let answer: { readonly value: Awaited<ReturnType<typeof work>> } | undefined
        try {
          return await db.transaction(async (tx) => {
            answer = { value: await work(tx) }
            this.#after = await this.#look(tx)
            throw new Undone()
          }, options)
        } catch (error) {
          if (error instanceof Undone && answer) return answer.value
          throw error
        }
      },
    }
  }

  async #look(tx: Transaction): Promise<Dataset> {
    const entries: [string, Row[]][] = []
    for (const model of MODELS) entries.push([model, await rowsOf(this.app, tx, model)])
    return Object.fromEntries(entries)
  }

  async undone<T>(
    work: () => Promise<T>,
  ): Promise<{ readonly answer: T; readonly after: Dataset | undefined }> {
    this.#isOn = true
    this.#after = undefined
    try {
      const answer = await work()
      return { answer, after: this.#after }
    } finally {
      this.#isOn = false
    }
  }
}
