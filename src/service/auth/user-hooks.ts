// The hooks of users: the rules for names and passwords, and the sessions that a change ends.
import { VersoError } from '../../errors.js'
import { validateNewUsername, listUsernameSpellings } from '../../model/catalog/auth-models.js'
import type { Draft } from '../../model/write/draft.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import { validatePassword } from '../../model/access/password-policy.js'
import type { Values } from '../../model/values/value.js'
import type { Transaction } from '../../store/engine/database.js'
import { findUserWithOlderSpelling, findUser } from '../../store/auth/accounts.js'
import { deleteResetLink } from '../../store/auth/reset-links.js'
import { deleteUserSessions } from '../../store/auth/sessions.js'
import * as store from '../../store/records/records.js'
import type { App, Context, FinishedSave, HookContext, ModelHooks } from '../context/app.js'
import { insertEvent } from './events.js'

/** The account of the demo. Its password is public. */
export const DEMO_USERNAME = 'admin'
export const DEMO_PASSWORD = 'admin'

export const USER_HOOKS: ModelHooks = {
  prepare: validateUser,
  preparedFields: ['username', 'password'],
  afterSave: endSessionsAfterUpdate,
  afterRemove: ({ tx }, { record }) => endAllSessions(tx, record.id),
}

/** Returns the draft with a normalized username. */
async function validateUser(context: Context, draft: Draft, errors: FieldErrors): Promise<Draft> {
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

/** Returns the normalized username; undefined if it is invalid or does not change. */
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
  // Users of earlier releases keep names that new users cannot have.
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
  const message = `User "${username}" already exists, and the names differ only in the form of their letters; nothing was changed`
  return new VersoError('not-unique', message, { errors: { [path]: 'must be unique' } })
}

/** Returns the stored values of the record, replaced by those of the draft. */
export async function readMergedValues(app: App, { model, key, values }: Draft): Promise<Values> {
  const there = key && (await store.readById(app.db.reader, app.tables.of(model), key.id))
  return { ...(there as Values | undefined), ...values }
}

function isDemoPassword(context: Context, password: string): boolean {
  return context.app.settings.isDemo && context.principal.user === null && password === DEMO_PASSWORD
}

/** Ends the sessions of the user if the password or the username changes, or if the user is disabled. */
async function endSessionsAfterUpdate(
  { app, tx, principal, keptSessionHash, addChange }: HookContext,
  { id, before, changed }: FinishedSave,
): Promise<void> {
  const endsSessions = 'password' in changed || 'username' in changed || changed['disabled'] === true
  if (!before || !endsSessions) return
  await endAllSessions(tx, id, keptSessionHash)
  if ('password' in changed)
    addChange(await insertEvent(app, tx, { kind: 'password-changed', userId: id, by: principal.user }))
}

async function endAllSessions(tx: Transaction, id: number, except?: string): Promise<void> {
  await deleteUserSessions(tx, id, except)
  await deleteResetLink(tx, id)
}
