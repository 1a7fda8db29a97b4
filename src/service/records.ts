// What may be done with records, in which transaction. Each verb: check → transaction → Change.
import { Refusal } from '../errors.js'
import { isShown, type Model } from '../model/model.js'
import { searchFrom, type Paging } from '../model/search.js'
import { isObject, sameValue, type Value, type Values } from '../model/value.js'
import { computeValues, valuesToCreate, valuesToUpdate } from '../model/values.js'
import type { NewChange } from '../store/log.js'
import * as store from '../store/records.js'
import { tableOf, type Table } from '../store/table.js'
import type {
  Action,
  Change,
  Page,
  Records,
  RemoveOptions,
  UpdateOptions,
  WireRecord,
  WriteOptions,
  Written,
} from '../wire.js'
import type { Actor } from './actor.js'
import type { App } from './app.js'
import { conflict } from './conflict.js'
import { fingerprint, hashPassword } from './passwords.js'
import { endSessionsIfChanged, endSessionsIfRemoved } from './user-sessions.js'
import { versionToRemove, versionToUpdate, type Expected } from './versions.js'
import { write, type WriteRequest, type Writing } from './writing.js'

/**
 * The verbs for one actor: what a program that embeds the service calls, and what HTTP calls.
 *
 * @example
 * const { actor } = await login(app, { username: 'ada', password }, '127.0.0.1', undefined)
 * const { data: task } = await recordsFor(app, actor).create('todo.Task', { title: 'Write' })
 */
export function recordsFor(app: App, actor: Actor): Records {
  return {
    find: async (model, paging) => find(app, app.catalog.get(model), paging ?? {}),
    read: async (model, id) => read(app, app.catalog.get(model), id),
    create: async (model, data, options) => create(app, actor, app.catalog.get(model), data, options),
    update: async (model, id, data, options) => update(app, actor, app.catalog.get(model), id, data, options),
    remove: async (model, id, options) => remove(app, actor, app.catalog.get(model), id, options),
  }
}

async function find(app: App, model: Model, paging: Paging): Promise<Page> {
  const search = searchFrom(paging, app.settings.maxLimit)
  const { total, records } = await store.find(app.db.reader, tableOf(app.db.dialect, model), search)
  return { offset: search.offset, limit: search.limit, total, data: records }
}

async function read(app: App, model: Model, id: number): Promise<WireRecord> {
  const record = await store.read(app.db.reader, tableOf(app.db.dialect, model), checkId(model, id))
  return record ?? missing(model, id)
}

export async function create(
  app: App,
  actor: Actor | null,
  model: Model,
  data: unknown,
  options: WriteOptions = {},
): Promise<Written<WireRecord>> {
  refuseKeysOfARecord(data)
  const now = nowOf(app)
  const sent = valuesToCreate(model, data, now)
  const values: Values = { ...sent, ...computeValues(model, sent), createdOn: now, updatedOn: null }
  const row = { ...(await hashSecrets(model, values)), createdBy: actor?.id ?? null, updatedBy: null }
  const request = await requestOf(model, 'create', { data }, options)
  return write(app, actor, request, options.idempotencyKey, async (writing) => {
    const table = tableOf(app.db.dialect, model)
    const [id = 0] = await store.insert(writing.tx, table, [row])
    const record = shown(table, id, 0, { ...values, createdBy: userOf(actor), updatedBy: null })
    const changes = differences(model, {}, record)
    noteChange(writing, actor, model, now, { id, version: 0, action: 'create', changes })
    return record
  })
}

export async function update(
  app: App,
  actor: Actor | null,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions = {},
): Promise<Written<WireRecord>> {
  checkId(model, id)
  const expected = versionToUpdate(data, id, options.ifMatch)
  const sent = valuesToUpdate(model, data)
  const hashed = await hashSecrets(model, sent)
  const now = nowOf(app)
  const request = await requestOf(model, 'update', { id, version: expected.version, data }, options)
  return write(app, actor, request, options.idempotencyKey, async (writing) => {
    const table = tableOf(app.db.dialect, model)
    const before = (await store.read(writing.tx, table, id)) ?? missing(model, id)
    if (before.version !== expected.version) throw await conflict(writing.tx, table, before, expected, sent)
    const computed = computeValues(model, { ...(before as unknown as Values), ...sent })
    const values = { ...hashed, ...computed, updatedOn: now, updatedBy: actor?.id ?? null }
    const [isDone] = await store.update(writing.tx, table, [{ id, version: expected.version, values }])
    if (!isDone) throw await overtaken(writing, table, id, expected, sent)
    await endSessionsIfChanged(writing.tx, model, id, sent)
    const kept = { updatedOn: now, updatedBy: userOf(actor) }
    const all = { ...(before as unknown as Values), ...sent, ...computed, ...kept }
    const record = shown(table, id, before.version + 1, all)
    const changes = differences(model, before, record)
    noteChange(writing, actor, model, now, { id, version: record.version, action: 'update', changes })
    return record
  })
}

