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
import type { Context } from '../context/context.js'

/** The one account that may have a password which everybody knows, in the demo alone. */
export const DEMO_USERNAME = 'admin'
export const DEMO_PASSWORD = 'admin'

/** The draft with its user name in the one spelling that it is kept in. */
export async function validateUser(context: Context, draft: Draft, errors: FieldErrors): Promise<Draft> {
  const { values, path } = draft
  const { password } = values
  const normal = await checkNewUsername(context, draft, errors)
  const checked: Draft = normal === undefined ? draft : { ...draft, values: { ...values, username: normal } }
  if (typeof password === 'string' && !isDemoPassword(context, password)) {
    const error = validatePassword(password, await readMergedValues(context.app, checked))
    if (error !== undefined) errors.add(`${path}password`, error)
  }
  return checked
}

/** In the spelling that new names are kept in; undefined where it has a fault, or stays as it is. */
async function checkNewUsername(
  context: Context,
  draft: Draft,
  errors: FieldErrors,
): Promise<string | undefined> {
  const { app } = context
  const { key, values, path } = draft
  const { username } = values
  if (typeof username !== 'string') return undefined
  const stored = key && (await findUser(app.db.reader, key.id))
  // Accounts of earlier releases keep their names, whatever is asked of new ones.
  if (stored?.username === username) return undefined
  const normalized = listUsernameSpellings(username).at(-1)
  const error =
    context.principal.allowsLegacyUsernames && normalized !== undefined
      ? undefined
      : validateNewUsername(username)
  if (error !== undefined) errors.add(`${path}username`, error)
  if (normalized === undefined || error !== undefined) return undefined
  const taken = await findUserWithOlderSpelling(app.db.reader, normalized, key?.id)
  if (taken) throw createUsernameTakenError(taken.username, `${path}username`)
  return normalized
}

function createUsernameTakenError(username: string, path: string): VersoError {
  const message = `There is a user "${username}" already, whose name differs only in the form of its letters`
  return new VersoError('not-unique', message, { errors: { [path]: 'must be unique' } })
}

/** What a record will hold once the draft is written: what was sent, and what is there. */
export async function readMergedValues(app: App, { model, key, values }: Draft): Promise<Values> {
  const there = key && (await store.read(app.db.reader, app.tables.of(model), key.id))
  return { ...(there as Values | undefined), ...values }
}

function isDemoPassword(context: Context, password: string): boolean {
  return context.app.settings.isDemo && context.principal.user === null && password === DEMO_PASSWORD
}
