// A service for tests also has a first user, and sends requests over HTTP as any user.
import { createKey } from '../service/auth/keys.js'
import type { App } from '../service/context/app.js'
import { createContext } from '../service/context/context.js'
import type { UserIdentity } from '../service/context/identity.js'
import { SERVICE_PRINCIPAL } from '../service/context/principal.js'
import { DAY_MS } from '../service/context/settings.js'
import type { TestVerso, Verso } from './verso.js'

export const TEST_USERNAME = 'admin'
/** The database is empty, and deleted after the test, so the password need not be a secret. */
export const TEST_PASSWORD = 'red kite over hills'

/** Expects that the first user exists. */
export async function createTestAccess(app: App, verso: Verso): Promise<Omit<TestVerso, keyof Verso>> {
  const user = await verso.findUser(TEST_USERNAME)
  if (!user) throw new Error('the first user of a service for tests does not exist')
  const keys = new Map<string, Promise<string>>()
  return {
    user,
    password: TEST_PASSWORD,
    my: verso.records(user),
    fetch: async (path, init = {}, caller = user) => {
      await verso.listen()
      const headers = new Headers(init.headers)
      if (caller && !headers.has('authorization') && !headers.has('cookie'))
        headers.set('authorization', `Bearer ${await findKey(app, keys, caller)}`)
      return fetch(`${verso.url}${path}`, { ...init, headers })
    },
  }
}

/** Returns an API key of the user. A key has roles of its own, so changed roles need another one. */
async function findKey(app: App, keys: Map<string, Promise<string>>, user: UserIdentity): Promise<string> {
  const { roles } = await app.authorizer.resolvePrincipal(user)
  const name = [user.id, ...roles].join(' ')
  const key = keys.get(name) ?? createTestKey(app, user)
  keys.set(name, key)
  return key
}

async function createTestKey(app: App, { id }: UserIdentity): Promise<string> {
  const expiresOn = new Date(app.clock.now() + DAY_MS).toISOString()
  const context = createContext(app, SERVICE_PRINCIPAL)
  return (await createKey(context, { user: id, name: 'test', expiresOn })).key
}
