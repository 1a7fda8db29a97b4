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
import { createContext, type Context } from '../context/context.js'

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
  const open = async (name: string) => {
    const principal = await resolvePrincipal()
    return { context: createContext(app, principal), model: requireKnownModel(app, principal, name) }
  }
  const openWritable = async (name: string) => {
    const { context, model } = await open(name)
    return { context, model: requireWritableModel(model) }
  }
  return {
    find: async (name, query) => {
      const { context, model } = await open(name)
      return findByQuery(context, model, query ?? {})
    },
    search: async (name, request, options) => {
      const { context, model } = await open(name)
      return searchByRequest(context, model, request, options)
    },
    read: async (name, id) => {
      const { context, model } = await open(name)
      return readRecord(context, model, id)
    },
    fetch: async (name, id, fields) => {
      const { context, model } = await open(name)
      return fetchRecord(context, model, id, fields ?? {})
    },
    readAt: async (name, id, asOf) => {
      const { context, model } = await open(name)
      return readRecordAt(context, model, id, asOf)
    },
    history: async (name, id, query) => {
      const { context, model } = await open(name)
      return readHistory(context, model, id, query ?? {})
    },
    copy: async (name, id) => {
      const { context, model } = await open(name)
      return copyRecord(context, model, id)
    },
    verify: async (name, data) => {
      const { context, model } = await open(name)
      return verifyVersions(context, model, data)
    },
    changes: async (query) => readChanges(app, resolvePrincipal, query),
    create: async (name, data, options) => {
      const { context, model } = await openWritable(name)
      return createRecord(context, model, data, options)
    },
    update: async (name, id, data, options) => {
      const { context, model } = await openWritable(name)
      return updateRecord(context, model, { id, data }, options)
    },
    save: async (name, records, options) => {
      const { context, model } = await openWritable(name)
      return saveRecords(context, model, records, options)
    },
    updateMass: async (name, request, options) => {
      const { context, model } = await openWritable(name)
      return updateMass(context, model, request, options)
    },
    remove: async (name, id, options) => {
      const { context, model } = await openWritable(name)
      return removeRecord(context, model, id, options)
    },
    revert: async (name, id, data, options) => {
      const { context, model } = await openWritable(name)
      return revertRecord(context, model, { id, data }, options)
    },
    removeAll: async (name, records, options) => {
      const { context, model } = await openWritable(name)
      return removeListedRecords(context, model, records, options)
    },
    batch: async (requests, options) =>
      runBatch(createContext(app, await resolvePrincipal()), requests, options),
    upload: async (name, sent, options) => {
      const { context, model } = await openWritable(name)
      return uploadFile(context, model, sent, options)
    },
    download: async (name, id, fieldName) => {
      const { context, model } = await open(name)
      return downloadFile(context, model, id, fieldName)
    },
    clear: async (name, id, fieldName, options) => {
      const { context, model } = await openWritable(name)
      return clearFile(context, model, { id, fieldName }, options)
    },
  }
}

async function findByQuery(context: Context, model: Model, query: FindQuery): Promise<Page> {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) return findPageAt(context, model, query)
  const parsed = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  const { search, found } = await readPage(context, model, parsed)
  return { ...toPage(search, found), next: buildNextPage(search, found.nextCursor) }
}

async function searchByRequest(
  context: Context,
  model: Model,
  request: unknown,
  { maxLimit = context.app.settings.maxLimit }: SearchOptions = {},
): Promise<Page> {
  const { app, principal } = context
  requirePermission(principal, 'read', model)
  const parsed = parseSearchRequest(getVisibility(app, principal), model, request, maxLimit)
  const { search, found } = await readPage(context, model, parsed)
  return toPage(search, found)
}

async function readPage(context: Context, model: Model, parsed: Search) {
  const { app } = context
  const { db, table, search, list } = planSearch(context, model, parsed)
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
function planSearch(context: Context, model: Model, parsed: Search) {
  const { app } = context
  const search = { ...parsed, seen: getVisibleCriteria(context.principal, model) }
  const table = app.tables.of(model)
  const list = getSelect(context, model, 'list')
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
  context: Context,
  model: Model,
  query: FindQuery,
): Promise<JsonAnswerPage> {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) {
    const { data, ...page } = await findPageAt(context, model, query)
    return { ...page, text: stringifyRecords(app, data) }
  }
  const parsed = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  return readPageJson(context, model, parsed)
}

/** The same for what a search answers. */
export async function searchPageJson(
  context: Context,
  model: Model,
  { request, options: { maxLimit = context.app.settings.maxLimit } = {} }: SearchCall,
): Promise<JsonAnswerPage> {
  const { app, principal } = context
  requirePermission(principal, 'read', model)
  return readPageJson(
    context,
    model,
    parseSearchRequest(getVisibility(app, principal), model, request, maxLimit),
  )
}

export interface SearchCall {
  readonly request: unknown
  readonly options?: SearchOptions | undefined
}

async function readPageJson(context: Context, model: Model, parsed: Search): Promise<JsonAnswerPage> {
  const { app } = context
  const { db, table, search, list } = planSearch(context, model, parsed)
  const maxBytes = computeMemoryLimit(app.settings)
  const light = await pages.findPrinted(db, table, search, { list, maxBytes })
  const isSmall = light !== undefined && fitsBytes(light.text, maxBytes * MAX_ESCAPE_FACTOR)
  const { total, seq, text, nextCursor } = isSmall
    ? light
    : await stagePage(app, table, search, pages.resolveSelect(table, search, list))
  const { offset, limit } = search
  return { offset, limit, total, seq, text, next: buildNextPage(search, nextCursor) }
}

async function readRecord(context: Context, model: Model, id: number): Promise<WireRecord> {
  return readSelectedRecord(context, model, { id, select: getSelect(context, model, 'full') })
}

/** What a read answers, as the text of its JSON. */
export async function readRecordJson(context: Context, model: Model, id: number): Promise<store.RecordJson> {
  const { app } = context
  const [select, seen] = [getSelect(context, model, 'full'), getVisibleCriteria(context.principal, model)]
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
  context: Context,
  model: Model,
  id: number,
  fields: FieldSelection,
): Promise<WireRecord> {
  const { app } = context
  requireId(model, id)
  const selection = parseRecordSelection(getVisibility(app, context.principal), model, fields)
  const select = compileSelection(app.db.dialect, selection)
  return readSelectedRecord(context, model, { id, select, isLong: selectsRelations(selection) })
}

interface RecordQuery {
  readonly id: number
  readonly select: Select
  readonly isLong?: boolean
}

async function readSelectedRecord(
  context: Context,
  model: Model,
  { id, select, isLong = false }: RecordQuery,
): Promise<WireRecord> {
  const { app } = context
  const seen = getVisibleCriteria(context.principal, model)
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
