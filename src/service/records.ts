// What may be done with records: the verbs that both doors offer, and those that only read.
import type { Model } from '../model/model.js'
import { searchFromQuery, searchFromRequest, type Query, type Search } from '../model/search.js'
import { countRelations, selectionForRecord, type Selection, type Wanted } from '../model/selection.js'
import * as store from '../store/records.js'
import { compileSelection } from '../store/select.js'
import type { Page, Records, SearchOptions, WireRecord } from '../wire.js'
import type { Actor } from './actor.js'
import type { App } from './app.js'
import { copy } from './copy.js'
import { clear, download, upload } from './files.js'
import { checkId, missing, writable } from './ids.js'
import { updateMass } from './mass-update.js'
import { remove, removeAll } from './removals.js'
import { create, save, update } from './saves.js'
import { verify } from './verify.js'

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
    search: async (model, request, options) => search(app, app.catalog.get(model), request, options),
    read: async (model, id) => read(app, app.catalog.get(model), id),
    fetch: async (model, id, wanted) => fetch(app, app.catalog.get(model), id, wanted ?? {}),
    copy: async (model, id) => copy(app, app.catalog.get(model), id),
    verify: async (model, data) => verify(app, app.catalog.get(model), data),
    create: async (model, data, options) =>
      create(app, actor, writable(app.catalog.get(model)), data, options),
    update: async (model, id, data, options) =>
      update(app, actor, writable(app.catalog.get(model)), id, data, options),
    save: async (model, records, options) =>
      save(app, actor, writable(app.catalog.get(model)), records, options),
    updateMass: async (model, request, options) =>
      updateMass(app, actor, writable(app.catalog.get(model)), request, options),
    remove: async (model, id, options) => remove(app, actor, writable(app.catalog.get(model)), id, options),
    removeAll: async (model, records, options) =>
      removeAll(app, actor, writable(app.catalog.get(model)), records, options),
    upload: async (model, sent, options) =>
      upload(app, actor, writable(app.catalog.get(model)), sent, options),
    download: async (model, id, field) => download(app, app.catalog.get(model), id, field),
    clear: async (model, id, field, options) =>
      clear(app, actor, writable(app.catalog.get(model)), id, field, options),
  }
}

async function find(app: App, model: Model, query: Query): Promise<Page> {
  return pageOf(app, model, searchFromQuery(app.catalog, model, query, app.settings.maxLimit))
}

async function search(
  app: App,
  model: Model,
  request: unknown,
  { maxLimit = app.settings.maxLimit }: SearchOptions = {},
): Promise<Page> {
  return pageOf(app, model, searchFromRequest(app.catalog, model, request, maxLimit))
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

/** Whether a client named relations to be shown: how much is behind them, nobody knows. */
function goesFurther(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}
