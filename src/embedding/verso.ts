// The public types of an embedded service.
import type { Logger } from 'pino'
import type { RoutePlugin } from '../http/ext/route-plugin.js'
import type { HttpSettings } from '../http/settings.js'
import type { ModelSource } from '../model/catalog/model-sources.js'
import type { ModelDefinition } from '../model/definition/define-model.js'
import type { MarkedExtension, ModelExtension } from '../model/definition/extend-model.js'
import type { RecordsHandle } from '../model/definition/typed-records.js'
import type { NewUser } from '../service/auth/accounts.js'
import type { LoginRequest, LoginResult } from '../service/auth/sessions.js'
import type { Credentials } from '../service/auth/throttle.js'
import type { Clock } from '../service/context/app.js'
import type { UserIdentity } from '../service/context/identity.js'
import type { Settings } from '../service/context/settings.js'
import type { FailedHook } from '../service/background/commit-status.js'
import type { Schedule } from '../service/background/schedule.js'
import type { Records } from '../wire.js'

/** A model as `defineModel` returns it, an extension of one, or a model with the name of its file for messages. */
export type ModelInput = ModelDefinition | DefinedExtension | ModelSource

/** An extension as `extendModel` or `defineHooks` returns it. */
export type DefinedExtension = ModelExtension & MarkedExtension

export interface VersoOptions {
  /** `sqlite:path`, `sqlite::memory:` for an empty database that close() deletes, or `postgres://…`. By default `sqlite:data/verso.db`. */
  readonly db?: string | undefined
  readonly models: readonly ModelInput[]
  /** Hooks that were written apart from their models, by `defineHooks`. They run after those of the models, in this order. */
  readonly hooks?: readonly DefinedExtension[] | undefined
  /** Fastify plugins whose routes are served below `/ext`. Every route names its `access`. */
  readonly routes?: RoutePlugin | readonly RoutePlugin[] | undefined
  /** Functions that run regularly, on one of the processes that share a database: `every('1h', …)`. */
  readonly schedules?: readonly Schedule[] | undefined
  readonly settings?: Partial<Omit<Settings, 'db'>> | undefined
  /** The settings of `listen`. */
  readonly http?: Partial<HttpSettings> | undefined
  /** A pino logger. Nothing is logged without it. */
  readonly log?: Logger | undefined
  readonly clock?: Clock | undefined
  /**
   * True by default: this process delivers webhooks, and runs `afterCommit` hooks and schedules. Of all processes that share a database, at
   * least one must.
   */
  readonly runsBackgroundWork?: boolean | undefined
}

/** Records by the definition of their model, `of(Task)`, and the calls of HTTP by the name of the model. */
export interface VersoRecords extends RecordsHandle, Records {
  asSystem(): VersoRecords
}

/** A service inside a program. `createVerso` creates it. */
export interface Verso extends AsyncDisposable {
  /** The records as this user may see and change them. Every call applies the current permissions of the user. */
  records(user: UserIdentity): VersoRecords
  /** The records with all permissions. Changes have no author. */
  readonly system: VersoRecords
  /** Creates a user and returns the id. */
  addUser(user: NewUser): Promise<number>
  /** Creates the first administrator. Returns false, and changes nothing, if there is an administrator already. */
  ensureFirstAdmin(username: string, password: string): Promise<boolean>
  /** Finds a user who is not disabled by the user name. */
  findUser(username: string): Promise<UserIdentity | undefined>
  /**
   * Checks the password and opens a session. Throws `unauthenticated` if the credentials are wrong. Failed logins are counted by
   * `request.address`: pass the address of the client if the program has several.
   */
  login(credentials: Credentials, request?: Partial<LoginRequest>): Promise<LoginResult>
  /** Ends a session. */
  logout(sessionId: string): Promise<void>
  /** The user of a session; undefined if the session is unknown or has expired. */
  authenticate(sessionId: string | undefined): Promise<UserIdentity | undefined>
  /** The user of an API key, with the roles of the key; undefined if the key is unknown or has expired. */
  authenticateKey(key: string): Promise<UserIdentity | undefined>
  /** Starts to serve HTTP. Returns the URLs, the one for users first. Further calls return the same. */
  listen(): Promise<readonly string[]>
  /** The URL for users. Throws before `listen` has resolved. */
  readonly url: string
  /** Counters of pending work of requests, service and database. All are 0 while the service is idle. */
  gauges(): Readonly<Record<string, number>>
  /**
   * Resolves when the `afterCommit` hooks have run for every change that was committed before; failed ones wait for a retry. For tests. At
   * once if this process runs no background work.
   */
  settleHooks(): Promise<void>
  /** The changes for which an `afterCommit` hook failed, in the order of their commits. */
  failedHooks(page?: { readonly limit?: number }): Promise<readonly FailedHook[]>
  /** Runs failed `afterCommit` hooks again at once, all or those of these ids. Returns their number. */
  retryHooks(ids?: readonly number[]): Promise<number>
  /** Gives up failed `afterCommit` hooks, so that they never run again. Returns their number. */
  discardHooks(ids: readonly number[]): Promise<number>
  /** Another service with the same models, hooks and routes on an empty database, for tests. */
  test(): Promise<TestVerso>
  /** Finishes the requests in flight and closes the database. May be called at any time, and more than once. */
  close(): Promise<void>
}

/** A service on an empty database, with a first user who is an administrator. */
export interface TestVerso extends Verso {
  readonly user: UserIdentity
  readonly password: string
  /** The records of the first user. */
  readonly my: VersoRecords
  /** Sends a request over HTTP as the first user, or as another one. `null` sends it without authentication. */
  fetch(path: string, init?: RequestInit, user?: UserIdentity | null): Promise<Response>
}