export async function remove(
  app: App,
  actor: Actor | null,
  model: Model,
  id: number,
  options: RemoveOptions = {},
): Promise<Written<number>> {
  checkId(model, id)
  const expected = versionToRemove(options)
  const now = nowOf(app)
  const request = await requestOf(model, 'delete', { id, version: expected?.version }, options)
  return write(app, actor, request, options.idempotencyKey, async (writing) => {
    const table = tableOf(app.db.dialect, model)
    // Without a version the record is locked first, so that what the Log says went is what went.
    const before =
      (await (expected ? store.read : store.readLocked)(writing.tx, table, id)) ?? missing(model, id)
    if (expected && before.version !== expected.version)
      throw await conflict(writing.tx, table, before, expected, null)
    const [isDone] = await store.remove(writing.tx, table, [{ id, version: before.version }])
    if (!isDone)
      throw await overtaken(writing, table, id, expected ?? { version: before.version, by: 'version' }, null)
    await endSessionsIfRemoved(writing.tx, model, id)
    const changes = differences(model, before, {})
    noteChange(writing, actor, model, now, { id, version: before.version + 1, action: 'delete', changes })
    return id
  })
}

/** Somebody was faster between the reading and the guarded statement. */
async function overtaken(
  writing: Writing,
  table: Table,
  id: number,
  expected: Expected,
  sent: Values | null,
): Promise<Refusal> {
  const theirs = (await store.read(writing.tx, table, id)) ?? missing(table.model, id)
  return conflict(writing.tx, table, theirs, expected, sent)
}

function shown(table: Table, id: number, version: number, values: Readonly<Values>): WireRecord {
  const record: Record<string, Value> & { id: number; version: number } = { id, version }
  for (const { name } of table.full.fields) record[name] = values[name] ?? null
  return record
}

/** What came, what went, or before and after of what changed; never a secret, and nothing that the service keeps. */
function differences(model: Model, before: object, after: object): Change['changes'] {
  const [left, right] = [before as Values, after as Values]
  const changes: Record<string, { before: Value; after: Value }> = {}
  for (const field of model.fields.values()) {
    if (field.kept || !isShown(field)) continue
    const change = { before: left[field.name] ?? null, after: right[field.name] ?? null }
    if (!sameValue(change.before, change.after)) changes[field.name] = change
  }
  return changes
}

function noteChange(
  writing: Writing,
  actor: Actor | null,
  model: Model,
  now: string,
  change: Pick<NewChange, 'id' | 'version' | 'action' | 'changes'>,
): void {
  writing.changes.push({ ...change, model: model.name, by: actor?.id ?? null, atMs: Date.parse(now) })
}

/** What a repeat under the same key must be equal to. A secret is in it by its fingerprint only: the digest is stored. */
async function requestOf(
  model: Model,
  action: Action,
  { data, ...rest }: Omit<WriteRequest, 'action' | 'model'>,
  { idempotencyKey }: WriteOptions,
): Promise<WriteRequest> {
  const request = { ...rest, action, model: model.name }
  if (idempotencyKey === undefined || !isObject(data)) return { ...request, data }
  const isSecret = ([name]: readonly [string, unknown]) => model.fields.get(name)?.secret !== undefined
  const entries = Object.entries(data)
  const secrets = JSON.stringify(entries.filter(isSecret))
  const told = Object.fromEntries(entries.filter((entry) => !isSecret(entry)))
  const secret = secrets === '[]' ? undefined : await fingerprint(secrets, idempotencyKey)
  return { ...request, data: told, secret }
}

/** Passwords are hashed before the transaction: nothing inside one waits for anything but the database. */
async function hashSecrets(model: Model, values: Values): Promise<Values> {
  const hashed = { ...values }
  for (const [name, value] of Object.entries(values)) {
    if (model.fields.get(name)?.secret === 'password' && typeof value === 'string')
      hashed[name] = await hashPassword(value)
  }
  return hashed
}

function refuseKeysOfARecord(data: unknown): void {
  if (!isObject(data)) return
  const given = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (given.length > 0) {
    throw new Refusal(
      'bad-request',
      `A new record has no ${given.join(' and no ')} yet: leave it out, or update with POST`,
    )
  }
}

function checkId(model: Model, id: number): number {
  return Number.isSafeInteger(id) && id > 0 ? id : missing(model, id)
}

function missing(model: Model, id: number): never {
  throw new Refusal('not-found', `There is no ${model.name} with id ${id}`)
}

function userOf(actor: Actor | null): Value {
  return actor && { id: actor.id, $version: actor.version, name: actor.name }
}

function nowOf(app: App): string {
  return new Date(app.clock.now()).toISOString()
}
