// A user sets a password of their own: with the old one, or with a link that an administrator made.
import { VersoError } from '../../errors.js'
import { readUpdateDraft } from '../../model/write/draft-reader.js'
import { lockCredentials, lockUser, type UserRow } from '../../store/auth/accounts.js'
import type { Transaction } from '../../store/engine/database.js'
import { findResetLink, saveResetLink, consumeResetLink } from '../../store/auth/reset-links.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireAccess } from '../context/access.js'
import { appendEvent } from './events.js'
import { throwNotFound } from '../context/ids.js'
import { verifyCredentials } from './password-proof.js'
import { RecordWriter } from '../write/record-writer.js'
import { prepareDraft } from '../records/save.js'
import { recordFailure, refuseIfThrottled, buildThrottleKeys } from './throttle.js'
import { createContext, type Context } from '../context/context.js'
import { writeInTransaction } from '../write/transaction.js'
import { hashToken, createToken } from './tokens.js'

const RESET_LINK_TTL_MS = 24 * 60 * 60_000
/** No user name has a space. */
const RESET_LINK_THROTTLE_NAME = 'reset link'

export interface PasswordChange {
  readonly old: unknown
  readonly new: unknown
  readonly address: string
  /** What the session that asks is kept under: it stays, all others end. */
  readonly session: string | undefined
}

export async function changeOwnPassword(
  app: App,
  user: UserIdentity,
  { access }: Principal,
  change: PasswordChange,
): Promise<void> {
  if (user.keyId !== undefined)
    throw new VersoError('forbidden', 'A key changes no password: log in with the old one')
  const { username } = user
  const verified = await verifyCredentials(app, { username, password: change.old }, change.address)
  if (!verified) throw createWrongPasswordError()
  if (change.new === change.old) {
    const fault = 'must be another than the old one'
    throw new VersoError('invalid', `The new password ${fault}`, { errors: { new: fault } })
  }
  const principal: Principal = { user, permissions: undefined, roles: [], ...(access ? { access } : {}) }
  await writePassword(createContext(app, principal), change.new, 'new', async (tx, set) => {
    const current = await lockCredentials(tx, app.db.dialect, username)
    // It may have been changed while it was being checked.
    if (current?.passwordHash !== verified.passwordHash || current.user.disabled)
      throw createWrongPasswordError()
    // It is left alone, not opened again: it may have been ended meanwhile.
    await set(current.user, change.session)
  })
}

export interface NewResetLink {
  readonly token: string
  readonly expiresOn: string
}

/** A token that sets the password of this user once. The one before it is over. */
export async function createResetLink(context: Context, userId: number): Promise<NewResetLink> {
  const { app, principal } = context
  const token = createToken()
  const expiresMs = app.clock.now() + RESET_LINK_TTL_MS
  await app.db.transaction(async (tx) => {
    await requireAccess(app, tx, principal)
    const user = (await lockUser(tx, app.db.dialect, userId)) ?? throwNotFound(app.catalog.user, userId)
    if (user.disabled)
      throw new VersoError(
        'invalid',
        `${user.username} is disabled, and a link would open nothing: enable the account first`,
      )
    await saveResetLink(tx, userId, { hash: hashToken(token), expiresMs })
    await appendEvent(app, tx, { kind: 'reset-link-made', userId, by: principal.user })
  })
  return { token, expiresOn: new Date(expiresMs).toISOString() }
}

/** Whose password the token sets. One that is wrong, used or over is counted as a failed login of its address. */
export async function findResetLinkUser(app: App, token: unknown, address: string): Promise<UserRow> {
  const keys = buildThrottleKeys(RESET_LINK_THROTTLE_NAME, address)
  await refuseIfThrottled(app, keys, address)
  const found = await findResetLink(app.db.reader, hashToken(typeof token === 'string' ? token : ''))
  if (found && found.expiresMs > app.clock.now() && !found.user.disabled) return found.user
  await recordFailure(app, keys)
  throw createInvalidLinkError()
}

/** Ends the link, and every session. */
export async function resetPassword(
  app: App,
  token: unknown,
  password: unknown,
  address: string,
): Promise<void> {
  const user = await findResetLinkUser(app, token, address)
  const principal: Principal = { user: toUserIdentity(user), permissions: undefined, roles: [] }
  await writePassword(createContext(app, principal), password, 'password', async (tx, set) => {
    const current = await lockUser(tx, app.db.dialect, user.id)
    if (!current || current.disabled || !(await consumeResetLink(tx, hashToken(String(token)))))
      throw createInvalidLinkError()
    await set(current)
  })
}

type PasswordSetter = (still: UserRow, keptSession?: string) => Promise<void>

/** By the user, whatever their rights are: the account is theirs. `name` is what the password was called where it was sent. */
async function writePassword(
  context: Context,
  password: unknown,
  name: string,
  run: (tx: Transaction, set: PasswordSetter) => Promise<void>,
): Promise<void> {
  const { app, principal } = context
  const { user: model } = app.catalog
  const hashed = await preparePasswordDraft(context, password ?? '').catch((error: unknown) => {
    throw renameErrorField(error, name)
  })
  const request = { action: 'update', model: model.name, id: principal.user?.id } as const
  await writeInTransaction(context, request, {}, async ({ context: writing, changes }) => {
    await run(writing.tx, async ({ id, version }, keptSessionHash) => {
      const draft = { ...hashed, key: { id, version } }
      const writer = new RecordWriter({ ...writing, keptSessionHash }, [draft])
      await writer.update(draft, draft.key, { version, source: 'version' })
      changes.push(...(await writer.finish()))
    })
  })
}

async function preparePasswordDraft(context: Context, password: unknown) {
  const { app, principal, now } = context
  const { user: model } = app.catalog
  const key = { id: principal.user?.id ?? 0, version: principal.user?.version ?? 0 }
  const draft = readUpdateDraft(app.catalog, model, { data: { password }, key }, now)
  return prepareDraft(context, draft)
}

function renameErrorField(error: unknown, name: string): unknown {
  const message = error instanceof VersoError ? error.details.errors?.['password'] : undefined
  if (message === undefined) return error
  return new VersoError('invalid', `The new password ${message}`, { errors: { [name]: message } })
}

function createWrongPasswordError(): VersoError {
  return new VersoError('forbidden', 'The old password is wrong: nothing was changed')
}

function createInvalidLinkError(): VersoError {
  return new VersoError('not-found', 'There is nothing here: the link is wrong, used or over')
}
