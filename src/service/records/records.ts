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
import type { UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { getVisibility, type Principal } from '../context/principal.js'
import { runBatch } from './batch.js'
import { copyRecord } from './copy.js'
import { clearFile, downloadFile, uploadFile } from './files.js'
import { requireId, throwNotFound, requireWritableModel } from '../context/ids.js'
import {
  fitsBytes,
  isAlwaysInMemory,
  computeMemoryLimit,
  MAX_ESCAPE_FACTOR,
  stringifyRecords,
  readWithinLimit,
  requireRecordFits,
  refuseLargePage,
  computeAnswerRoom,
  stagePage,
  requireJsonFits,
} from '../context/answer-limits.js'
import { readHistory } from '../log/history.js'
import { findPageAt } from '../log/past-list.js'
import { readRecordAt } from '../log/past-record.js'
import { updateMass } from './mass-update.js'
import { readChanges } from '../log/feed.js'
import { requireKnownModel, requirePermission } from '../access/permission-checks.js'
import { removeRecord, removeListedRecords } from './remove.js'
import { createRecord, saveRecords, updateRecord } from './save.js'
import { revertRecord } from './revert.js'
import { getVisibleCriteria, getSelect } from '../access/visible-records.js'
import { verifyVersions } from './verify.js'

/**
 * The verbs for one actor: what a program that embeds the service calls, and what HTTP calls.
 *
 * @example
 * const { actor } = await login(app, { username: 'ada', password }, '127.0.0.1', undefined)
 * const { data: task } = await recordsFor(app, actor).create('todo.Task', { title: 'Write' })
 */
export function recordsFor(app: App, user: UserIdentity): Records {
  // Rights may change while a program runs: they are asked for with every call.
  return bindRecords(app, () => app.authorizer.resolvePrincipal(user))
}

/** The same for one whose rights were just asked for. */
export function recordsForPrincipal(app: App, principal: Principal): Records {
  return bindRecords(app, async () => principal)
}

function bindRecords(app: App, resolvePrincipal: () => Promise<Principal>): Records {
  const reading = async (name: string) => {
    const principal = await resolvePrincipal()
    return [principal, requireKnownModel(app, principal, name)] as const
  }
  const writing = async (name: string) => {
    const [by, model] = await reading(name)
    return [by, requireWritableModel(model)] as const
  }
  return {
    find: async (model, query) => findByQuery(app, ...(await reading(model)), query ?? {}),
    search: async (model, request, options) =>
      searchByRequest(app, ...(await reading(model)), request, options),
    read: async (model, id) => readRecord(app, ...(await reading(model)), id),
    fetch: async (model, id, fields) => fetchRecord(app, ...(await reading(model)), id, fields ?? {}),
    readAt: async (model, id, asOf) => readRecordAt(app, ...(await reading(model)), id, asOf),
    history: async (model, id, query) => readHistory(app, ...(await reading(model)), id, query ?? {}),
    copy: async (model, id) => copyRecord(app, ...(await reading(model)), id),
    verify: async (model, data) => verifyVersions(app, ...(await reading(model)), data),
    changes: async (query) => readChanges(app, resolvePrincipal, query),
    create: async (model, data, options) => createRecord(app, ...(await writing(model)), data, options),
    update: async (model, id, data, options) =>
      updateRecord(app, ...(await writing(model)), id, data, options),
    save: async (model, records, options) => saveRecords(app, ...(await writing(model)), records, options),
    updateMass: async (model, request, options) =>
      updateMass(app, ...(await writing(model)), request, options),
    remove: async (model, id, options) => removeRecord(app, ...(await writing(model)), id, options),
    revert: async (model, id, data, options) =>
      revertRecord(app, ...(await writing(model)), id, data, options),
    removeAll: async (model, records, options) =>
      removeListedRecords(app, ...(await writing(model)), records, options),
    batch: async (requests, options) => runBatch(app, await resolvePrincipal(), requests, options),
    upload: async (model, sent, options) => uploadFile(app, ...(await writing(model)), sent, options),
    download: async (model, id, field) => downloadFile(app, ...(await reading(model)), id, field),
    clear: async (model, id, field, options) => clearFile(app, ...(await writing(model)), id, field, options),
  }
}

async function findByQuery(app: App, principal: Principal, model: Model, query: FindQuery): Promise<Page> {
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) return findPageAt(app, principal, model, query)
  const parsed = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  const { search, found } = await readPage(app, principal, model, parsed)
  return { ...toPage(search, found), next: buildNextPage(search, found.nextCursor) }
}

async function searchByRequest(
  app: App,
  principal: Principal,
  model: Model,
  request: unknown,
  { maxLimit = app.settings.maxLimit }: SearchOptions = {},
): Promise<Page> {
  requirePermission(principal, 'read', model)
  const parsed = parseSearchRequest(getVisibility(app, principal), model, request, maxLimit)
  const { search, found } = await readPage(app, principal, model, parsed)
  return toPage(search, found)
}

async function readPage(app: App, principal: Principal, model: Model, parsed: Search) {
  const { db, table, search, list } = planSearch(app, principal, model, parsed)
  const maxBytes = computeAnswerRoom(app.settings)
  const found = await pages.findPageWithin(db, table, search, { list, maxBytes })
  if (found) return { search, found }
  const select = pages.resolveSelect(table, search, list)
  return app.db.queryPool.snapshot(async (db) => {
    const page = await measurePage(db, table, search, select)
    await refuseLargePage(app.settings, db, table, { page, select })
    return { search, found: await pages.findPage(db, table, search, list) }
  })
}

