// API keys: created for a user, shown once, stored as a hash in an ordinary record.
import { VersoError } from '../../errors.js'
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import type { Criteria } from '../../model/query/criteria.js'
import { FieldErrors, createFieldError } from '../../model/definition/field-errors.js'
import { FieldError } from '../../model/values/field.js'
import { parseValue } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import type { WireRecord } from '../../wire.js'
import type { App, HookContext, ModelHooks, PendingSave } from '../context/app.js'
import { SERVICE_PRINCIPAL, type Principal } from '../context/principal.js'
import { DAY_MS } from '../context/settings.js'
import { insertEvent, type NewAuthEvent } from './events.js'
import { removeRecord } from '../records/remove.js'
import { saveWithAddition, type WriteWithAddition } from '../records/save.js'
import { hashToken, isTokenFormat, createToken } from './tokens.js'
import { createContext, type Context } from '../context/context.js'
import { requireDirectCreate, requireId, throwNotFound } from '../access/request-checks.js'

const API_KEY_PREFIX = 'vk_'
/** The number of leading characters that the record shows, so that the owner recognizes the key. */
const SHOWN_PREFIX_LENGTH = 9
const DEFAULT_KEY_DAYS = 90
const KEY_PAGE_ROWS = 1_000
const KEY_INPUT_FIELDS = ['name', 'roles', 'expiresOn']
const MAX_KEY_DAYS = 400
const EXPIRY_TOO_LATE = `must be at most ${MAX_KEY_DAYS} days from now`

export const KEY_HOOKS: ModelHooks = { beforeSave: refuseInvalidKeyWrite }

export interface NewApiKey {
  readonly user: number
  /** The input of the client: `name`, `expiresOn`, and `roles` by name or id. */
  readonly [field: string]: unknown
}

export interface CreatedKey {
  readonly record: WireRecord
  /** The key itself. No later answer contains it. */
  readonly key: string
}

/**
 * Creates a key for the acting user, or for any user from the command line. Without `roles` it gets the current roles of the user.
 * Takes no Idempotency-Key, because the stored answer would contain the key.
 */
export async function createKey(context: Context, { user: userId, ...sent }: NewApiKey): Promise<CreatedKey> {
  const { principal, app } = context
  requireOwnKeys(principal, userId)
  const model = app.catalog.get(API_KEY_MODEL)
  const table = app.tables.of(app.catalog.user)
  const user = await store.readById(app.db.reader, table, userId, { select: table.full })
  if (!user) return throwNotFound(app.catalog.user, userId)
  const data = validateKeyInput(app, model, user, sent)
  const key = API_KEY_PREFIX + createToken()
  const storedKey = { user: { id: userId }, ...toStoredKey(key) }
  const maker: Principal = { ...principal, permissions: undefined }
  const addition: WriteWithAddition = {
    data,
    prepareValues: async (tx, changes) => {
      const event: NewAuthEvent = { kind: 'key-made', userId, note: storedKey.prefix, by: principal.user }
      changes.push(await insertEvent(app, tx, event))
      return storedKey
    },
  }
  const written = await saveWithAddition(createContext(app, maker), model, addition, {})
  return { record: written.data, key }
}

/** Lists the keys of one user, or of all users, oldest first. */
export async function listApiKeys(app: App, userId: number | undefined): Promise<readonly WireRecord[]> {
  const model = app.catalog.get(API_KEY_MODEL)
  const where = userId === undefined ? undefined : buildUserCriteria(app, model, userId)
  const all: WireRecord[] = []
  for (;;) {
    const page = { after: all.at(-1)?.id ?? 0, limit: KEY_PAGE_ROWS, ...(where ? { where } : {}) }
    const keys = await store.scanById(app.db.reader, app.tables.of(model), page)
    all.push(...keys)
    if (keys.length < KEY_PAGE_ROWS) return all
  }
}

function buildUserCriteria(app: App, model: Model, id: number): Criteria {
  const user = model.fields.get('user')
  const steps = user ? [buildStep(app.catalog, model, user)] : []
  return { kind: 'comparison', steps, field: ID_FIELD, operator: 'in', values: [id] }
}

/** Throws `not-found` for a key of another user. */
export async function removeOwnKey(context: Context, id: number): Promise<number> {
  const { app, principal } = context
  const model = app.catalog.get(API_KEY_MODEL)
  const record = await store.readById(app.db.reader, app.tables.of(model), requireId(model, id))
  const owner = record?.['user']
  if (!principal.user || !isObject(owner) || owner['id'] !== principal.user.id)
    return throwNotFound(model, id)
  requireOwnKeys(principal, principal.user.id)
  return (await removeRecord(createContext(app, { ...principal, permissions: undefined }), model, id)).data
}

