import { normalizeUsername } from '../../model/auth.js'
import { findLogin, type Login } from '../../store/accounts.js'
import type { App } from '../app.js'
import { verifyPassword } from './passwords.js'
import { noteFailure, refuseIfThrottled, throttleKeys } from './throttle.js'

export interface Credentials {
  readonly username?: unknown
  readonly password?: unknown
}

/** The account that these open; undefined if none, which is counted and takes as long. */
export async function provePassword(
  app: App,
  { username, password }: Credentials,
  address: string,
): Promise<Login | undefined> {
  const name = typeof username === 'string' ? normalizeUsername(username) : undefined
  const keys = throttleKeys(name ?? '', address)
  await refuseIfThrottled(app, keys, address)
  const found = name === undefined ? undefined : await findLogin(app.db.reader, name)
  const stored = typeof password === 'string' ? found?.passwordHash : undefined
  // Again when its turn has come: a hundred at once are not to be looked at because none had failed yet.
  const isRight = await verifyPassword(stored, typeof password === 'string' ? password : '', () =>
    refuseIfThrottled(app, keys, address),
  )
  if (found && isRight && !found.user.disabled) return found
  await noteFailure(app, keys, { address, userId: found?.user.id })
  return undefined
}
