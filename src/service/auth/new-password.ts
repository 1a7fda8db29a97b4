// A user sets a password of their own: with the old one, or with a link that an administrator made.
import { VersoError } from '../../errors.js'
import { readUpdateDraft } from '../../model/write/draft.js'
import { lockCredentials, lockUser, type UserRow } from '../../store/auth/accounts.js'
import type { Transaction } from '../../store/engine/database.js'
import { findResetLink, saveResetLink, consumeResetLink } from '../../store/auth/reset-links.js'
import { actorOf, type Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { requireAccess } from './access.js'
import { noteEvent } from './events.js'
import { missing } from '../context/ids.js'
import { keepRules } from './auth-rules.js'
import { provePassword } from './password-proof.js'
import { Saving } from '../write/record-writer.js'
import { hashSecrets } from '../write/secrets.js'
import { noteFailure, refuseIfThrottled, throttleKeys } from './throttle.js'
import { nowOf } from '../context/context.js'
import { write } from '../write/transaction.js'
import { hashOfToken, newToken } from './tokens.js'

const LINK_MS = 24 * 60 * 60_000
/** No user name has a space. */
const LINKS = 'reset link'

export interface PasswordChange {
  readonly old: unknown
  readonly new: unknown
  readonly address: string
  /** What the session that asks is kept under: it stays, all others end. */
  readonly session: string | undefined
}

export async function changeOwnPassword(
  app: App,
  actor: Actor,
  { access }: Caller,
  change: PasswordChange,
): Promise<void> {
  if (actor.keyId !== undefined)
    throw new VersoError('forbidden', 'A key changes no password: log in with the old one')
  const { username } = actor
  const proved = await provePassword(app, { username, password: change.old }, change.address)
  if (!proved) throw wrongOld()
  if (change.new === change.old) {
    const fault = 'must be another than the old one'
    throw new VersoError('invalid', `The new password ${fault}`, { errors: { new: fault } })
  }
  const by: Caller = { actor, rights: undefined, roles: [], ...(access ? { access } : {}) }
  await setPassword(app, by, change.new, 'new', async (tx, set) => {
    const still = await lockCredentials(tx, app.db.dialect, username)
    // It may have been changed while it was being checked.
    if (still?.passwordHash !== proved.passwordHash || still.user.disabled) throw wrongOld()
    // It is left alone, not opened again: it may have been ended meanwhile.
    await set(still.user, change.session)
  })
}

export interface NewLink {
  readonly token: string
  readonly expiresOn: string
}

/** A token that sets the password of this user once. The one before it is over. */
export async function makeResetLink(app: App, by: Caller, userId: number): Promise<NewLink> {
  const token = newToken()
  const expiresMs = app.clock.now() + LINK_MS
  await app.db.transaction(async (tx) => {
    await requireAccess(app, tx, by)
    const user = (await lockUser(tx, app.db.dialect, userId)) ?? missing(app.catalog.user, userId)
    if (user.disabled)
      throw new VersoError(
        'invalid',
        `${user.username} is disabled, and a link would open nothing: enable the account first`,
      )
    await saveResetLink(tx, userId, { hash: hashOfToken(token), expiresMs })
    await noteEvent(app, tx, { kind: 'reset-link-made', userId, by: by.actor })
  })
  return { token, expiresOn: new Date(expiresMs).toISOString() }
}

/** Whose password the token sets. One that is wrong, used or over is counted as a failed login of its address. */
export async function userOfLink(app: App, token: unknown, address: string): Promise<UserRow> {
  const keys = throttleKeys(LINKS, address)
  await refuseIfThrottled(app, keys, address)
  const found = await findResetLink(app.db.reader, hashOfToken(typeof token === 'string' ? token : ''))
  if (found && found.expiresMs > app.clock.now() && !found.user.disabled) return found.user
  await noteFailure(app, keys)
  throw linkIsOver()
}

/** Ends the link, and every session. */
export async function resetPassword(
  app: App,
  token: unknown,
  password: unknown,
  address: string,
): Promise<void> {
  const user = await userOfLink(app, token, address)
  const by: Caller = { actor: actorOf(user), rights: undefined, roles: [] }
  await setPassword(app, by, password, 'password', async (tx, set) => {
    const still = await lockUser(tx, app.db.dialect, user.id)
    if (!still || still.disabled || !(await consumeResetLink(tx, hashOfToken(String(token)))))
      throw linkIsOver()
    await set(still)
  })
}

type Set = (still: UserRow, keptSession?: string) => Promise<void>

/** By the user, whatever their rights are: the account is theirs. `name` is what the password was called where it was sent. */
async function setPassword(
  app: App,
  by: Caller,
  password: unknown,
  name: string,
  work: (tx: Transaction, set: Set) => Promise<void>,
): Promise<void> {
  const { user: model } = app.catalog
  const now = nowOf(app)
  const hashed = await draftOf(app, by, password ?? '', now).catch((error: unknown) => {
    throw renamed(error, name)
  })
  const request = { action: 'update', model: model.name, id: by.actor?.id } as const
  await write(app, by, request, undefined, async ({ tx, changes }) => {
    await work(tx, async ({ id, version }, keptSession) => {
      const draft = { ...hashed, key: { id, version } }
      const saving = new Saving({ app, ...by, tx, now, keptSession }, [draft])
      await saving.update(draft, draft.key, { version, by: 'version' })
      changes.push(...(await saving.finish()))
    })
  })
}

async function draftOf(app: App, by: Caller, password: unknown, now: string) {
  const { user: model } = app.catalog
  const key = { id: by.actor?.id ?? 0, version: by.actor?.version ?? 0 }
  const draft = readUpdateDraft(app.catalog, model, { password }, key, now)
  const [kept = draft] = await keepRules(app, by, model, [draft])
  return hashSecrets(kept)
}

function renamed(error: unknown, name: string): unknown {
  const fault = error instanceof VersoError ? error.details.errors?.['password'] : undefined
  if (fault === undefined) return error
  return new VersoError('invalid', `The new password ${fault}`, { errors: { [name]: fault } })
}

function wrongOld(): VersoError {
  return new VersoError('forbidden', 'The old password is wrong: nothing was changed')
}

function linkIsOver(): VersoError {
  return new VersoError('not-found', 'There is nothing here: the link is wrong, used or over')
}