export async function revokeKey(app: App, id: number): Promise<number> {
  return (await removeRecord(createContext(app, SERVICE_PRINCIPAL), app.catalog.get(API_KEY_MODEL), id)).data
}

/** Returns the values that the record stores and that a lookup uses. */
export function toStoredKey(key: string): { readonly prefix: string; readonly hash: string } {
  return { prefix: key.slice(0, SHOWN_PREFIX_LENGTH), hash: hashToken(key) }
}

/** True if the text has the format of a key. */
export function isKeyFormat(text: string): boolean {
  return text.startsWith(API_KEY_PREFIX) && isTokenFormat(text.slice(API_KEY_PREFIX.length))
}

function requireOwnKeys({ user }: Principal, userId: number): void {
  if (!user) return
  if (user.keyId !== undefined)
    throw new VersoError(
      'forbidden',
      'An API key cannot create API keys: log in with a password; nothing was changed',
    )
  if (user.id !== userId)
    throw new VersoError('forbidden', 'An API key can only be created by its own user; nothing was changed')
}

type KeyInput = Readonly<Record<string, unknown>>

/** Returns the values to store. Reports all errors at once. */
function validateKeyInput(app: App, model: Model, user: WireRecord, sent: KeyInput): object {
  const errors = new FieldErrors()
  for (const name of Object.keys(sent))
    if (!KEY_INPUT_FIELDS.includes(name))
      errors.add(name, `cannot be set${didYouMean(name, KEY_INPUT_FIELDS)}`)
  const name = parseKeyField(model, 'name', sent['name'], errors)
  const roles = selectKeyRoles(user, sent['roles'], errors)
  const now = app.clock.now()
  const defaultExpiry = new Date(now + DEFAULT_KEY_DAYS * DAY_MS).toISOString()
  const expiresOn = parseKeyField(model, 'expiresOn', sent['expiresOn'] ?? defaultExpiry, errors)
  const expiresMs = Date.parse(String(expiresOn))
  if (expiresMs <= now) errors.add('expiresOn', 'must be in the future')
  if (expiresMs > computeLatestExpiry(now)) errors.add('expiresOn', EXPIRY_TOO_LATE)
  errors.refuseIfAny(model)
  return { name, roles, expiresOn }
}

function parseKeyField(model: Model, name: string, input: unknown, errors: FieldErrors): unknown {
  const field = model.fields.get(name)
  if (!field || input === undefined || input === null) {
    errors.add(name, 'is required')
    return undefined
  }
  const value = parseValue(field, input)
  if (!(value instanceof FieldError)) return value
  errors.add(name, value.message)
  return undefined
}

/** Resolves role names, or objects with an id. Without input the key gets all roles of the user; an empty list means none. */
function selectKeyRoles(
  user: WireRecord,
  input: unknown,
  errors: FieldErrors,
): readonly { readonly id: number }[] {
  const own = (user['roles'] ?? []) as readonly { readonly id: number; readonly name: string }[]
  if (input === undefined) return own.map(({ id }) => ({ id }))
  if (!Array.isArray(input)) {
    errors.add('roles', 'must be a list of role names; an empty list means no roles')
    return []
  }
  const chosen = new Set<number>()
  for (const [index, item] of (input as unknown[]).entries()) {
    const role = own.find(({ id, name }) => (isObject(item) ? item['id'] === id : item === name))
    if (role) chosen.add(role.id)
    else
      errors.add(
        `roles[${index}]`,
        own.length === 0
          ? 'must be a role of this user, but the user has none'
          : `must be one of the roles of this user: ${own.map(({ name }) => name).join(', ')}`,
      )
  }
  return [...chosen].map((id) => ({ id }))
}

function computeLatestExpiry(nowMs: number): number {
  return nowMs + MAX_KEY_DAYS * DAY_MS
}

/** Only `createKey` creates keys, a key keeps its user, and it expires. */
function refuseInvalidKeyWrite({ now }: HookContext, { draft, values, before }: PendingSave): undefined {
  const { model, path } = draft
  const { expiresOn = null, user = null } = values
  if (!before && !('hash' in values)) requireDirectCreate(model)
  if (before && user !== null && readUserId(before) !== readUserId(values))
    throw createFieldError(
      model,
      `${path}user`,
      'cannot be changed: a key belongs to the user it was created for',
    )
  if (typeof expiresOn === 'string' && Date.parse(expiresOn) > computeLatestExpiry(Date.parse(now)))
    throw createFieldError(model, `${path}expiresOn`, EXPIRY_TOO_LATE)
}

function readUserId({ user }: Readonly<Record<string, unknown>>): unknown {
  return isObject(user) ? user['id'] : undefined
}
