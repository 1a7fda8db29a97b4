// What may be done with records, in which transaction. Each verb: check → transaction → Changes.
import { Refusal } from '../errors.js'
import { draftToCreate, draftToUpdate } from '../model/draft.js'
import type { Model } from '../model/model.js'
import { searchFromQuery, searchFromRequest, type Query, type Search } from '../model/search.js'
import { countRelations, selectionForRecord, type Selection, type Wanted } from '../model/selection.js'
import { isObject } from '../model/value.js'
import * as store from '../store/records.js'
import { compileSelection } from '../store/select.js'
import type {
  Action,
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
import { conflict, missing } from './conflict.js'
import { lockInOrder } from './lock-order.js'
import { Saving } from './saving.js'
import { hashSecrets, withoutSecrets } from './secrets.js'
import { versionToRemove, versionToUpdate } from './versions.js'
import { write, type WriteRequest } from './writing.js'

/**
 * The verbs for one actor: what a program that embeds the service calls, and what HTTP calls.
 *
 * @example
 * const { actor } = await login(app, { username: 'ada', password }, '127.0.0.1', undefined)
 * const { data: task } = await recordsFor(app, actor).create('todo.Task', { title: 'Write' })
 */
export function recordsFor(app: App, actor: Actor): Records {
  return {
    find: async (model, query) => find(app, app.catalog.get(model), query ?? {}),
    search: async (model, request) => search(app, app.catalog.get(model), request),
    read: async (model, id) => read(app, app.catalog.get(model), id),
    fetch: async (model, id, wanted) => fetch(app, app.catalog.get(model), id, wanted ?? {}),
    create: async (model, data, options) => create(app, actor, app.catalog.get(model), data, options),
    update: async (model, id, data, options) => update(app, actor, app.catalog.get(model), id, data, options),
    remove: async (model, id, options) => remove(app, actor, app.catalog.get(model), id, options),
  }
}

async function find(app: App, model: Model, query: Query): Promise<Page> {
  return pageOf(app, model, searchFromQuery(app.catalog, model, query, app.settings.maxLimit))
}

async function search(app: App, model: Model, request: unknown): Promise<Page> {
  return pageOf(app, model, searchFromRequest(app.catalog, model, request, app.settings.maxLimit))
}

async function pageOf(app: App, model: Model, search: Search): Promise<Page> {
  // A page by id of what every record shows is quick; whatever looks into more rows may take long.
  const isPlain = !search.where && search.sort.length === 0 && !goesFurther(search.selection)
  const db = isPlain ? app.db.reader : app.db.searcher
  const { total, records } = await store.find(db, app.tables.of(model), search)
  return { offset: search.offset, limit: search.limit, total, data: records }
}

async function read(app: App, model: Model, id: number): Promise<WireRecord> {
  return (await store.read(app.db.reader, app.tables.of(model), checkId(model, id))) ?? missing(model, id)
}

/** A part of a record, or more than a read shows. */
async function fetch(app: App, model: Model, id: number, wanted: Wanted): Promise<WireRecord> {
  checkId(model, id)
  const selection = selectionForRecord(app.catalog, model, wanted)
  const db = goesFurther(selection) ? app.db.searcher : app.db.reader
  const select = compileSelection(app.db.dialect, selection)
  return (await store.read(db, app.tables.of(model), id, select)) ?? missing(model, id)
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
  const draft = await hashSecrets(draftToCreate(app.catalog, model, data, now))
  const request = await requestOf(app, model, 'create', { data }, options)
  return write(app, actor, request, options.idempotencyKey, async (writing) => {
    const saving = new Saving({ app, actor, tx: writing.tx, now }, draft)
    await lockInOrder({ app, tx: writing.tx }, draft)
    await saving.refuseStale(draft)
    const id = await saving.create(draft)
    writing.changes.push(...(await saving.finish()))
    return saving.recordOf(model, id)
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
  const now = nowOf(app)
  const key = { id, version: expected.version }
  const draft = await hashSecrets(draftToUpdate(app.catalog, model, data, key, now))
  const request = await requestOf(app, model, 'update', { ...key, data }, options)
  return write(app, actor, request, options.idempotencyKey, async (writing) => {
    const saving = new Saving({ app, actor, tx: writing.tx, now }, draft)
    await lockInOrder({ app, tx: writing.tx }, draft)
    await saving.update(draft, key, expected)
    writing.changes.push(...(await saving.finish()))
    return saving.recordOf(model, id)
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
  const request = await requestOf(app, model, 'delete', { id, version: expected?.version }, options)
  return write(app, actor, request, options.idempotencyKey, async ({ tx, changes }) => {
    const table = app.tables.of(model)
    const saving = new Saving({ app, actor, tx, now })
    let isDone = false
    while (!isDone) {
      const record = (await store.read(tx, table, id)) ?? missing(model, id)
      if (expected && record.version !== expected.version)
        throw await conflict(tx, table, record, expected, null)
      // Somebody was faster: the record is read again, and by now it is locked.
      isDone = await saving.remove(table, record)
    }
    changes.push(...(await saving.finish()))
    return id
  })
}

/** Whether a client named relations to be shown: how much is behind them, nobody knows. */
function goesFurther(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}

/** What a repeat under the same key must be equal to. */
async function requestOf(
  app: App,
  model: Model,
  action: Action,
  { data, ...rest }: Omit<WriteRequest, 'action' | 'model'>,
  { idempotencyKey }: WriteOptions,
): Promise<WriteRequest> {
  const request = { ...rest, action, model: model.name }
  if (idempotencyKey === undefined) return { ...request, data }
  return { ...request, ...(await withoutSecrets(app.catalog, model, data, idempotencyKey)) }
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

function nowOf(app: App): string {
  return new Date(app.clock.now()).toISOString()
}
