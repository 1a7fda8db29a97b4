// Every record of a model, or of a search, one page after the other: in bounded memory, however many there are.
import { VersoError } from '../../errors.js'
import { andCriteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../../model/query/path.js'
import { parseSearchRequest } from '../../model/query/search.js'
import { selectListFields, type Selection } from '../../model/query/selection.js'
import { isFileField, listTransferFields, selectTransferFields } from '../../formats/transfer-fields.js'
import { isObject } from '../../model/values/value.js'
import { countFirstSlice, measureScan } from '../../store/find/large-pages.js'
import { scanById, type IdScan } from '../../store/records/records.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import { computeAnswerRoom } from '../context/answer-limits.js'
import { getVisibility } from '../context/principal.js'
import { requirePermission } from '../access/permission-checks.js'
import { getVisibleCriteria } from '../access/visible-records.js'
import { FileExport, type ContentSink, type ExportApp } from './export-files.js'
import type { Context } from '../context/context.js'

const FIRST_PAGE_ROWS = 50
const MAX_PAGE_ROWS = 500
const PAGE_BYTES = 1024 * 1024

/**
 * Whole records as they travel in files: see `transferSelection`. Archived ones are among them. The contents of their files are given to
 * `keep`, each before its record comes.
 */
export async function* exportModel(
  app: ExportApp,
  model: Model,
  sink?: ContentSink,
): AsyncGenerator<readonly WireRecord[]> {
  const selection = selectTransferFields(app.catalog, model)
  const pages = readPages(app, model, selection)
  if (!listTransferFields(model).some(isFileField)) {
    yield* pages
    return
  }
  const files = new FileExport(app, app.tables.of(model), selection, sink)
  for await (const page of pages) yield await files.complete(page)
}

export interface ExportTable {
  readonly columns: readonly ExportColumn[]
  readonly pages: AsyncGenerator<readonly WireRecord[]>
}

export interface ExportColumn {
  readonly key: string
  readonly field: Field
}

/** What a search would find, all of it, by id. What is wrong with the request is refused here; what comes later ends the pages. */
export function exportSearch(context: Context, model: Model, request: unknown): ExportTable {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  requirePermission(principal, 'export', model)
  const { offset, limit, sortBy, fields, ...rest } = isObject(request) ? request : {}
  const errors: string[] = []
  for (const [name, value] of Object.entries({ offset, limit }))
    if (value !== undefined && value !== null)
      errors.push(`an export has no ${name}: it holds all that is found`)
  if (sortBy !== undefined && sortBy !== null && !sortsByIdOnly(sortBy))
    errors.push('an export is sorted by id: leave sortBy out, and sort what you get')
  if (errors.length > 0) throw new VersoError('bad-request', errors.join('; '))
  // A client that has no columns to name sends an empty list.
  const fieldNames = Array.isArray(fields) && fields.length === 0 ? undefined : fields
  const searchRequest = isObject(request) ? { ...rest, fields: fieldNames } : request
  const visibility = getVisibility(app, principal)
  const { selection, where, archived } = parseSearchRequest(
    visibility,
    model,
    searchRequest,
    app.settings.maxLimit,
  )
  const shown = selection ?? selectListFields(visibility, model)
  const isVisible = model.archived && !archived
  const seen = andCriteria(
    getVisibleCriteria(principal, model),
    principal.permissions?.of(model).criteriaFor('export'),
  )
  const found = { where, seen, isVisible, mostBytes: computeAnswerRoom(app.settings) }
  return { columns: selectColumns(shown, fieldNames), pages: readPages(app, model, shown, found) }
}

/** In the order in which they were named; id and version only if they were. */
function selectColumns({ entries }: Selection, named: unknown): ExportColumn[] {
  const columns: ExportColumn[] = [
    ...entries,
    { key: 'id', field: ID_FIELD },
    { key: 'version', field: VERSION_FIELD },
  ]
  const keys = Array.isArray(named) ? new Set(named as string[]) : entries.map(({ key }) => key)
  return [...keys].flatMap((name) => columns.find(({ key }) => key === name) ?? [])
}

function sortsByIdOnly(sortBy: unknown): boolean {
  return Array.isArray(sortBy) && sortBy.every((key) => key === 'id' || key === '+id')
}

interface ExportFilter extends Pick<IdScan, 'where' | 'seen' | 'isVisible'> {
  /** Of one record. */
  readonly mostBytes?: number
}

/** The next page is read while this one is used. A page is a statement of its own: whoever stops in between leaves none open. */
async function* readPages(
  { db, tables }: ExportApp,
  model: Model,
  selection: Selection,
  { mostBytes = Infinity, ...filter }: ExportFilter = {},
): AsyncGenerator<readonly WireRecord[]> {
  const select = compileSelection(db.dialect, selection)
  const table = tables.of(model)
  const readPage = async (after: number, most: number): Promise<ExportPage> => {
    const walked = { after, limit: most, ...filter, select }
    const limit = select.maxBytes * most <= PAGE_BYTES ? most : await limitOf(walked)
    return { limit, page: await scanById(db.queryPool, table, { ...walked, limit }) }
  }
  const limitOf = async (walked: IdScan) => {
    const weighed = await measureScan(db.queryPool, table, walked, select)
    const [first] = weighed
    if (first && first.bytes > mostBytes) throw createExportTooLargeError(model, first.id)
    return Math.min(walked.limit, countFirstSlice(weighed))
  }
  let most = FIRST_PAGE_ROWS
  let next: Promise<ExportPage> | undefined = readPage(0, most)
  while (next) {
    const read: ExportPage = await next
    const { page, limit } = read
    const last: WireRecord | undefined = page.at(-1)
    const isEnd = !last || page.length < limit
    most = Math.min(most * 2, MAX_PAGE_ROWS)
    next = isEnd ? undefined : readPage(last.id, most)
    // Whoever stops here never asks for it.
    next?.catch(() => undefined)
    yield page
  }
}

function createExportTooLargeError({ name }: Model, id: number): VersoError {
  const message = `${name} ${id} is larger than an answer may be: leave long fields and lists out of "fields". Nothing was changed.`
  return new VersoError('too-large', message)
}

interface ExportPage {
  readonly page: readonly WireRecord[]
  /** How many were asked for. */
  readonly limit: number
}
