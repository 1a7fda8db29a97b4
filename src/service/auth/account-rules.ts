// What an account must be, besides what its model says.
import { VersoError } from '../../errors.js'
import { validateNewUsername, listUsernameSpellings } from '../../model/catalog/auth-models.js'
import type { Draft } from '../../model/write/draft.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import { validatePassword } from '../../model/access/password-policy.js'
import type { Values } from '../../model/values/value.js'
import { findUserWithOlderSpelling, findUser } from '../../store/auth/accounts.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'

/** The one account that may have a password which everybody knows, in the demo alone. */
export const DEMO_USERNAME = 'admin'
export const DEMO_PASSWORD = 'admin'

/** The draft with its user name in the one spelling that it is kept in. */
export async function checkAccount(app: App, by: Caller, draft: Draft, faults: FieldErrors): Promise<Draft> {
  const { values, path } = draft
  const { password } = values
  const normal = await checkUsername(app, by, draft, faults)
  const checked: Draft = normal === undefined ? draft : { ...draft, values: { ...values, username: normal } }
  if (typeof password === 'string' && !isOfDemo(app, by, password)) {
    const fault = validatePassword(password, await completed(app, checked))
    if (fault !== undefined) faults.add(`${path}password`, fault)
  }
  return checked
}

/** In the spelling that new names are kept in; undefined where it has a fault, or stays as it is. */
async function checkUsername(
  app: App,
  by: Caller,
  draft: Draft,
  faults: FieldErrors,
): Promise<string | undefined> {
  const { key, values, path } = draft
  const { username } = values
  if (typeof username !== 'string') return undefined
  const there = key && (await findUser(app.db.reader, key.id))
  // Accounts of earlier releases keep their names, whatever is asked of new ones.
  if (there?.username === username) return undefined
  const normal = listUsernameSpellings(username).at(-1)
  const fault = by.keepsNames && normal !== undefined ? undefined : validateNewUsername(username)
  if (fault !== undefined) faults.add(`${path}username`, fault)
  if (normal === undefined || fault !== undefined) return undefined
  const taken = await findUserWithOlderSpelling(app.db.reader, normal, key?.id)
  if (taken) throw takenBy(taken.username, `${path}username`)
  return normal
}

function takenBy(username: string, place: string): VersoError {
  const message = `There is a user "${username}" already, whose name differs only in the form of its letters`
  return new VersoError('not-unique', message, { errors: { [place]: 'must be unique' } })
}

/** What a record will hold once the draft is written: what was sent, and what is there. */
export async function completed(app: App, { model, key, values }: Draft): Promise<Values> {
  const there = key && (await store.read(app.db.reader, app.tables.of(model), key.id))
  return { ...(there as Values | undefined), ...values }
}

function isOfDemo({ settings }: App, { actor }: Caller, password: string): boolean {
  return settings.isDemo && actor === null && password === DEMO_PASSWORD
}
