import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import { findCredentialsByTypedName, type AccountCredentials } from '../../store/auth/accounts.js'
import type { App } from '../context/app.js'
import { verifyPassword } from '../write/password-hash.js'
import { recordFailure, refuseIfThrottled, buildThrottleKeys } from './throttle.js'

export interface Credentials {
  readonly username?: unknown
  readonly password?: unknown
}

/** The account that these open; undefined if none, which is counted and takes as long. */
export async function verifyCredentials(
  app: App,
  { username, password }: Credentials,
  address: string,
): Promise<AccountCredentials | undefined> {
  const typed = typeof username === 'string' ? username : ''
  // All spellings of a name share one count.
  const keys = buildThrottleKeys(listUsernameSpellings(typed).at(-1) ?? '', address)
  await refuseIfThrottled(app, keys, address)
  const found = await findCredentialsByTypedName(app.db.reader, typed)
  const stored = typeof password === 'string' ? found?.passwordHash : undefined
  // Again when its turn has come: a hundred at once are not to be looked at because none had failed yet.
  const isRight = await verifyPassword(stored, typeof password === 'string' ? password : '', () =>
    refuseIfThrottled(app, keys, address),
  )
  if (found && isRight && !found.user.disabled) return found
  await recordFailure(app, keys, { address, userId: found?.user.id })
  return undefined
}
