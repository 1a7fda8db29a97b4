// The keys of programs: made for a user, shown once, kept as a hash. A key is a record like any other, which nobody can read the key from.
import { VersoError } from '../../errors.js'
import { API_KEY_MODEL } from '../../model/catalog/auth-models.js'
import type { Criteria } from '../../model/query/criteria.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { FieldError, parseValue } from '../../model/values/field-types.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, buildStep } from '../../model/query/path.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { SERVICE, type Caller } from '../context/principal.js'
import { storeEvent, type NewEvent } from './events.js'
import { checkId, missing } from '../context/ids.js'
import { DAY_MS, latestExpiry, TOO_LATE } from './key-rules.js'
import { remove } from '../records/remove.js'
import { saveWith, type Addition } from '../records/save.js'
import { hashOfToken, isToken, newToken } from './tokens.js'

const MARK = 'vk_'
/** Of the key in plain, so that its owner recognises it: too few characters to guess the others from. */
const PREFIX_LENGTH = 9
const USUAL_DAYS = 90
const PAGE = 1_000
const INPUT = ['name', 'roles', 'expiresOn']

export interface NewKey {
  readonly user: number
  /** As they were sent: `name`, and `roles` by name or id, `expiresOn`. */
  readonly [field: string]: unknown
}

export interface MadeKey {
  readonly record: WireRecord
  /** Nobody can read it again. */
  readonly key: string
}

/**
 * A key for a user: by themselves, or by the command line. Without `roles` it has those that the user has now.
 * Never under an Idempotency-Key, where the answer would be kept.
 */
export async function makeKey(app: App, by: Caller, { user: userId, ...sent }: NewKey): Promise<MadeKey> {
  refuseOthers(by, userId)
  const model = app.catalog.get(API_KEY_MODEL)
  const table = app.tables.of(app.catalog.user)
  const user = await store.read(app.db.reader, table, userId, table.full)
  if (!user) return missing(app.catalog.user, userId)
  const data = checked(app, model, user, sent)
  const key = MARK + newToken()
  const kept = { user: { id: userId }, ...keptOf(key) }
  const maker: Caller = { ...by, rights: undefined }
  const addition: Addition = {
    valuesIn: async (tx, changes) => {
      const event: NewEvent = { kind: 'key-made', userId, note: kept.prefix, by: by.actor }
      changes.push(await storeEvent(app, tx, event))
      return kept
    },
  }
  const made = await saveWith(app, maker, model, data, addition, {})
  return { record: made.data, key }
}

/** Those of one user, the oldest first; of everybody if none is named. */
export async function keysOf(app: App, userId: number | undefined): Promise<readonly WireRecord[]> {
  const model = app.catalog.get(API_KEY_MODEL)
  const where = userId === undefined ? undefined : ofUser(app, model, userId)
  const all: WireRecord[] = []
  for (;;) {
    const page = { after: all.at(-1)?.id ?? 0, limit: PAGE, ...(where ? { where } : {}) }
    const keys = await store.scanById(app.db.reader, app.tables.of(model), page)
    all.push(...keys)
    if (keys.length < PAGE) return all
  }
}

function ofUser(app: App, model: Model, id: number): Criteria {
  const user = model.fields.get('user')
  const steps = user ? [buildStep(app.catalog, model, user)] : []
  return { kind: 'comparison', steps, field: ID_FIELD, operator: 'in', values: [id] }
}

/** One that is somebody else's is not there. */
export async function removeOwnKey(app: App, by: Caller, id: number): Promise<number> {
  const model = app.catalog.get(API_KEY_MODEL)
  const record = await store.read(app.db.reader, app.tables.of(model), checkId(model, id))
  const owner = record?.['user']
  if (!by.actor || !isObject(owner) || owner['id'] !== by.actor.id) return missing(model, id)
  refuseOthers(by, by.actor.id)
  return (await remove(app, { ...by, rights: undefined }, model, id)).data
}

export async function revokeKey(app: App, id: number): Promise<number> {
  return (await remove(app, SERVICE, app.catalog.get(API_KEY_MODEL), id)).data
}

/** What is stored of a key, and what it is found by. */
export function keptOf(key: string): { readonly prefix: string; readonly hash: string } {
  return { prefix: key.slice(0, PREFIX_LENGTH), hash: hashOfToken(key) }
}

/** Whether it could be a key at all. */
export function isKey(text: string): boolean {
  return text.startsWith(MARK) && isToken(text.slice(MARK.length))
}

function refuseOthers({ actor }: Caller, userId: number): void {
  if (!actor) return
  if (actor.keyId !== undefined)
    throw new VersoError('forbidden', 'A key makes no keys: log in with a password')
  if (actor.id !== userId) throw new VersoError('forbidden', 'A key is made by its own user')
}

type Input = Readonly<Record<string, unknown>>

/** What is stored of what was sent, or every fault of it. */
function checked(app: App, model: Model, user: WireRecord, sent: Input): object {
  const faults = new FieldErrors()
  for (const name of Object.keys(sent))
    if (!INPUT.includes(name)) faults.add(name, `cannot be set${didYouMean(name, INPUT)}`)
  const name = valueOf(model, 'name', sent['name'], faults)
  const roles = rolesFor(user, sent['roles'], faults)
  const now = app.clock.now()
  const usual = new Date(now + USUAL_DAYS * DAY_MS).toISOString()
  const expiresOn = valueOf(model, 'expiresOn', sent['expiresOn'] ?? usual, faults)
  const expiresMs = Date.parse(String(expiresOn))
  if (expiresMs <= now) faults.add('expiresOn', 'must be in the future')
  if (expiresMs > latestExpiry(now)) faults.add('expiresOn', TOO_LATE)
  faults.refuseIfAny(model)
  return { name, roles, expiresOn }
}

function valueOf(model: Model, name: string, input: unknown, faults: FieldErrors): unknown {
  const field = model.fields.get(name)
  if (!field || input === undefined || input === null) {
    faults.add(name, 'is required')
    return undefined
  }
  const value = parseValue(field, input)
  if (!(value instanceof FieldError)) return value
  faults.add(name, value.message)
  return undefined
}

/** Names, or objects with an id; all that the user has if nothing was said, none if the list is empty. */
function rolesFor(user: WireRecord, input: unknown, faults: FieldErrors): readonly { readonly id: number }[] {
  const own = (user['roles'] ?? []) as readonly { readonly id: number; readonly name: string }[]
  if (input === undefined) return own.map(({ id }) => ({ id }))
  if (!Array.isArray(input)) {
    faults.add('roles', 'must be a list of names; an empty one means none')
    return []
  }
  const chosen = new Set<number>()
  for (const [index, item] of (input as unknown[]).entries()) {
    const role = own.find(({ id, name }) => (isObject(item) ? item['id'] === id : item === name))
    if (role) chosen.add(role.id)
    else
      faults.add(
        `roles[${index}]`,
        own.length === 0
          ? 'must be a role of this user, who has none'
          : `must be a role that this user has: ${own.map(({ name }) => name).join(', ')}`,
      )
  }
  return [...chosen].map((id) => ({ id }))
}
