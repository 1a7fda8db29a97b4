// Reads: find, search, read and fetch.
import { spansManyRelations, type Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { encodeCursor, type PageCursor } from '../../model/query/cursor.js'
import {
  parseFindQuery,
  parseSearchRequest,
  type CountOption,
  type FindQuery,
  type Search,
} from '../../model/query/search.js'
import {
  countRelations,
  parseRecordSelection,
  type Selection,
  type FieldSelection,
} from '../../model/query/selection.js'
import * as pages from '../../store/find/pages.js'
import { estimateSearchNs, MAX_SHORT_SEARCH_NS } from '../../store/find/search-cost.js'
import { SearchPlan } from '../../store/find/search-plan.js'
import { findSmallPage } from '../../store/find/small-page.js'
import type { MeasuredSizes } from '../../store/find/table-sizes.js'
import type { FoundPage, FoundRecord } from '../../store/sql/found.js'
import type { ReadFilter } from '../../store/sql/point-read.js'
import * as store from '../../store/records/records.js'
import { compileSelection, type Select } from '../../store/sql/select.js'
import type { NextPage, SearchOptions } from '../../wire.js'
import { AnswerPage, type StagedPage } from '../context/answer-page.js'
import type { App } from '../context/app.js'
import {
  fitsBytes,
  isAlwaysInMemory,
  computeMemoryLimit,
  MAX_ESCAPE_FACTOR,
  readWithinLimit,
  requireRecordFits,
} from '../context/answer-limits.js'
import { stagePage } from '../context/staged-pages.js'
import { findPageAt } from '../log/list-at.js'
import { requirePermission, requireId, throwNotFound } from '../access/request-checks.js'
import { getVisibleCriteria, getSelect } from '../access/visible-records.js'
import { getVisibility, type Context } from '../context/context.js'

export async function findByQuery(
  context: Context,
  model: Model,
  query: FindQuery & CountOption,
): Promise<AnswerPage> {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  if (query.asOf !== undefined) return findPageAt(context, model, query)
  const visibility = getVisibility(app, principal)
  const key = { visibility, table: app.tables.of(model), query, maxPageSize: app.settings.maxPageSize }
  const plan =
    app.searchPlans.find(key) ??
    app.searchPlans.add(
      key,
      planSearch(context, model, parseFindQuery(visibility, model, query, key.maxPageSize)),
    )
  const found = await readPage(app, plan)
  return new AnswerPage(plan.search, found, buildNextPage(plan.search, found.nextCursor))
}

export interface SearchCall {
  readonly request: unknown
  readonly options?: SearchOptions | undefined
}

export async function searchByRequest(
  context: Context,
  model: Model,
  { request, options: { maxPageSize = context.app.settings.maxPageSize } = {} }: SearchCall,
): Promise<AnswerPage> {
  const { app, principal } = context
  requirePermission(principal, 'read', model)
  const parsed = parseSearchRequest(getVisibility(app, principal), model, request, maxPageSize)
  const plan = planSearch(context, model, parsed)
  return new AnswerPage(plan.search, await readPage(app, plan))
}

function planSearch(context: Context, model: Model, parsed: Search): SearchPlan {
  const search = { ...parsed, visible: getVisibleCriteria(context.principal, model) }
  return new SearchPlan(context.app.tables.of(model), search, getSelect(context, model, 'list'))
}

/** Reads a page that fits into memory, or stages a larger one in a file. */
async function readPage(app: App, plan: SearchPlan): Promise<FoundPage | StagedPage> {
  const { table, search, select } = plan
  const maxBytes = computeMemoryLimit(app.settings)
  const found = plan.isBounded
    ? await pages.findPage(app.db.reader, table, search, { select, maxBytes })
    : await findUnbounded(app, plan, maxBytes)
  if (found && fitsBytes(found.json, maxBytes * MAX_ESCAPE_FACTOR)) return found
  return stagePage(app, table, search, select)
}

/** A search that scans more rows than it returns may be slow, so it runs in the query pool, unless its tables are small. */
async function findUnbounded(app: App, plan: SearchPlan, maxBytes: number): Promise<FoundPage | undefined> {
  const small = await findSmall(app, plan, maxBytes)
  if (small) return small
  const { table, search, select } = plan
  const db = (await isShortSearch(app, plan)) ? app.db.reader : app.db.queryPool
  // The tables are measured now.
  const measured = await findSmall(app, plan, maxBytes)
  return measured ?? pages.findPage(db, table, search, { select, maxBytes })
}

/** True if the tables that the search reads are so small that it cannot block the event loop for long. */
async function isShortSearch(app: App, plan: SearchPlan): Promise<boolean> {
  if (!canBeShort(app, plan) || app.tableSizes.isKnownLarge(plan.table.model)) return false
  return isShort(plan, await app.tableSizes.read(plan.searchedModels))
}

/** Reads the page of a small table whose size is known. */
async function findSmall(app: App, plan: SearchPlan, maxBytes: number): Promise<FoundPage | undefined> {
  const measured = canBeShort(app, plan) ? app.tableSizes.findMeasured(plan.searchedModels) : undefined
  if (!measured || !isShort(plan, measured.sizes)) return undefined
  return findSmallPage(app.db.reader, plan, measured, maxBytes)
}

function canBeShort({ db }: App, { hasBoundedSelection }: SearchPlan): boolean {
  return hasBoundedSelection && db.dialect.readsBlockEventLoop
}

function isShort({ table, search }: SearchPlan, sizes: MeasuredSizes['sizes']): boolean {
  return estimateSearchNs(sizes, table.model, search) <= MAX_SHORT_SEARCH_NS
}

/** The link to the page that follows the last record. */
function buildNextPage({ offset, limit, sort }: Search, last: PageCursor | undefined): NextPage | undefined {
  return last && { offset: offset + limit, after: encodeCursor(sort, last) }
}

export async function readRecord(context: Context, model: Model, id: number): Promise<FoundRecord> {
  return readSelected(context, model, { id, select: getSelect(context, model, 'full'), isLong: false })
}

/** Reads the named fields of a record, also those of related records. */
export async function fetchRecord(
  context: Context,
  model: Model,
  id: number,
  fields: FieldSelection,
): Promise<FoundRecord> {
  const { app } = context
  requireId(model, id)
  const selection = parseRecordSelection(getVisibility(app, context.principal), model, fields)
  const select = compileSelection(app.db.dialect, selection)
  return readSelected(context, model, { id, select, isLong: selectsRelations(selection) })
}

interface SelectedRead {
  readonly id: number
  readonly select: Select
  /** True if the number of rows that the statement reads has no bound. */
  readonly isLong: boolean
}

async function readSelected(
  context: Context,
  model: Model,
  { id, select, isLong }: SelectedRead,
): Promise<FoundRecord> {
  const { app } = context
  const visible = getVisibleCriteria(context.principal, model)
  const db = isLong || dependsOnRelated(select, visible) ? app.db.queryPool : app.db.reader
  const table = app.tables.of(model)
  const record = { id: requireId(model, id), select, visible }
  if (isAlwaysInMemory(app, select))
    return (await store.findById(db, table, id, { select, filter: record })) ?? throwNotFound(model, id)
  const read = (filter: ReadFilter) => store.findById(db, table, id, { select, filter })
  const found = (await readWithinLimit(app, { db, table }, record, read)) ?? throwNotFound(model, id)
  return requireRecordFits(app, found)
}

/** True if a client selects fields of related records. Their number has no bound. */
function selectsRelations(selection: Selection | undefined): boolean {
  return selection !== undefined && countRelations(selection) > 0
}

/** True if the visibility of the record depends on related records. */
function dependsOnRelated({ hasRelatedConditions }: Select, visible: Criteria | undefined): boolean {
  return hasRelatedConditions || (visible !== undefined && spansManyRelations(visible))
}
