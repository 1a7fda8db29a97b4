// A user changes their password with the old one, or resets it with a link from an administrator.
import { VersoError } from '../../errors.js'
import { readUpdateDraft } from '../../model/write/draft-reader.js'
import { lockCredentials, lockUser, type UserRow } from '../../store/auth/accounts.js'
import type { Transaction } from '../../store/engine/database.js'
import { findResetLink, saveResetLink, consumeResetLink } from '../../store/auth/reset-links.js'
import { toUserIdentity, type UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireAccess } from '../context/session-cache.js'
import { appendEvent } from './events.js'
import { throwNotFound } from '../access/request-checks.js'
import { verifyCredentials, recordFailure, refuseIfThrottled, buildThrottleKeys } from './throttle.js'
import { RecordWriter } from '../write/record-writer.js'
import { prepareDraft } from '../records/save.js'
import { createContext, type Context } from '../context/context.js'
import { writeInTransaction } from '../write/transaction.js'
import { hashToken, createToken } from './tokens.js'

const RESET_LINK_TTL_MS = 24 * 60 * 60_000
/** Contains a space, so it cannot be a username. */
const RESET_LINK_THROTTLE_NAME = 'reset link'

export interface PasswordChange {
  readonly old: unknown
  readonly new: unknown
  readonly address: string
  /** The hash of the session of the request. It stays open; all others end. */
  readonly session: string | undefined
}

export async function changeOwnPassword(
  app: App,
  user: UserIdentity,
  { access }: Principal,
  change: PasswordChange,
): Promise<void> {
  if (user.keyId !== undefined)
    throw new VersoError(
      'forbidden',
      'An API key cannot change the password: log in with the old password; nothing was changed',
    )
  const { username } = user
  const verified = await verifyCredentials(app, { username, password: change.old }, change.address)
  if (!verified) throw createWrongPasswordError()
  if (change.new === change.old) {
    const error = 'must differ from the old password'
    throw new VersoError('invalid', `The new password ${error}`, { errors: { new: error } })
  }
  const principal: Principal = { user, permissions: undefined, roles: [], ...(access ? { access } : {}) }
  await writePassword(createContext(app, principal), change.new, 'new', async (tx, set) => {
    const current = await lockCredentials(tx, app.db.dialect, username)
    // The password may have changed while its hash was computed.
    if (current?.passwordHash !== verified.passwordHash || current.user.disabled)
      throw createWrongPasswordError()
    // The session of the request is skipped, not opened again: it may have been ended meanwhile.
    await set(current.user, change.session)
  })
}

export interface NewResetLink {
  readonly token: string
  readonly expiresOn: string
}

/** Creates a token that sets the password of this user once. It replaces an earlier one. */
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
        `User "${user.username}" is disabled and could not use the link: enable the user first; nothing was changed`,
      )
    await saveResetLink(tx, userId, { hash: hashToken(token), expiresMs })
    await appendEvent(app, tx, { kind: 'reset-link-made', userId, by: principal.user })
  })
  return { token, expiresOn: new Date(expiresMs).toISOString() }
}

/** Returns the user of the token. An invalid, used or expired token counts as a failed login of its address. */
export async function findResetLinkUser(app: App, token: unknown, address: string): Promise<UserRow> {
  const keys = buildThrottleKeys(RESET_LINK_THROTTLE_NAME, address)
  await refuseIfThrottled(app, keys, address)
  const found = await findResetLink(app.db.reader, hashToken(typeof token === 'string' ? token : ''))
  if (found && found.expiresMs > app.clock.now() && !found.user.disabled) return found.user
  await recordFailure(app, keys)
  throw createInvalidLinkError()
}

/** Sets the password, and ends the link and every session of the user. */
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

/** Users may change their own password whatever their permissions. `name` is the name of the password in the request. */
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
  await writeInTransaction(context, request, { isNecessary: true }, async ({ context: writing, changes }) => {
    await run(writing.tx, async ({ id, version }, keptSessionHash) => {
      const draft = { ...hashed, key: { id, version } }
      const writer = new RecordWriter({ ...writing, keptSessionHash }, [draft])
      await writer.update(draft, draft.key, { version, source: 'version' })
      changes.push(...(await writer.state.finish()))
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
  return new VersoError('forbidden', 'Wrong old password; nothing was changed')
}

function createInvalidLinkError(): VersoError {
  return new VersoError('not-found', 'Unknown, used or expired link: ask an administrator for a new one')
}