function toPage({ offset, limit }: Search, { total, seq, records }: pages.FoundPage): Page {
  return { offset, limit, total, seq, data: records }
}

/** Where to go on behind the last record of a page. */
function buildNextPage({ offset, limit, sort }: Search, last: PageCursor | undefined): NextPage | undefined {
  return last && { offset: offset + limit, after: encodeCursor(sort, last) }
}

/** How a search is carried out. */
function planSearch(app: App, principal: Principal, model: Model, parsed: Search) {
  const search = { ...parsed, seen: getVisibleCriteria(principal, model) }
  const table = app.tables.of(model)
  const list = getSelect(app, principal, model, 'list')
  const isShort = search.selection ? !selectsRelations(search.selection) : !list.hasRelatedConditions
  // Whatever looks into more rows than it shows may take long.
  const db = isShort && isBoundedSearch(table, search) ? app.db.reader : app.db.queryPool
  return { db, table, search, list }
}

/** What a find answers, with its records as the text of their JSON, or in a file. */
export interface JsonAnswerPage extends Omit<Page, 'data'> {
  readonly text: pages.JsonPage['text'] | StagedFile
}

export async function findPageJson(
  app: App,
  principal: Principal,
  model: Model,
  query: FindQuery,
): Promise<JsonAnswerPage> {
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) {
    const { data, ...page } = await findPageAt(app, principal, model, query)
    return { ...page, text: stringifyRecords(app, data) }
  }
  const parsed = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  return readPageJson(app, principal, model, parsed)
}

/** The same for what a search answers. */
export async function searchPageJson(
  app: App,
  principal: Principal,
  model: Model,
  { request, options: { maxLimit = app.settings.maxLimit } = {} }: SearchCall,
): Promise<JsonAnswerPage> {
  requirePermission(principal, 'read', model)
  return readPageJson(
    app,
    principal,
    model,
    parseSearchRequest(getVisibility(app, principal), model, request, maxLimit),
  )
}

export interface SearchCall {
  readonly request: unknown
  readonly options?: SearchOptions | undefined
}

async function readPageJson(
  app: App,
  principal: Principal,
  model: Model,
  parsed: Search,
): Promise<JsonAnswerPage> {
  const { db, table, search, list } = planSearch(app, principal, model, parsed)
  const maxBytes = computeMemoryLimit(app.settings)
  const light = await pages.findPrinted(db, table, search, { list, maxBytes })
  const isSmall = light !== undefined && fitsBytes(light.text, maxBytes * MAX_ESCAPE_FACTOR)
  const { total, seq, text, nextCursor } = isSmall
    ? light
    : await stagePage(app, table, search, pages.resolveSelect(table, search, list))
  const { offset, limit } = search
  return { offset, limit, total, seq, text, next: buildNextPage(search, nextCursor) }
}

async function readRecord(app: App, principal: Principal, model: Model, id: number): Promise<WireRecord> {
  return readSelectedRecord(app, principal, model, { id, select: getSelect(app, principal, model, 'full') })
}

/** What a read answers, as the text of its JSON. */
export async function readRecordJson(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
): Promise<store.RecordJson> {
  const [select, seen] = [getSelect(app, principal, model, 'full'), getVisibleCriteria(principal, model)]
  const db = dependsOnRelated(select, seen) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: requireId(model, id), select, seen }
  if (isAlwaysInMemory(app, select))
    return (await store.readPrinted(db, table, id, select, record)) ?? throwNotFound(model, id)
  const read = (only: ReadFilter) => store.readPrinted(db, table, id, select, only)
  const found = (await readWithinLimit(app, { db, table }, record, read)) ?? throwNotFound(model, id)
  requireJsonFits(app, found.text)
  return found
}

/** A part of a record, or more than a read shows. */
async function fetchRecord(
  app: App,
  principal: Principal,
  model: Model,
  id: number,
  fields: FieldSelection,
): Promise<WireRecord> {
  requireId(model, id)
  const selection = parseRecordSelection(getVisibility(app, principal), model, fields)
  const select = compileSelection(app.db.dialect, selection)
  return readSelectedRecord(app, principal, model, { id, select, isLong: selectsRelations(selection) })
}

interface RecordQuery {
  readonly id: number
  readonly select: Select
  readonly isLong?: boolean
}

async function readSelectedRecord(
  app: App,
  principal: Principal,
  model: Model,
  { id, select, isLong = false }: RecordQuery,
): Promise<WireRecord> {
  const seen = getVisibleCriteria(principal, model)
  const db = isLong || dependsOnRelated(select, seen) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: requireId(model, id), select, seen }
  if (isAlwaysInMemory(app, select))
    return (await store.read(db, table, id, select, record)) ?? throwNotFound(model, id)
  const read = (only: ReadFilter) => store.read(db, table, id, select, only)
  return requireRecordFits(
    app,
    (await readWithinLimit(app, { db, table }, record, read)) ?? throwNotFound(model, id),
  )
}

/** Whether a client named relations to be shown: how much is behind them, nobody knows. */
function selectsRelations(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}

/** Whether what may be seen is decided by neighbours. */
function dependsOnRelated({ hasRelatedConditions }: Select, seen: Criteria | undefined): boolean {
  return hasRelatedConditions || (seen !== undefined && spansManyRelations(seen))
}
