// What may be done with records: the verbs that both doors offer, and those that only read.
import { spansManyRelations, type Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { encodeCursor, type PageCursor } from '../../model/query/cursor.js'
import { parseFindQuery, parseSearchRequest, type FindQuery, type Search } from '../../model/query/search.js'
import {
  countRelations,
  parseRecordSelection,
  type Selection,
  type FieldSelection,
} from '../../model/query/selection.js'
import { isBoundedSearch } from '../../store/find/known-total.js'
import { measurePage } from '../../store/find/large-pages.js'
import * as pages from '../../store/find/pages.js'
import type { ReadFilter } from '../../store/sql/point-read.js'
import * as store from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { StagedFile } from '../../store/engine/staging.js'
import type { NextPage, Page, Records, SearchOptions, WireRecord } from '../../wire.js'
import type { Actor } from '../context/identity.js'
import type { App } from '../context/app.js'
import { sightOf, type Caller } from '../context/principal.js'
import { batch } from './batch.js'
import { copy } from './copy.js'
import { clear, download, upload } from './files.js'
import { checkId, missing, writable } from '../context/ids.js'
import {
  fits,
  isLight,
  memoryBytes,
  MOST_ESCAPED,
  printRecords,
  readWithin,
  recordWithin,
  refuseLargePage,
  roomFor,
  stagePage,
  textWithin,
} from '../context/answer-limits.js'
import { history } from '../log/history.js'
import { findAt } from '../log/past-list.js'
import { readAt } from '../log/past-record.js'
import { updateMass } from './mass-update.js'
import { changesNow } from '../log/feed.js'
import { modelFor, requirePermitted } from '../access/permission-checks.js'
import { remove, removeAll } from './remove.js'
import { create, save, update } from './save.js'
import { revert } from './revert.js'
import { seenBy, selectFor } from '../access/visible-records.js'
import { verify } from './verify.js'

/**
 * The verbs for one actor: what a program that embeds the service calls, and what HTTP calls.
 *
 * @example
 * const { actor } = await login(app, { username: 'ada', password }, '127.0.0.1', undefined)
 * const { data: task } = await recordsFor(app, actor).create('todo.Task', { title: 'Write' })
 */
export function recordsFor(app: App, actor: Actor): Records {
  // Rights may change while a program runs: they are asked for with every call.
  return verbsOf(app, () => app.gate.callerOf(actor))
}

/** The same for one whose rights were just asked for. */
export function recordsOf(app: App, by: Caller): Records {
  return verbsOf(app, async () => by)
}

function verbsOf(app: App, caller: () => Promise<Caller>): Records {
  const reading = async (name: string) => {
    const by = await caller()
    return [by, modelFor(app, by, name)] as const
  }
  const writing = async (name: string) => {
    const [by, model] = await reading(name)
    return [by, writable(model)] as const
  }
  return {
    find: async (model, query) => find(app, ...(await reading(model)), query ?? {}),
    search: async (model, request, options) => search(app, ...(await reading(model)), request, options),
    read: async (model, id) => read(app, ...(await reading(model)), id),
    fetch: async (model, id, wanted) => fetch(app, ...(await reading(model)), id, wanted ?? {}),
    readAt: async (model, id, asOf) => readAt(app, ...(await reading(model)), id, asOf),
    history: async (model, id, query) => history(app, ...(await reading(model)), id, query ?? {}),
    copy: async (model, id) => copy(app, ...(await reading(model)), id),
    verify: async (model, data) => verify(app, ...(await reading(model)), data),
    changes: async (query) => changesNow(app, caller, query),
    create: async (model, data, options) => create(app, ...(await writing(model)), data, options),
    update: async (model, id, data, options) => update(app, ...(await writing(model)), id, data, options),
    save: async (model, records, options) => save(app, ...(await writing(model)), records, options),
    updateMass: async (model, request, options) =>
      updateMass(app, ...(await writing(model)), request, options),
    remove: async (model, id, options) => remove(app, ...(await writing(model)), id, options),
    revert: async (model, id, data, options) => revert(app, ...(await writing(model)), id, data, options),
    removeAll: async (model, records, options) => removeAll(app, ...(await writing(model)), records, options),
    batch: async (requests, options) => batch(app, await caller(), requests, options),
    upload: async (model, sent, options) => upload(app, ...(await writing(model)), sent, options),
    download: async (model, id, field) => download(app, ...(await reading(model)), id, field),
    clear: async (model, id, field, options) => clear(app, ...(await writing(model)), id, field, options),
  }
}

async function find(app: App, by: Caller, model: Model, query: FindQuery): Promise<Page> {
  requirePermitted(by, 'read', model)
  if (query.asOf !== undefined) return findAt(app, by, model, query)
  const asked = parseFindQuery(sightOf(app, by), model, query, app.settings.maxLimit)
  const { search, found } = await pageOf(app, by, model, asked)
  return { ...pageFrom(search, found), next: nextOf(search, found.nextCursor) }
}

async function search(
  app: App,
  by: Caller,
  model: Model,
  request: unknown,
  { maxLimit = app.settings.maxLimit }: SearchOptions = {},
): Promise<Page> {
  requirePermitted(by, 'read', model)
  const asked = parseSearchRequest(sightOf(app, by), model, request, maxLimit)
  const { search, found } = await pageOf(app, by, model, asked)
  return pageFrom(search, found)
}

async function pageOf(app: App, by: Caller, model: Model, asked: Search) {
  const { db, table, search, list } = finding(app, by, model, asked)
  const maxBytes = roomFor(app.settings)
  const found = await pages.findPageWithin(db, table, search, { list, maxBytes })
  if (found) return { search, found }
  const select = pages.resolveSelect(table, search, list)
  return app.db.queryPool.snapshot(async (db) => {
    const page = await measurePage(db, table, search, select)
    await refuseLargePage(app.settings, db, table, { page, select })
    return { search, found: await pages.findPage(db, table, search, list) }
  })
}

function pageFrom({ offset, limit }: Search, { total, seq, records }: pages.FoundPage): Page {
  return { offset, limit, total, seq, data: records }
}

/** Where to go on behind the last record of a page. */
function nextOf({ offset, limit, sort }: Search, last: PageCursor | undefined): NextPage | undefined {
  return last && { offset: offset + limit, after: encodeCursor(sort, last) }
}

/** How a search is carried out. */
function finding(app: App, by: Caller, model: Model, asked: Search) {
  const search = { ...asked, seen: seenBy(by, model) }
  const table = app.tables.of(model)
  const list = selectFor(app, by, model, 'list')
  const isShort = search.selection ? !goesFurther(search.selection) : !list.hasRelatedConditions
  // Whatever looks into more rows than it shows may take long.
  const db = isShort && isBoundedSearch(table, search) ? app.db.reader : app.db.queryPool
  return { db, table, search, list }
}

/** What a find answers, with its records as the text of their JSON, or in a file. */
export interface PrintedPage extends Omit<Page, 'data'> {
  readonly text: pages.JsonPage['text'] | StagedFile
}

export async function printedPage(
  app: App,
  by: Caller,
  model: Model,
  query: FindQuery,
): Promise<PrintedPage> {
  requirePermitted(by, 'read', model)
  if (query.asOf !== undefined) {
    const { data, ...page } = await findAt(app, by, model, query)
    return { ...page, text: printRecords(app, data) }
  }
  const asked = parseFindQuery(sightOf(app, by), model, query, app.settings.maxLimit)
  return printed(app, by, model, asked)
}

/** The same for what a search answers. */
export async function printedSearch(
  app: App,
  by: Caller,
  model: Model,
  { request, options: { maxLimit = app.settings.maxLimit } = {} }: AskedSearch,
): Promise<PrintedPage> {
  requirePermitted(by, 'read', model)
  return printed(app, by, model, parseSearchRequest(sightOf(app, by), model, request, maxLimit))
}

export interface AskedSearch {
  readonly request: unknown
  readonly options?: SearchOptions | undefined
}

async function printed(app: App, by: Caller, model: Model, asked: Search): Promise<PrintedPage> {
  const { db, table, search, list } = finding(app, by, model, asked)
  const maxBytes = memoryBytes(app.settings)
  const light = await pages.findPrinted(db, table, search, { list, maxBytes })
  const isSmall = light !== undefined && fits(light.text, maxBytes * MOST_ESCAPED)
  const { total, seq, text, nextCursor } = isSmall
    ? light
    : await stagePage(app, table, search, pages.resolveSelect(table, search, list))
  const { offset, limit } = search
  return { offset, limit, total, seq, text, next: nextOf(search, nextCursor) }
}

async function read(app: App, by: Caller, model: Model, id: number): Promise<WireRecord> {
  return readSelected(app, by, model, { id, select: selectFor(app, by, model, 'full') })
}

/** What a read answers, as the text of its JSON. */
export async function printedRecord(
  app: App,
  by: Caller,
  model: Model,
  id: number,
): Promise<store.RecordJson> {
  const [select, seen] = [selectFor(app, by, model, 'full'), seenBy(by, model)]
  const db = isFar(select, seen) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: checkId(model, id), select, seen }
  if (isLight(app, select))
    return (await store.readPrinted(db, table, id, select, record)) ?? missing(model, id)
  const read = (only: ReadFilter) => store.readPrinted(db, table, id, select, only)
  const found = (await readWithin(app, { db, table }, record, read)) ?? missing(model, id)
  textWithin(app, found.text)
  return found
}

