// Behaviours run on SQLite and PostgreSQL, by direct calls and over HTTP with a real port.
import { describe, inject, type ProvidedContext } from 'vitest'
import { VersoError } from '../src/errors.js'
import type { RoutePlugin } from '../src/http/ext/route-plugin.js'
import type { Metrics } from '../src/http/metrics/metrics.js'
import { createServer, type Server } from '../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../src/http/settings.js'
import type { ModelSource } from '../src/model/catalog/catalog.js'
import { addUser } from '../src/service/auth/accounts.js'
import type { UserIdentity } from '../src/service/context/identity.js'
import type { App } from '../src/service/context/app.js'
import { createApp, type AppOptions } from '../src/service/create-app.js'
import { rebuildCounters } from '../src/service/maintenance/counters.js'
import { recordsFor } from '../src/service/records/records.js'
import { findCredentials } from '../src/store/auth/accounts.js'
import {
  findBlockMismatches,
  findValueMismatches,
  type CounterMismatch,
} from '../src/store/counters/check.js'
import { COUNT_TABLE, VALUE_COUNT_TABLE } from '../src/store/counters/counted-fields.js'
import { quoteIdentifier, toTableName } from '../src/store/engine/names.js'
import type { Records } from '../src/wire.js'
import { HttpClient } from './http-client.js'
import { models as fixtures } from './models.js'
import {
  newLocation,
  PASSWORD,
  preparedLocation,
  USERNAME,
  type Engine,
  type DatabaseLocation,
} from './database-location.js'
import { ANY_FAILURE, expectFailures, type Failure } from './server-failures.js'

export {
  newLocation,
  PASSWORD,
  preparedLocation,
  USERNAME,
  type Engine,
  type DatabaseLocation,
} from './database-location.js'
export type Transport = 'direct' | 'http'

export const ENGINES: readonly Engine[] = ['sqlite', 'postgres']

/** A clock that tests can stop and advance. */
export class TestClock {
  #aheadMs = 0
  #passedMs = 0
  #stoppedMs: number | undefined
  #frozenMs: number | undefined

