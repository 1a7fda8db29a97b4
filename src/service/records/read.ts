// Reads: find, search, read and fetch, as records or as JSON text.
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
import type { NextPage, Page, SearchOptions, WireRecord } from '../../wire.js'
import { getVisibility } from '../context/principal.js'
import { requireId, throwNotFound } from '../context/ids.js'
import {
  fitsBytes,
  isAlwaysInMemory,
  computeMemoryLimit,
  MAX_ESCAPE_FACTOR,
  stringifyRecords,
  readWithinLimit,
  requireRecordFits,
  computeAnswerRoom,
  requireJsonFits,
} from '../context/answer-limits.js'
import { refuseLargePage, stagePage } from '../context/staged-pages.js'
import { findPageAt } from '../log/past-list.js'
import { requirePermission } from '../access/permission-checks.js'
import { getVisibleCriteria, getSelect } from '../access/visible-records.js'
import { type Context } from '../context/context.js'

export async function findByQuery(context: Context, model: Model, query: FindQuery): Promise<Page> {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) return findPageAt(context, model, query)
  const parsed = parseFindQuery(getVisibility(app, principal), model, query, app.settings.maxLimit)
  const { search, found } = await readPage(context, model, parsed)
  return { ...toPage(search, found), next: buildNextPage(search, found.nextCursor) }
}

export async function searchByRequest(
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

/** The link to the page that follows the last record. */
function buildNextPage({ offset, limit, sort }: Search, last: PageCursor | undefined): NextPage | undefined {
  return last && { offset: offset + limit, after: encodeCursor(sort, last) }
}

/** Chooses the statement and the connection of a search. */
function planSearch(context: Context, model: Model, parsed: Search) {
  const { app } = context
  const search = { ...parsed, visible: getVisibleCriteria(context.principal, model) }
  const table = app.tables.of(model)
  const list = getSelect(context, model, 'list')
  const isShort = search.selection ? !selectsRelations(search.selection) : !list.hasRelatedConditions
  // A search that scans more rows than it returns may be slow, so it runs in the query pool.
  const db = isShort && isBoundedSearch(table, search) ? app.db.reader : app.db.queryPool
  return { db, table, search, list }
}

/** A page whose records are JSON text, in memory or in a staged file. */
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

/** Runs a search request and returns its page as JSON text. */
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

export async function readRecord(context: Context, model: Model, id: number): Promise<WireRecord> {
  return readSelectedRecord(context, model, { id, select: getSelect(context, model, 'full') })
}

/** Reads one record as JSON text. */
export async function readRecordJson(context: Context, model: Model, id: number): Promise<store.RecordJson> {
  const { app } = context
  const [select, visible] = [getSelect(context, model, 'full'), getVisibleCriteria(context.principal, model)]
  const db = dependsOnRelated(select, visible) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: requireId(model, id), select, visible }
  if (isAlwaysInMemory(app, select))
    return (await store.readPrinted(db, table, id, select, record)) ?? throwNotFound(model, id)
  const read = (only: ReadFilter) => store.readPrinted(db, table, id, select, only)
  const found = (await readWithinLimit(app, { db, table }, record, read)) ?? throwNotFound(model, id)
  requireJsonFits(app, found.text)
  return found
}

/** Reads the named fields of a record, also those of related records. */
export async function fetchRecord(
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
  const visible = getVisibleCriteria(context.principal, model)
  const db = isLong || dependsOnRelated(select, visible) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: requireId(model, id), select, visible }
  if (isAlwaysInMemory(app, select))
    return (await store.readById(db, table, id, { select, filter: record })) ?? throwNotFound(model, id)
  const read = (filter: ReadFilter) => store.readById(db, table, id, { select, filter })
  return requireRecordFits(
    app,
    (await readWithinLimit(app, { db, table }, record, read)) ?? throwNotFound(model, id),
  )
}

/** True if a client selects fields of related records. Their number has no bound. */
function selectsRelations(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}

/** True if the visibility of the record depends on related records. */
function dependsOnRelated({ hasRelatedConditions }: Select, visible: Criteria | undefined): boolean {
  return hasRelatedConditions || (visible !== undefined && spansManyRelations(visible))
}