/** A part of a record, or more than a read shows. */
async function fetch(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  wanted: FieldSelection,
): Promise<WireRecord> {
  checkId(model, id)
  const selection = parseRecordSelection(sightOf(app, by), model, wanted)
  const select = compileSelection(app.db.dialect, selection)
  return readSelected(app, by, model, { id, select, isLong: goesFurther(selection) })
}

interface SelectedRecord {
  readonly id: number
  readonly select: Select
  readonly isLong?: boolean
}

async function readSelected(
  app: App,
  by: Caller,
  model: Model,
  { id, select, isLong = false }: SelectedRecord,
): Promise<WireRecord> {
  const seen = seenBy(by, model)
  const db = isLong || isFar(select, seen) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: checkId(model, id), select, seen }
  if (isLight(app, select)) return (await store.read(db, table, id, select, record)) ?? missing(model, id)
  const read = (only: ReadFilter) => store.read(db, table, id, select, only)
  return recordWithin(app, (await readWithin(app, { db, table }, record, read)) ?? missing(model, id))
}

/** Whether a client named relations to be shown: how much is behind them, nobody knows. */
function goesFurther(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}

/** Whether what may be seen is decided by neighbours. */
function isFar({ hasRelatedConditions }: Select, seen: Criteria | undefined): boolean {
  return hasRelatedConditions || (seen !== undefined && spansManyRelations(seen))
}