  now(): number {
    return (this.#frozenMs ?? Date.now()) + this.#aheadMs
  }

  /** Stops the time of day, so that only `advance` changes it. */
  freeze(): void {
    this.#frozenMs = Date.now()
  }

  elapsed(): number {
    return (this.#stoppedMs ?? performance.now()) + this.#passedMs
  }

  /** Stops the elapsed time, so that cached sessions do not expire. */
  standStill(): void {
    this.#stoppedMs = performance.now()
  }

  advance(ms: number): void {
    this.#aheadMs += ms
  }

  /** Advances the elapsed time by a second, after which caches of other nodes are up to date. */
  letASecondPass(): void {
    this.#passedMs += 1_000
  }
}

export interface Service {
  readonly app: App
  readonly clock: TestClock
  readonly server: Server
  /** The base URL. */
  readonly url: string
  readonly location: DatabaseLocation
  readonly expects: readonly Failure[]
  close(): Promise<void>
}

export interface ServiceOptions extends Omit<AppOptions, 'models' | 'clock'> {
  readonly models?: readonly ModelSource[]
  readonly http?: Partial<HttpSettings>
  /** An existing database, which is kept when the service closes. */
  readonly location?: DatabaseLocation
  readonly setupToken?: string
  /** Plugins whose routes are served below `/ext`. */
  readonly routes?: readonly RoutePlugin[]
  readonly metrics?: Metrics
  /** Creates the tables and a password hash of real cost instead of a copied database. */
  readonly isNew?: boolean
  /**
   * Failures that the tests provoke; any other status of 500 and above fails the test. Allows all failures by default if `database` is
   * given, which may be a mutant.
   */
  readonly expects?: readonly Failure[]
}

/** Starts a service on a new database with one account. */
export async function startService(engine: Engine, options: ServiceOptions = {}): Promise<Service> {
  const {
    models = fixtures,
    http,
    location: given,
    setupToken,
    routes = [],
    metrics,
    isNew = false,
    ...rest
  } = options
  const { expects = rest.database ? ANY_FAILURE : [] } = rest
  const location = given ?? (await (isNew ? newLocation(engine) : preparedLocation(engine, models)))
  const clock = new TestClock()
  const app = await createApp({
    ...rest,
    models,
    clock,
    settings: { db: location.url, diskReserveBytes: 0, ...rest.settings },
  })
  if (!(await findCredentials(app.db.reader, USERNAME))) {
    await addUser(app, { username: USERNAME, name: 'Ada', password: PASSWORD, roles: ['administrator'] })
  }
  const server = await createServer(
    app,
    { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0, ...http },
    { routes, metrics, ...(setupToken === undefined ? {} : { setupToken }) },
  )
  expectFailures(server.fastify.server, expects)
  const [url = ''] = await server.listen()
  const close = async () => {
    await server.close()
    const wrong = await wrongCounters(app, rest.database !== undefined)
    await app.close()
    if (!given) location.remove()
    if (wrong.length > 0) throw new Error(`counters are wrong: ${JSON.stringify(wrong.slice(0, 10))}`)
  }
  return { app, clock, server, url, location, expects, close }
}

/** Checks the counters after the tests of a service. Mutants may leave them wrong. */
async function wrongCounters(app: App, isMutant: boolean): Promise<CounterMismatch[]> {
  if (isMutant) return []
  const { db, catalog } = app
  const wrong: CounterMismatch[] = []
  try {
    const used = await namesOfUsedModels(app)
    for (const model of catalog.storedModels.filter(({ name }) => used.has(name)))
      wrong.push(
        ...(await findBlockMismatches(db.reader, model)),
        ...(await findValueMismatches(db.reader, model)),
      )
  } catch (error) {
    // Some tests delete the database or change its tables.
    if (process.env['VERSO_TEST_COUNTERS'] !== undefined)
      process.stderr.write(`not counted: ${String(error)}\n`)
  }
  return wrong
}

/** How many tables one statement looks into. */
const TABLES_PER_STATEMENT = 100

/** The names of the models that have records or counters. The others have nothing to compare. */
async function namesOfUsedModels({ db: { reader }, catalog }: App): Promise<ReadonlySet<string>> {
  const counted = await reader.all(
    `select model from ${COUNT_TABLE} union select model from ${VALUE_COUNT_TABLE}`,
  )
  const used = new Set(counted.map(({ model }) => String(model)))
  const others = catalog.storedModels.map(({ name }) => name).filter((name) => !used.has(name))
  for (let start = 0; start < others.length; start += TABLES_PER_STATEMENT) {
    const names = others.slice(start, start + TABLES_PER_STATEMENT)
    const columns = names.map(
      (name, index) => `exists (select 1 from ${quoteIdentifier(toTableName(name))}) as "has${index}"`,
    )
    const [row] = await reader.all(`select ${columns.join()}`)
    names.forEach((name, index) => {
      if (Number(row?.[`has${index}`]) !== 0) used.add(name)
    })
  }
  return used
}

/** Rebuilds counters after a test wrote to tables by SQL. */
export async function countAnew({ app }: Pick<Service, 'app'>, ...models: readonly string[]): Promise<void> {
  for (const name of models) await rebuildCounters(app, app.catalog.get(name))
}

/** The identity of the test account. */
export async function identityIn({ app }: Service): Promise<UserIdentity> {
  const found = await findCredentials(app.db.reader, USERNAME)
  if (!found) throw new Error('the account of the tests is missing')
  const { id, version, username, name } = found.user
  return { id, version, username, name }
}

/** The verbs of the test account over one transport. */
export async function enter(service: Service, transport: Transport): Promise<Records> {
  if (transport === 'http') return HttpClient.login(service.url, USERNAME, PASSWORD)
  return recordsFor(service.app, await identityIn(service))
}

type TargetChoice = ProvidedContext['targets']

/** `npm test` covers each engine and each transport once; `npm run test:all` covers the other two pairs. */
const TARGETS: Readonly<Record<TargetChoice, readonly (readonly [engine: Engine, transport: Transport])[]>> =
  {
    usual: [
      ['sqlite', 'http'],
      ['postgres', 'direct'],
    ],
    other: [
      ['sqlite', 'direct'],
      ['postgres', 'http'],
    ],
  }

/** Runs the suite on both engines and over both transports. */
export function onEveryTarget(suite: (engine: Engine, transport: Transport) => void): void {
  for (const [engine, transport] of TARGETS[inject('targets')]) {
    describe(`${engine}, ${transport}`, () => {
      suite(engine, transport)
    })
  }
}

export function onEveryEngine(suite: (engine: Engine) => void): void {
  for (const engine of ENGINES) {
    describe(engine, () => {
      suite(engine)
    })
  }
}

const ENGINE_OF_TIER: Readonly<Record<TargetChoice, Engine>> = { usual: 'sqlite', other: 'postgres' }

/** Runs the suite on SQLite in `npm test` and on PostgreSQL in `npm run test:all`: for long suites that depend little on the engine. */
export function onEngineOfTier(suite: (engine: Engine) => void): void {
  const engine = ENGINE_OF_TIER[inject('targets')]
  describe(engine, () => {
    suite(engine)
  })
}

/** The error that a call fails with. Throws if the call succeeds. */
export async function catchError(call: Promise<unknown>): Promise<VersoError> {
  try {
    await call
  } catch (error) {
    if (error instanceof VersoError) return error
    throw error
  }
  throw new Error('the call was expected to fail, and succeeded')
}
