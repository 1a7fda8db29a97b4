// Creates a service inside a program: the App, and on demand its HTTP server.
import { addUser, ensureFirstAdmin, findUserIdentity } from '../service/auth/accounts.js'
import { authenticateKey } from '../service/auth/key-logins.js'
import { authenticate, login, logout } from '../service/auth/sessions.js'
import type { App } from '../service/context/app.js'
import { refuseOuterRecords } from '../service/context/hook-scope.js'
import type { UserIdentity } from '../service/context/identity.js'
import { SERVICE_PRINCIPAL, type Principal } from '../service/context/principal.js'
import { createApp } from '../service/create-app.js'
import { discardFailedHooks, listFailedHooks, retryFailedHooks } from '../service/background/commit-status.js'
import {
  bindSystemRecords,
  createRecordsHandle,
  createSystemHandle,
} from '../service/hooks/records-handle.js'
import { withAllPermissions } from '../service/hooks/transaction-records.js'
import { bindRecords } from '../service/records/records.js'
import { checkVersoOptions } from './check-options.js'
import { EmbeddedServer } from './embedded-server.js'
import { createTestAccess, TEST_PASSWORD, TEST_USERNAME } from './test-access.js'
import type { TestVerso, Verso, VersoOptions, VersoRecords } from './verso.js'

/** The address of logins without a client. */
const LOCAL_ADDRESS = '127.0.0.1'
const MAX_FAILED_HOOKS = 1_000

/**
 * Checks the options and the models, opens the database and migrates its tables. Throws a ConfigError that lists all problems.
 *
 * @example
 * const verso = await createVerso({ db: 'sqlite:data/tasks.db', models: [Task] })
 * const user = await verso.findUser('ada')
 * if (user) await verso.records(user).of(Task).create({ title: 'Write' })
 * await verso.listen()
 */
export async function createVerso(options: VersoOptions): Promise<Verso> {
  const { verso } = await openVerso(options)
  return verso
}

/**
 * Creates a service on an empty database, which `close` deletes, with a first user who is an administrator. It has the models, hooks and
 * routes of the options. It does not open the database of the options, and listens on a free port of this computer.
 *
 * @example
 * const verso = await createTestVerso({ models: [Task] })
 * const task = await verso.my.of(Task).create({ title: 'Write' })
 * await verso.close()
 */
export async function createTestVerso(options: VersoOptions): Promise<TestVerso> {
  const http = { ...(Object(options) as VersoOptions).http, host: 'localhost', port: 0, publicUrl: undefined }
  const { app, verso } = await openVerso({ ...options, db: 'sqlite::memory:', http })
  try {
    await verso.ensureFirstAdmin(TEST_USERNAME, TEST_PASSWORD)
    const access = await createTestAccess(app, verso)
    return Object.defineProperties(access, Object.getOwnPropertyDescriptors(verso)) as TestVerso
  } catch (error) {
    await verso.close()
    throw error
  }
}

async function openVerso(options: VersoOptions): Promise<{ readonly app: App; readonly verso: Verso }> {
  const { catalog, settings, http, routes, schedules } = checkVersoOptions(options)
  const { log, clock, runsBackgroundWork = true } = options
  const app = await createApp({
    models: catalog,
    settings,
    schedules,
    runsBackgroundWork,
    ...(log ? { log } : {}),
    ...(clock ? { clock } : {}),
  })
  const server = new EmbeddedServer(app, http, routes)
  try {
    // A wrong route stops the program at its start, not when it listens.
    if (routes.length > 0) await server.prepare()
  } catch (error) {
    await server.close()
    throw error
  }
  return { app, verso: bindVerso(app, server, options) }
}

function bindVerso(app: App, server: EmbeddedServer, options: VersoOptions): Verso {
  const close = async () => server.close()
  return {
    records: (user) => {
      refuseMissingUser(user)
      return bindVersoRecords(app, async () => app.authorizer.resolvePrincipal(user))
    },
    system: bindSystem(app, async () => Promise.resolve(SERVICE_PRINCIPAL)),
    addUser: async (user) => outside(() => addUser(app, user)),
    ensureFirstAdmin: async (username, password) => outside(() => ensureFirstAdmin(app, username, password)),
    findUser: async (username) => findUserIdentity(app, username),
    login: async (credentials, request) =>
      outside(() => login(app, credentials, { address: LOCAL_ADDRESS, ...request })),
    logout: async (sessionId) => outside(() => logout(app, sessionId)),
    authenticate: async (sessionId) => (await authenticate(app, sessionId))?.user ?? undefined,
    authenticateKey: async (key) => (await authenticateKey(app, key))?.user ?? undefined,
    listen: async () => server.listen(),
    get url() {
      return server.url
    },
    gauges: () => server.gauges(),
    settleHooks: async () => app.settleHooks(),
    failedHooks: async ({ limit = MAX_FAILED_HOOKS } = {}) => listFailedHooks(app.db.reader, limit),
    retryHooks: async (ids) => outside(() => retryFailedHooks(app.db, ids ?? 'all')),
    discardHooks: async (ids) => outside(() => discardFailedHooks(app.db, ids)),
    test: async () => createTestVerso(options),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function bindVersoRecords(app: App, resolvePrincipal: () => Promise<Principal>): VersoRecords {
  return {
    ...bindRecords(app, resolvePrincipal),
    ...createRecordsHandle(app, resolvePrincipal),
    asSystem: () => bindSystem(app, async () => withAllPermissions(await resolvePrincipal())),
  }
}

function bindSystem(app: App, resolvePrincipal: () => Promise<Principal>): VersoRecords {
  const system: VersoRecords = {
    ...bindSystemRecords(app, resolvePrincipal),
    ...createSystemHandle(app, resolvePrincipal),
    asSystem: () => system,
  }
  return system
}

/** Runs a call with a transaction of its own. Inside a hook, or the work of a transaction, it throws: its effect would stay if that one fails. */
async function outside<T>(call: () => Promise<T>): Promise<T> {
  refuseOuterRecords()
  return call()
}

/** A missing user must never become the service itself. */
function refuseMissingUser(user: unknown): void {
  const { id } = Object(user ?? {}) as Partial<UserIdentity>
  if (typeof id === 'number') return
  throw new TypeError(
    'records() takes a user that login, authenticate, authenticateKey or findUser returned. For all permissions, use verso.system',
  )
}
